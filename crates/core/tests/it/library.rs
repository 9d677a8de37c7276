//! The engine as a library: one thread through it as a controller would use it.

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::rollout::RolloutState;
use bellwether_core::rollout::operations;
use bellwether_core::trial::engine::{RolloutEngine, TargetReport};
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

struct Controller {
    engine: RolloutEngine,
    namespace: Namespace,
    entity: EntityName,
    now: Timestamp,
}

impl Controller {
    fn new(namespace: &str, draft: PolicyDraft) -> Self {
        let (namespace, entity) = (namespace.parse().unwrap(), "web".parse().unwrap());
        let mut engine = RolloutEngine::new();
        let now = Timestamp::from_millis(1_000_000);
        engine.set_policy(&namespace, &entity, &Policy::new(draft).unwrap(), now).unwrap();
        Self { engine, namespace, entity, now }
    }

    fn start(&mut self, version: &str) {
        let intent = Annotation::of("alice".parse().unwrap(), self.now);
        let version = version.parse().unwrap();
        self.engine.set_target_version(&self.namespace, &self.entity, version, intent).unwrap();
    }

    /// Reports targets, each as `name=version`, and returns the versions they must run.
    fn report(&mut self, targets: &str) -> String {
        let reports: Vec<TargetReport> = targets
            .split(' ')
            .map(|target| target.split_once('=').unwrap())
            .map(|(name, running)| TargetReport {
                target: name.parse().unwrap(),
                running: running.parse().ok(),
                error: None,
                assignment: None,
            })
            .collect();
        let expected = self.engine.orchestrate(&self.namespace, &self.entity, &reports, self.now);
        let text = |version: Option<Version>| version.map_or("-".into(), |version| version.to_string());
        let lines = expected.into_iter().map(|(name, version)| format!("{name}={}", text(version)));
        lines.collect::<Vec<_>>().join(" ")
    }

    fn pass(&mut self, seconds: u64) -> Option<Timestamp> {
        self.now = self.now.plus(Span::from_secs(seconds));
        self.engine.tick(self.now)
    }

    fn good(&self) -> Option<String> {
        let progress = self.engine.progress(&self.namespace, &self.entity)?;
        progress.last_known_good.as_ref().map(ToString::to_string)
    }
}

fn one_at_a_time() -> PolicyDraft {
    PolicyDraft { batch: "1".parse().ok(), soak: Some(Span::from_secs(10)), ..PolicyDraft::default() }
}

#[test]
fn a_partial_report_moves_only_whose_turn_it_is() {
    let mut web = Controller::new("production", one_at_a_time());
    web.start("v1");
    assert_eq!(web.report("a=v0 b=v0"), "a=v1 b=-");
    assert_eq!(web.report("a=v1"), "a=v1");
    assert_eq!(web.pass(9), Some(web.now.plus(Span::from_secs(1))), "it wants to look when the soak is over");
    web.pass(1);
    assert_eq!(web.report("b=v0"), "b=v1");
    web.report("b=v1");
    web.pass(10);
    assert_eq!(web.good().as_deref(), Some("v1"));
}

#[test]
fn a_board_knows_whether_many_targets_change_at_the_next_decision() {
    let mut web = Controller::new("production", one_at_a_time());
    web.start("v1");
    web.report("a=v1 b=v1 c=v1");
    let due = |web: &Controller, limit, seconds| {
        let board = web.engine.board(&web.namespace, &web.entity).unwrap();
        board.has_due_beyond(limit, web.now.plus(Span::from_secs(seconds)))
    };
    assert!(!due(&web, 0, 9), "all soak");
    assert_eq!([due(&web, 0, 10), due(&web, 2, 10), due(&web, 3, 10)], [true, true, false]);
    web.pass(10);
    assert!(!due(&web, 0, 0), "all are decided");
}

#[test]
fn the_same_entity_in_two_namespaces_is_two() {
    let mut web = Controller::new("production", one_at_a_time());
    web.start("v1");
    web.report("a=v1");
    web.namespace = "staging".parse().unwrap();
    assert_eq!(web.good(), None);
    assert_eq!(web.report("a=v0"), "a=-");
}

#[test]
fn a_report_after_the_deadline_ends_it() {
    let mut web = Controller::new("production", one_at_a_time());
    web.start("v1");
    web.report("a=v1 b=v1");
    web.pass(10);
    assert_eq!(web.good().as_deref(), Some("v1"));
    web.start("v2");
    assert_eq!(web.report("a=v1 b=v1"), "a=v2 b=v1");
    web.report("a=v1 b=v1");
    web.pass(130);
    assert_eq!(
        web.report("a=v1 b=v1"),
        "a=v1 b=v1",
        "its deadline passed, and it is not there: it goes back"
    );
    web.report("a=v1");
    let states: Vec<_> =
        web.engine.history(&web.namespace, &web.entity).map(|rollout| rollout.state.clone()).collect();
    assert_eq!(states, [RolloutState::Succeeded, RolloutState::RolledBack]);
    let kinds: Vec<_> =
        web.engine.take_events(&web.namespace, &web.entity).iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&"target.failed") && kinds.ends_with(&["rollout.rolled_back"]), "{kinds:?}");
    assert!(web.engine.take_events(&web.namespace, &web.entity).is_empty());
}

#[test]
fn a_pause_holds_and_a_removed_target_is_no_target() {
    let mut web = Controller::new("production", one_at_a_time());
    web.start("v1");
    assert_eq!(web.report("a=v0 b=v0"), "a=v1 b=-");
    let (now, intent) = (web.now, Annotation::of("alice".parse().unwrap(), web.now));
    let (namespace, entity) = (web.namespace.clone(), web.entity.clone());
    web.engine
        .operate(&namespace, &entity, now, |entity, progress| operations::pause(entity, progress, intent))
        .unwrap();
    web.report("a=v1");
    web.pass(10);
    assert_eq!(web.report("b=v0"), "b=-", "paused");
    web.engine.operate(&namespace, &entity, now, operations::resume).unwrap();
    web.engine.remove(&namespace, &entity, &"b".parse().unwrap(), now);
    assert_eq!(web.good().as_deref(), Some("v1"), "a is the only one left, and it is well");
}
