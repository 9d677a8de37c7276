use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;

use super::*;
use crate::decide::rollout::decide;
use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::evidence::Evidence;
use crate::records::key::{Key, Record};
use crate::records::node::{Node, Presence, PresenceState};
use crate::records::policy::{OnFailure, Policy, PolicyDraft};
use crate::records::progress::Progress;
use crate::records::report::{EntityReport, Report, TargetActivity, TargetHealth};
use crate::records::rollout::RolloutState;
use crate::rollout::operations;
use crate::verdict::Write;
use crate::words::counter::{Generation, Revision, RolloutNumber};
use crate::words::feature::Feature;
use crate::words::name::{EntityName, Namespace, NodeName, TargetName};
use crate::words::percent::Amount;
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;
use crate::world::World;
use crate::world::fleet::Fleet;

const NODES: [&str; 2] = ["web-1", "web-2"];

/// A fleet with runs, played with the real decider.
struct Play {
    world: World,
    at: u64,
}

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn run(name: &str) -> EntityName {
    name.parse().unwrap()
}

fn annotation() -> Annotation {
    Annotation::of("kim".parse().unwrap(), Timestamp::EPOCH)
}

fn report(node: &str) -> Report {
    Report {
        node: node.parse().unwrap(),
        received_at: Timestamp::EPOCH,
        agent_version: "".into(),
        generation: Generation::ZERO,
        features: Feature::ALL.into_iter().collect(),
        ledger: None,
        entities: BTreeMap::new(),
        statuses: BTreeMap::new(),
        deleted: BTreeMap::new(),
    }
}

