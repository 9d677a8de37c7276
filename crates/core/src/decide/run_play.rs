//! For tests: runs of workflows on two nodes, with the deciders and without agents.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;

use crate::decide::rollout::decide;
use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::evidence::Evidence;
use crate::records::key::{Key, Record};
use crate::records::node::{Node, Presence, PresenceState};
use crate::records::policy::{OnFailure, Policy, PolicyDraft};
use crate::records::progress::Progress;
use crate::records::report::{EntityReport, Report, TargetActivity, TargetHealth};
use crate::records::target::AssignmentOutcome;
use crate::rollout::operations;
use crate::verdict::Write;
use crate::words::counter::{AssignmentNumber, Generation, Revision};
use crate::words::feature::Feature;
use crate::words::name::{EntityName, Namespace, NodeName, TargetName};
use crate::words::percent::Amount;
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;
use crate::world::World;
use crate::world::fleet::Fleet;

pub(super) const NODES: [&str; 2] = ["web-1", "web-2"];

/// A fleet with runs on two nodes, played with the real deciders.
pub(super) struct RunPlay {
    pub(super) world: World,
    at: u64,
}

pub(super) fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

pub(super) fn run(name: &str) -> EntityName {
    name.parse().unwrap()
}

pub(super) fn annotation() -> Annotation {
    Annotation::of("kim".parse().unwrap(), Timestamp::EPOCH)
}

pub(super) fn report(node: &str) -> Report {
    Report {
        node: node.parse().unwrap(),
        received_at: Timestamp::EPOCH,
        agent_version: "".into(),
        generation: Generation::ZERO,
        features: Feature::ALL.into_iter().collect(),
        ledger: None,
        ledger_since: Default::default(),
        sequence: 0,
        entities: BTreeMap::new(),
        statuses: BTreeMap::new(),
        deleted: BTreeMap::new(),
    }
}

impl RunPlay {
    pub(super) fn new() -> Self {
        let mut play = Self { world: World::default(), at: 0 };
        for name in NODES {
            let name: NodeName = name.parse().unwrap();
            let node = Node {
                name: name.clone(),
                labels: Default::default(),
                joined_at: Timestamp::EPOCH,
                key_fingerprint: "".into(),
                next_key_fingerprint: None,
                trust: None,
                pause: None,
                cordon: None,
                decommissioned: None,
                rescan: Default::default(),
                logical: None,
                services: vec![crate::access::NamePattern::Any],
            };
            let presence = Presence { contact: PresenceState::Up, since: Timestamp::EPOCH, server: None };
            play.put(Record::Node(node));
            play.put(Record::Presence(name.clone(), presence));
            play.put(Record::Report(report(name.as_str())));
        }
        play
    }

    pub(super) fn put(&mut self, record: Record) {
        self.at += 1;
        self.world.put(&namespace(), record, Revision::new(self.at));
    }

    pub(super) fn write(&mut self, write: Write) {
        self.at += 1;
        write.apply_to(&mut self.world, &namespace(), Revision::new(self.at));
    }

    pub(super) fn delete(&mut self, key: &Key) {
        self.at += 1;
        self.world.delete(&namespace(), key, Revision::new(self.at));
    }

    pub(super) fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    /// Starts a run on both nodes, that pauses when it fails.
    pub(super) fn start(&mut self, name: &str, version: &str) {
        self.start_with(name, version, OnFailure::Pause);
    }

    pub(super) fn start_with(&mut self, name: &str, version: &str, on_failure: OnFailure) {
        self.start_in((name, version), on_failure, 10);
    }

    /// Starts a run on so many nodes at once.
    pub(super) fn start_in(&mut self, (name, version): (&str, &str), on_failure: OnFailure, batch: u32) {
        let nodes: BTreeSet<NodeName> = NODES.iter().map(|node| node.parse().unwrap()).collect();
        let draft = PolicyDraft {
            batch: Some(Amount::Count(batch)),
            soak: Some(Span::ZERO),
            on_failure: Some(on_failure),
            ..PolicyDraft::default()
        };
        let policy = Policy::new(draft).unwrap();
        let entity = Entity {
            kind: EntityKind::Workflow("work".parse().unwrap()),
            source: TargetSource::Listed(Arc::new(nodes)),
            ..Entity::new(run(name), Selector::all(), policy)
        };
        let version = Version::parse(version).unwrap();
        let asked = operations::start(&entity, &Progress::default(), version, annotation());
        self.put(Record::Entity(asked.unwrap()));
        self.settle(name);
    }

