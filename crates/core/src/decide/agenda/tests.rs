mod data;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::decide::table::{DECIDERS, Decide, RetentionLimits};
use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::evidence::Evidence;
use crate::records::freeze::{Freeze, FreezeKind, FreezeScope};
use crate::records::key::{AnyKey, AnyRecord, Key, LocatedRecord, Record};
use crate::records::node::{Node, Presence, PresenceState};
use crate::records::policy::ordering::ServiceNeed;
use crate::records::policy::{Policy, PolicyDraft};
use crate::records::report::{EntityReport, Report, TargetActivity, TargetHealth};
use crate::rollout::operations;
use crate::verdict::{Changeset, Write};
use crate::words::counter::{Generation, Term};
use crate::words::label::{Label, Labels};
use crate::words::name::{Actor, FreezeName, Namespace, NodeName, TargetName};
use crate::words::percent::Amount;
use crate::words::selector::Selector;
use crate::words::time::Span;
use crate::words::version::Version;
use crate::world::World;
use crate::world::fleet::Fleet;

/// In the order of names; each may need the next.
const ENTITIES: [&str; 4] = ["app", "db", "edge", "web"];
const NODES: [&str; 4] = ["n-1", "n-2", "n-3", "n-4"];

/// A namespace that changes and is decided on by a leader with an agenda.
struct Play {
    world: World,
    records: BTreeMap<Key, (Record, Revision)>,
    agenda: Agenda,
    now: Timestamp,
    decided: Vec<EntityName>,
}

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn name(text: &str) -> EntityName {
    text.parse().unwrap()
}

fn annotation(at: Timestamp) -> Annotation {
    Annotation { by: Actor::parse("kim").unwrap(), at, reason: "".into() }
}

fn rollout_decider() -> fn(DeciderContext<'_>, &EntityName) -> Verdict {
    let mut all = DECIDERS.iter().filter_map(|decider| match decider.decide {
        Decide::Entity(decide) => Some(decide),
        Decide::Namespace(_) | Decide::Cluster(_) | Decide::Ensemble(_) => None,
    });
    all.next().unwrap()
}