impl Play {
    fn new() -> Self {
        let mut play = Self { world: World::default(), at: 0 };
        for name in NODES {
            let name: NodeName = name.parse().unwrap();
            let node = Node {
                name: name.clone(),
                labels: Default::default(),
                joined_at: Timestamp::EPOCH,
                key_fingerprint: "".into(),
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

    fn put(&mut self, record: Record) {
        self.at += 1;
        self.world.put(&namespace(), record, Revision::new(self.at));
    }

    fn delete(&mut self, key: &Key) {
        self.at += 1;
        self.world.delete(&namespace(), key, Revision::new(self.at));
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    /// Starts a run on both nodes.
    fn start(&mut self, name: &str, version: &str) {
        let nodes: BTreeSet<NodeName> = NODES.iter().map(|node| node.parse().unwrap()).collect();
        let draft = PolicyDraft {
            batch: Some(Amount::Count(10)),
            soak: Some(Span::ZERO),
            on_failure: Some(OnFailure::Pause),
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
    fn settle(&mut self, name: &str) {
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
    fn assigned(&self, name: &str, node: &str) -> Option<(u64, AssignmentOutcome)> {
        let board = self.fleet().boards.get(&run(name))?;
        let state = board.target(&TargetName::parse(node).ok()?)?.state?;
        Some((state.assignment.get(), state.outcome.clone()))
    }

    /// Node web-1 reports that a task of its run failed.
    fn fails(&mut self, name: &str) {
        let evidence = Arc::new(Evidence { summary: "task two: exit code 3".into(), ..Evidence::default() });
        self.says(name, TargetActivity::Failed { attempts: 1, evidence });
    }

    /// Node web-1 reports what it does about a run.
    fn says(&mut self, name: &str, activity: TargetActivity) {
        let (number, _) = self.assigned(name, "web-1").unwrap();
        let said = EntityReport {
            running: None,
            answering: AssignmentNumber::new(number),
            answered_at: Timestamp::EPOCH,
            activity,
            health: TargetHealth::NoChecks,
            healthy_since: None,
            soaked: None,
            soak_failure: None,
            agent_restarted: false,
            waits_for: BTreeSet::new(),
            step: None,
        };
        self.put(Record::Report(Report { entities: BTreeMap::from([(run(name), said)]), ..report("web-1") }));
        self.settle(name);
    }

    fn retry(&mut self, name: &str, number: u64) {
        let fleet = self.fleet();
        let (entity, progress) = (fleet.entities.get(&run(name)), fleet.progresses.get(&run(name)));
        let (target, failed) = (TargetName::parse("web-1").unwrap(), AssignmentNumber::new(number));
        let (entity, progress) = (&entity.unwrap().value, &progress.unwrap().value);
        let asked = operations::retry_target(entity, progress, &target, failed).unwrap();
        self.put(Record::Entity(asked));
        self.settle(name);
    }

    fn abort(&mut self, name: &str) {
        let fleet = self.fleet();
        let (entity, progress) = (fleet.entities.get(&run(name)), fleet.progresses.get(&run(name)));
        let (entity, progress) = (&entity.unwrap().value, &progress.unwrap().value);
        let asked = operations::abort(entity, progress, annotation()).unwrap();
        self.put(Record::Entity(asked));
        self.settle(name);
    }

    /// The failed assignment that the order of web-1 names to be tried again.
    fn told(&self, name: &str) -> Option<u64> {
        let content = self.fleet().contents.get(&"web-1".parse::<NodeName>().ok()?)?;
        content.entities.get(&run(name))?.retry.map(AssignmentNumber::get)
    }
}

const fn has_failed(outcome: &AssignmentOutcome) -> bool {
    matches!(outcome, AssignmentOutcome::Failed { .. })
}

#[test]
fn a_run_that_fails_on_a_node_keeps_others_from_it_until_a_person_says_otherwise() {
    let mut play = Play::new();
    play.start("work-1", "work@1");
    play.fails("work-1");
    let mark = play.fleet().not_runnable.get(&"web-1".parse::<NodeName>().unwrap()).unwrap().value.clone();
    assert_eq!((mark.run.clone(), mark.reason.as_str()), (Some(run("work-1")), "task two: exit code 3"));
    play.start("work-2", "work@2");
    assert!(play.assigned("work-2", "web-1").is_none());
    assert!(play.assigned("work-2", "web-2").is_some(), "the other node is runnable");
    let board = play.fleet().boards.get(&run("work-2")).unwrap();
    let target = board.target(&TargetName::parse("web-1").unwrap()).unwrap();
    let held = target.observation.unwrap().held.clone().unwrap();
    assert!(held.contains("run work-1 failed: task two: exit code 3"), "{held}");
    assert!(held.contains("bellwether node runnable web-1"), "{held}");
    play.delete(&Key::NotRunnable("web-1".parse().unwrap()));
    play.settle("work-2");
    assert!(play.assigned("work-2", "web-1").is_some());
    play.settle("work-1");
    assert!(play.fleet().not_runnable.is_empty(), "it is said once for each failure");
}

#[test]
fn a_failed_target_is_assigned_again_once_for_each_time_that_a_person_asks() {
    let mut play = Play::new();
    play.start("work-1", "work@1");
    play.retry("work-1", 1);
    assert_eq!(play.assigned("work-1", "web-1"), Some((1, AssignmentOutcome::InFlight)), "nothing failed");
    play.fails("work-1");
    let (number, outcome) = play.assigned("work-1", "web-1").unwrap();
    // What was asked for came true with the failure.
    assert_eq!((number, outcome), (2, AssignmentOutcome::InFlight));
    assert_eq!(play.told("work-1"), Some(1));
    play.fails("work-1");
    let (number, outcome) = play.assigned("work-1", "web-1").unwrap();
    assert!(number == 2 && has_failed(&outcome), "it is not tried again by itself");
    let rollout = play.fleet().rollouts.get(&(run("work-1"), RolloutNumber::new(1))).unwrap();
    assert!(matches!(rollout.value.state, RolloutState::Paused(_)), "{:?}", rollout.value.state);
    play.retry("work-1", 2);
    assert_eq!(play.assigned("work-1", "web-1"), Some((3, AssignmentOutcome::InFlight)));
    assert_eq!(play.told("work-1"), Some(2));
    play.retry("work-1", 2);
    assert_eq!(play.assigned("work-1", "web-1"), Some((3, AssignmentOutcome::InFlight)), "asked twice");
}

#[test]
fn an_abort_withdraws_a_run_where_its_job_goes_on_though_it_failed_there() {
    let mut play = Play::new();
    play.start("work-1", "work@1");
    play.fails("work-1");
    // As after a deadline: the target is given up, and the job goes on.
    play.says("work-1", TargetActivity::Applying { attempt: 1, waiting_for: None });
    assert!(play.assigned("work-1", "web-1").is_some_and(|(_, outcome)| has_failed(&outcome)));
    play.abort("work-1");
    assert_eq!(play.assigned("work-1", "web-1"), None);
    play.delete(&Key::NotRunnable("web-1".parse().unwrap()));
    play.start("work-2", "work@2");
    play.fails("work-2");
    play.abort("work-2");
    assert!(
        play.assigned("work-2", "web-1").is_some_and(|(_, outcome)| has_failed(&outcome)),
        "its job is over"
    );
}

#[test]
fn the_nodes_that_a_run_failed_on_are_found_while_it_goes_on_and_when_it_has_ended() {
    let mut play = Play::new();
    play.start("work-1", "work@1");
    let failed = |play: &Play| play.fleet().failed_nodes(&run("work-1"));
    assert!(failed(&play).is_empty());
    play.fails("work-1");
    assert_eq!(failed(&play), [NodeName::parse("web-1").unwrap()]);
    play.retry("work-1", 1);
    assert!(failed(&play).is_empty());
    play.abort("work-1");
    assert_eq!(failed(&play), NODES.map(|node| NodeName::parse(node).unwrap()), "it ended without them");
}
