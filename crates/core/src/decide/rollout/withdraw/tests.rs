use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;

use super::*;
use crate::decide::rollout::decide;
use crate::records::annotation::Annotation;
use crate::records::entity::{Abort, Entity, EntityKind, TargetSource};
use crate::records::key::Record;
use crate::records::node::{Node, Presence, PresenceState};
use crate::records::policy::Policy;
use crate::records::progress::{Progress, RolloutActivity};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::words::counter::{AssignmentNumber, RequestNumber, Revision, RolloutNumber};
use crate::words::name::{EntityName, Namespace, NodeName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;
use crate::world::World;

fn entity(kind: EntityKind, nodes: &[NodeName]) -> Entity {
    let annotation = Annotation::of("kim".parse().unwrap(), Timestamp::EPOCH);
    Entity {
        kind,
        source: TargetSource::Listed(Arc::new(nodes.iter().cloned().collect::<BTreeSet<_>>())),
        abort: Some(Abort { request: RequestNumber::new(1), annotation }),
        ..Entity::new(name(), Selector::all(), Policy::default())
    }
}

fn name() -> EntityName {
    "install-7".parse().unwrap()
}

fn joined(name: NodeName) -> Node {
    Node {
        name,
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
    }
}

fn state(outcome: AssignmentOutcome) -> TargetState {
    TargetState {
        soak: Default::default(),
        failing_before: None,
        version: Version::parse("install@7").unwrap(),
        rollout: RolloutNumber::new(1),
        purpose: AssignmentPurpose::Update,
        assignment: AssignmentNumber::new(1),
        assigned_at: Timestamp::EPOCH,
        clock: DeadlineClock::Running { from: Timestamp::EPOCH, set_at: Timestamp::EPOCH },
        outcome,
    }
}

/// The board of an aborted rollout with a target in flight and one that failed.
fn aborted(kind: EntityKind) -> Board {
    let failed = AssignmentOutcome::Failed { at: Timestamp::EPOCH, evidence: Arc::default() };
    aborted_with([AssignmentOutcome::InFlight, failed].map(Some), kind, None)
}

/// The board of an aborted rollout over as many nodes, whose version is known good already or not.
fn aborted_with(
    outcomes: [Option<AssignmentOutcome>; 2],
    kind: EntityKind,
    last_known_good: Option<Version>,
) -> Board {
    let nodes = ["web-1", "web-2"].map(|name| NodeName::parse(name).unwrap());
    let progress = Progress {
        activity: RolloutActivity::Abandoned,
        last: RolloutNumber::new(1),
        last_known_good,
        ..Progress::default()
    };
    let targets = nodes.iter().map(TargetName::from).zip(outcomes);
    let targets = targets.filter_map(|(target, outcome)| Some((target, state(outcome?))));
    let up = |node: &NodeName| {
        let contact = PresenceState::Up;
        Record::Presence(node.clone(), Presence { contact, since: Timestamp::EPOCH, server: None })
    };
    let records = nodes
        .iter()
        .flat_map(|node| [Record::Node(joined(node.clone())), up(node)])
        .chain([Record::Entity(entity(kind, &nodes)), Record::Progress(name(), progress)])
        .chain(targets.map(|(target, state)| Record::Target(name(), target, state)));
    let (mut world, namespace) = (World::default(), Namespace::parse("default").unwrap());
    for (record, revision) in records.zip(1..) {
        world.put(&namespace, record, Revision::new(revision));
    }
    world.fleets.get(&namespace).unwrap().boards.get(&name()).unwrap().clone()
}

#[test]
fn an_aborted_run_withdraws_what_is_in_flight_and_nothing_else() {
    let run = EntityKind::Workflow("install".parse().unwrap());
    for (kind, withdrawn) in [(run, &["web-1"][..]), (EntityKind::Version, &[])] {
        let verdict = decide(&aborted(kind), &RolloutEnvironment::default(), Timestamp::EPOCH);
        let gone = verdict.targets.iter().filter(|change| change.state.is_none());
        let names: Vec<&str> = gone.map(|change| change.target.as_str()).collect();
        assert_eq!(names, withdrawn);
    }
}

#[test]
fn an_aborted_run_assigns_its_version_to_nobody_though_it_is_known_good() {
    let (run, version) =
        (EntityKind::Workflow("install".parse().unwrap()), state(AssignmentOutcome::InFlight).version);
    let succeeded = AssignmentOutcome::Succeeded { at: Timestamp::EPOCH, failed_later: None };
    for (first, withdrawn) in [(None, 0), (Some(AssignmentOutcome::InFlight), 1)] {
        let board = aborted_with([first, Some(succeeded.clone())], run.clone(), Some(version.clone()));
        let verdict = decide(&board, &RolloutEnvironment::default(), Timestamp::EPOCH);
        let gone = verdict.targets.iter().filter(|change| change.state.is_none()).count();
        assert_eq!((gone, verdict.targets.len()), (withdrawn, withdrawn));
        assert_eq!(verdict.wake, None, "it is decided again at once");
    }
}