impl Play {
    fn new() -> Self {
        let now = Timestamp::EPOCH.plus(Span::from_secs(1_000_000));
        Self {
            world: World::default(),
            records: BTreeMap::new(),
            agenda: Agenda::default(),
            now,
            decided: vec![],
        }
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    fn write(&mut self, changesets: Vec<Changeset>) {
        for changeset in changesets {
            let revision = self.world.revision.next();
            changeset.writes.iter().for_each(|write| self.remember(write, revision));
            for write in changeset.writes {
                write.apply_to(&mut self.world, &namespace(), revision);
            }
        }
    }

    fn remember(&mut self, write: &Write, revision: Revision) {
        match write {
            Write::Put(record) => {
                let AnyRecord::Namespaced(record) = &**record else { panic!("a global record") };
                self.records.insert(record.key(), (record.clone(), revision));
            }
            Write::Delete(key) => {
                let AnyKey::Namespaced(key) = key else { panic!("a global key") };
                self.records.remove(key);
            }
        }
    }

    fn put(&mut self, record: Record) {
        self.write(vec![Changeset { writes: vec![Write::put(record)], events: vec![] }]);
    }

    fn delete(&mut self, key: Key) {
        self.write(vec![Changeset { writes: vec![Write::delete(key)], events: vec![] }]);
    }

    fn node(&mut self, which: usize, is_web: bool) {
        let name: NodeName = NODES[which].parse().unwrap();
        let mut labels = Labels::default();
        labels.set(Label::new("role", if is_web { "web" } else { "db" }).unwrap()).unwrap();
        self.put(Record::Node(Node {
            name: name.clone(),
            labels,
            joined_at: self.now,
            key_fingerprint: "".into(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon: None,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: alloc::vec![crate::access::NamePattern::Any],
        }));
    }

    fn presence(&mut self, which: usize, contact: PresenceState) {
        let presence = Presence { contact, since: self.now, server: None };
        self.put(Record::Presence(NODES[which].parse().unwrap(), presence));
    }

    fn entity(&mut self, which: usize, how: usize) {
        let name: EntityName = ENTITIES[which].parse().unwrap();
        let need = ServiceNeed { service: ENTITIES[(which + 1) % 4].parse().unwrap(), count: 1 };
        let policy = Policy::new(PolicyDraft {
            batch: Some(Amount::Count(1)),
            soak: Some(Span::from_secs(10)),
            deadline: Some(Span::from_secs(60)),
            needs: (how % 2 == 1).then(|| vec![need]),
            ..PolicyDraft::default()
        })
        .unwrap();
        let selector = Selector::parse(["all", "role=web or fact.disks.empty = true"][how / 2 % 2]).unwrap();
        let before = self.fleet_entity(&name);
        let kind = match how / 4 {
            0 => EntityKind::Version,
            _ => EntityKind::Profile("app".parse().unwrap()),
        };
        let entity = Entity {
            source: TargetSource::Nodes(selector.clone()),
            policy: policy.clone(),
            ..before.unwrap_or_else(|| Entity { kind, ..Entity::new(name, selector, policy) })
        };
        self.put(Record::Entity(entity));
    }

    fn fleet_entity(&self, name: &EntityName) -> Option<Entity> {
        let fleet = self.world.fleets.get(&namespace())?;
        Some(Entity::clone(&fleet.entities.get(name)?.value))
    }

    fn start(&mut self, which: usize, version: u64) {
        let name: EntityName = ENTITIES[which].parse().unwrap();
        let Some(entity) = self.fleet_entity(&name) else { return };
        let progress =
            self.fleet().progresses.get(&name).map(|kept| (*kept.value).clone()).unwrap_or_default();
        let version = Version::numbered("app", version).unwrap();
        if let Ok(entity) = operations::start(&entity, &progress, version, annotation(self.now)) {
            self.put(Record::Entity(entity));
        }
    }

    /// A node reports every entity as it is expected to be, or the failure of one.
    fn report(&mut self, which: usize, fails: bool) {
        let name: NodeName = NODES[which].parse().unwrap();
        let target = TargetName::from(&name);
        let boards = self.fleet().boards.iter();
        let entities = boards.filter_map(|(entity, board)| {
            let (version, number) = board.expected(&target)?;
            let evidence = || Arc::new(Evidence::default());
            let activity = if fails {
                TargetActivity::Failed { attempts: 1, evidence: evidence() }
            } else {
                TargetActivity::Nothing
            };
            let report = EntityReport {
                answered_at: Default::default(),
                soaked: None,
                soak_failure: None,
                agent_restarted: false,
                running: (!fails).then(|| version.clone()),
                answering: number,
                activity,
                health: TargetHealth::Healthy,
                healthy_since: (!fails).then_some(self.now),
                waits_for: BTreeSet::new(),
                step: None,
            };
            Some((entity.clone(), report))
        });
        let report = Report {
            node: name,
            received_at: self.now,
            agent_version: "1".into(),
            generation: Generation::ZERO,
            ledger: None,
            ledger_since: Default::default(),
            sequence: 0,
            entities: entities.collect(),
            statuses: BTreeMap::new(),
            features: Default::default(),
            deleted: BTreeMap::new(),
        };
        self.put(Record::Report(report));
    }

    fn freeze(&mut self, how: usize) {
        let name = FreezeName::parse("deploys").unwrap();
        if how == 0 {
            return self.delete(Key::Freeze(name));
        }
        self.put(Record::Freeze(Freeze {
            name,
            scope: if how == 1 {
                FreezeScope::Everything
            } else {
                FreezeScope::Entity("app".parse().unwrap())
            },
            kind: FreezeKind::Freeze,
            annotation: annotation(self.now),
            until: (how == 3).then(|| self.now.plus(Span::from_secs(30))),
            labels: Labels::default(),
        }));
    }

    fn act(&mut self, (what, which, how): (usize, usize, usize)) {
        match what {
            0 => self.node(which, how % 2 == 0),
            1 => {
                let all = [
                    PresenceState::Up,
                    PresenceState::Up,
                    PresenceState::Suspect,
                    PresenceState::Unreachable,
                ];
                self.presence(which, all[how % 4]);
            }
            2 => self.entity(which, how),
            3 if how == 0 => {
                self.delete(Key::Entity(name(ENTITIES[which])));
                let left: Vec<Key> = self.fleet().leftovers(&name(ENTITIES[which])).collect();
                left.into_iter().for_each(|key| self.delete(key));
            }
            3 | 4 => self.start(which, u64::try_from(how).unwrap() + 1),
            5 | 6 => self.report(which, how == 0),
            7 => self.freeze(how % 4),
            8 => self.disks(which, &[how % 2 == 0]),
            _ => self.now = self.now.plus(Span::from_secs([1, 5, 20, 200][how % 4])),
        }
    }

    /// Passes until one writes nothing; returns the entities that were decided, by name.
    fn settled(&mut self) -> Vec<EntityName> {
        self.decided.clear();
        self.settle();
        self.decided.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Passes until one writes nothing.
    fn settle(&mut self) {
        let decide = rollout_decider();
        for _ in 0..20 {
            let world = self.world.clone();
            let Some(fleet) = world.fleets.get(&namespace()) else { return };
            let context = DeciderContext {
                world: &world,
                namespace: &namespace(),
                fleet,
                term: Term::new(1),
                watch: Watch { since: Timestamp::EPOCH, grace: Span::from_secs(10), detection: Span::ZERO },
                kept: RetentionLimits::default(),
                now: self.now,
            };
            let (basis, due) = (Basis::of(&context), self.agenda.due(&context));
            let mut wrote = false;
            for entity in due {
                self.decided.push(entity.clone());
                let verdict = decide(context, &entity);
                let is_empty = verdict.changesets.is_empty();
                self.agenda.decided(&entity, if is_empty { verdict.wake } else { Some(self.now) });
                wrote |= !is_empty;
                self.write(verdict.changesets);
            }
            self.agenda.complete(basis);
            assert_eq!(self.agenda.overlooked(&context, decide), None, "an entity was due");
            if !wrote {
                return;
            }
        }
        panic!("it writes without an end");
    }
}

#[test]
fn a_report_and_the_time_make_only_their_own_entities_due() {
    let mut play = Play::new();
    for node in 0..4 {
        play.node(node, node == 0);
        play.presence(node, PresenceState::Up);
    }
    for entity in 0..4 {
        play.entity(entity, 0);
    }
    assert_eq!(play.settled(), ENTITIES.map(name));
    assert_eq!(play.settled(), [], "nothing is due at rest");
    play.start(0, 1);
    assert_eq!(play.settled(), [name("app")]);
    play.report(0, false);
    assert_eq!(play.settled(), ENTITIES.map(name), "it is a target of all of them");
    play.now = play.now.plus(Span::from_secs(3_600));
    assert_eq!(play.settled(), [name("app")], "by time alone");
    play.freeze(1);
    assert_eq!(play.settled(), ENTITIES.map(name), "a freeze concerns every entity");
    play.entity(1, 1);
    assert_eq!(play.settled(), [name("db")]);
    play.start(2, 1);
    assert_eq!(play.settled(), [name("db"), name("edge")], "db needs edge");
}

#[test]
fn a_clock_set_back_makes_everything_due() {
    let mut play = Play::new();
    play.node(0, true);
    play.entity(0, 0);
    play.settle();
    play.now = play.now.minus(Span::from_secs(60));
    assert_eq!(play.settled(), [name("app")]);
}

proptest! {
    /// Whatever happens, nothing that is not due would be decided, and every index is the one that a new load builds.
    #[test]
    fn nothing_due_is_overlooked_and_indexes_are_as_loaded(
        acts in prop::collection::vec((0_usize..11, 0_usize..4, 0_usize..8, any::<bool>()), 1..80)
    ) {
        let mut play = Play::new();
        for node in 0..3 {
            play.node(node, node == 0);
            play.presence(node, PresenceState::Up);
            play.entity(node, node);
        }
        for (what, which, how, settles) in acts {
            play.act((what, which, how));
            if settles {
                play.settle();
            }
        }
        play.settle();
        let records = play.records.values().cloned();
        let located = records.map(|(record, revision)| (LocatedRecord::Namespaced(namespace(), record), revision));
        let loaded = World::load(located, play.world.revision);
        let (folded, loaded) = (play.fleet(), loaded.fleets.get(&namespace()).unwrap());
        prop_assert_eq!(&folded.entities_of_node, &loaded.entities_of_node);
        prop_assert_eq!(&folded.entities_of_profile, &loaded.entities_of_profile);
        prop_assert_eq!(&folded.entities_that_need, &loaded.entities_that_need);
        prop_assert_eq!(&folded.hooked, &loaded.hooked);
        prop_assert_eq!(&folded.version_uses, &loaded.version_uses);
        prop_assert_eq!(&folded.contents, &loaded.contents);
    }
}
