//! One report in a namespace with many entities: what it costs to fold it and to decide what is due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_core::decide::agenda::{Agenda, Basis};
use bellwether_core::decide::table::{DECIDERS, Decide, DeciderContext, RetentionLimits};
use bellwether_core::records::entity::Entity;
use bellwether_core::records::key::Record;
use bellwether_core::records::node::{Node, Presence, PresenceState};
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::report::{EntityReport, Report, TargetActivity, TargetHealth};
use bellwether_core::rollout::environment::Watch;
use bellwether_core::words::counter::{AssignmentNumber, Generation, Term};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{EntityName, Namespace, NodeName};
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use super::{REPORTS, timed};

/// Nodes of the namespace.
const NODES: usize = 1_000;

/// Entities that every node is a target of.
const STANDING: usize = 100;

/// The median time of one report of a node that has a single entity of its own, beside this many other short-lived entities.
pub(super) fn one_report(short_lived: usize) -> Duration {
    let (namespace, now) = (Namespace::parse("default").unwrap(), Timestamp::from_millis(1_800_000_000_000));
    let mut world = world(&namespace, short_lived, now);
    let mut agenda = Agenda::default();
    decide(&world, &namespace, &mut agenda, now);
    let mut times: Vec<_> = (0..REPORTS)
        .map(|step| {
            let report = report(step * 7 % NODES, now);
            let published = world.clone();
            let (time, ()) = timed(|| {
                let revision = world.revision.next();
                world.put(&namespace, report, revision);
                decide(&world, &namespace, &mut agenda, now);
            });
            drop(published);
            time
        })
        .collect();
    times.sort();
    times[REPORTS / 2]
}

fn world(namespace: &Namespace, short_lived: usize, now: Timestamp) -> World {
    let mut world = World::default();
    let mut put = |record| {
        let revision = world.revision.next();
        world.put(namespace, record, revision);
    };
    for index in 0..NODES {
        let name = node(index);
        put(Record::Node(Node {
            name: name.clone(),
            labels: Labels::default(),
            joined_at: now,
            key_fingerprint: String::new(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon: None,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: vec![bellwether_core::access::NamePattern::Any],
        }));
        put(Record::Presence(name, Presence { contact: PresenceState::Up, since: now, server: None }));
    }
    let policy = Policy::new(PolicyDraft::default()).unwrap();
    let mut entity = |name: String, selector: Selector| {
        put(Record::Entity(Entity::new(name.parse().unwrap(), selector, policy.clone())));
    };
    for index in 0..STANDING {
        entity(format!("standing-{index}"), Selector::parse(&format!("name = {}", node(index))).unwrap());
    }
    for index in 0..short_lived {
        let selector = Selector::parse(&format!("name = {}", node(index % NODES))).unwrap();
        entity(format!("run-{index}"), selector);
    }
    world
}

fn node(index: usize) -> NodeName {
    format!("node-{index:05}").parse().unwrap()
}

fn report(index: usize, now: Timestamp) -> Record {
    let entity = EntityReport {
        answered_at: Default::default(),
        soaked: None,
        soak_failure: None,
        agent_restarted: false,
        running: "v1".parse().ok(),
        answering: AssignmentNumber::ZERO,
        activity: TargetActivity::Nothing,
        health: TargetHealth::Healthy,
        healthy_since: Some(now),
        waits_for: BTreeSet::new(),
        step: None,
    };
    let name: EntityName = format!("standing-{}", index % STANDING).parse().unwrap();
    Record::Report(Report {
        node: node(index),
        received_at: now,
        agent_version: "1".into(),
        generation: Generation::ZERO,
        ledger: None,
        ledger_since: Default::default(),
        sequence: 0,
        entities: BTreeMap::from([(name, entity)]),
        statuses: BTreeMap::new(),
        features: Default::default(),
        deleted: BTreeMap::new(),
    })
}

/// One pass of the table over the namespace.
fn decide(world: &World, namespace: &Namespace, agenda: &mut Agenda, now: Timestamp) {
    let fleet = world.fleets.get(namespace).unwrap();
    let context = DeciderContext {
        world,
        namespace,
        fleet,
        term: Term::new(1),
        watch: Watch::default(),
        kept: RetentionLimits::default(),
        now,
    };
    for decider in &DECIDERS {
        match decider.decide {
            Decide::Namespace(decide) => assert!(decide(context).changesets.is_empty(), "{}", decider.name),
            Decide::Cluster(decide) => {
                for cluster in agenda.due_views(&context) {
                    assert!(decide(context, &cluster).changesets.is_empty(), "{}", decider.name);
                }
                agenda.viewed(fleet.loaded, world.revision);
            }
            Decide::Ensemble(decide) => {
                for ensemble in agenda.ensembles.due(&context) {
                    let verdict = decide(context, &ensemble);
                    assert!(verdict.changesets.is_empty(), "{}", decider.name);
                    agenda.ensembles.decided(&context, &ensemble, verdict.wake);
                }
            }
            Decide::Entity(decide) => {
                let (basis, due) = (Basis::of(&context), agenda.due(&context));
                for entity in due {
                    let verdict = decide(context, &entity);
                    assert!(verdict.changesets.is_empty(), "nothing was requested");
                    agenda.decided(&entity, verdict.wake);
                }
                agenda.complete(basis);
            }
        }
    }
}