    /// Decides until nothing is left to decide.
    pub(super) fn settle(&mut self, name: &str) {
        let name = run(name);
        for _ in 0..10 {
            let environment = self.world.environment(&namespace(), &name);
            let board = self.fleet().boards.get(&name).unwrap();
            let verdict = decide(board, &environment, Timestamp::EPOCH).into_verdict(&name);
            let writes: vec::Vec<Write> =
                verdict.changesets.into_iter().flat_map(|changeset| changeset.writes).collect();
            if writes.is_empty() {
                return;
            }
            for write in writes {
                self.at += 1;
                write.apply_to(&mut self.world, &namespace(), Revision::new(self.at));
            }
        }
        panic!("it goes on deciding");
    }

    /// The number and the outcome of an assignment.
    pub(super) fn assigned(&self, name: &str, node: &str) -> Option<(u64, AssignmentOutcome)> {
        let board = self.fleet().boards.get(&run(name))?;
        let state = board.target(&TargetName::parse(node).ok()?)?.state?;
        Some((state.assignment.get(), state.outcome.clone()))
    }

    /// Node web-1 reports that a task of its run failed.
    pub(super) fn fails(&mut self, name: &str) {
        let evidence = Arc::new(Evidence { summary: "task two: exit code 3".into(), ..Evidence::default() });
        self.says(name, TargetActivity::Failed { attempts: 1, evidence });
    }

    /// Node web-1 reports what it does about a run.
    pub(super) fn says(&mut self, name: &str, activity: TargetActivity) {
        self.node_says(("web-1", name), (None, activity));
    }

    /// A node reports which version of a run it is done with, and what it does about it.
    pub(super) fn node_says(
        &mut self,
        (node, name): (&str, &str),
        (running, activity): (Option<&str>, TargetActivity),
    ) {
        let (number, _) = self.assigned(name, node).unwrap();
        let said = EntityReport {
            running: running.map(|version| Version::parse(version).unwrap()),
            answering: AssignmentNumber::new(number),
            answered_at: Timestamp::EPOCH,
            activity,
            health: TargetHealth::NoChecks,
            healthy_since: running.map(|_| Timestamp::EPOCH),
            soaked: running.map(|_| Span::ZERO),
            soak_failure: None,
            agent_restarted: false,
            waits_for: BTreeSet::new(),
            step: None,
        };
        self.put(Record::Report(Report { entities: BTreeMap::from([(run(name), said)]), ..report(node) }));
        self.settle(name);
    }

    pub(super) fn retry(&mut self, name: &str, number: u64) {
        let fleet = self.fleet();
        let (entity, progress) = (fleet.entities.get(&run(name)), fleet.progresses.get(&run(name)));
        let (target, failed) = (TargetName::parse("web-1").unwrap(), AssignmentNumber::new(number));
        let (entity, progress) = (&entity.unwrap().value, &progress.unwrap().value);
        let asked = operations::retry_target(entity, progress, &target, failed).unwrap();
        self.put(Record::Entity(asked));
        self.settle(name);
    }

    pub(super) fn abort(&mut self, name: &str) {
        let fleet = self.fleet();
        let (entity, progress) = (fleet.entities.get(&run(name)), fleet.progresses.get(&run(name)));
        let (entity, progress) = (&entity.unwrap().value, &progress.unwrap().value);
        let asked = operations::abort(entity, progress, annotation()).unwrap();
        self.put(Record::Entity(asked));
        self.settle(name);
    }

    /// The failed assignment that the order of web-1 names to be tried again.
    pub(super) fn told(&self, name: &str) -> Option<u64> {
        let content = self.fleet().contents.get(&"web-1".parse::<NodeName>().ok()?)?;
        content.entities.get(&run(name))?.retry.map(AssignmentNumber::get)
    }
}
