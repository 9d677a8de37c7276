//! The engine as a library: one thread through it as a controller would use it.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::rollout::RolloutState;
use bellwether_core::rollout::operations;
use bellwether_core::trial::engine::{EngineChange, EngineStore, RolloutEngine, TargetReport};
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
    web.pass(9);
    assert_eq!(web.report("a=v1 b=v0"), "a=v1 b=-", "it soaks");
    web.pass(1);
    assert_eq!(web.report("b=v0"), "b=-", "nobody reports that it is healthy still");
    assert_eq!(web.report("a=v1 b=v0"), "a=v1 b=v1");
    web.report("b=v1");
    web.pass(10);
    web.report("b=v1");
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
    assert!(!due(&web, 0, 1_000), "all soak, and only a report ends that");
    let (first, deadline) = (web.engine.board(&web.namespace, &web.entity).unwrap().counts(), 130);
    assert_eq!((first.in_flight, first.succeeded), (0, 0), "they run it already: none is assigned anything");
    web.pass(deadline);
    web.report("a=v1 b=v1 c=v1");
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
    web.report("a=v1 b=v1");
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
    assert_eq!(web.report("a=v1 b=v0"), "a=v1 b=-", "paused");
    web.engine.operate(&namespace, &entity, now, operations::resume).unwrap();
    web.engine.remove(&namespace, &entity, &"b".parse().unwrap(), now);
    assert_eq!(web.good().as_deref(), Some("v1"), "a is the only one left, and it is well");
}

/// Keeps the records in memory, and can refuse to.
#[derive(Default)]
struct Records {
    kept: BTreeMap<(Namespace, Key), Record>,
    refuses: bool,
}

impl EngineStore for Records {
    type Error = &'static str;

    fn load(&mut self) -> Result<Vec<(Namespace, Record)>, Self::Error> {
        Ok(self.kept.iter().map(|((namespace, _), record)| (namespace.clone(), record.clone())).collect())
    }

    fn save(&mut self, changes: &[(Namespace, EngineChange)]) -> Result<(), Self::Error> {
        if self.refuses {
            return Err("full");
        }
        for (namespace, change) in changes {
            let key = |key: &Key| (namespace.clone(), key.clone());
            match change {
                EngineChange::Put(record) => drop(self.kept.insert(key(&record.key()), (**record).clone())),
                EngineChange::Delete(gone) => drop(self.kept.remove(&key(gone))),
            }
        }
        Ok(())
    }
}

/// What matters of a controller's entity.
fn state(of: &Controller) -> (Option<String>, Vec<String>, Vec<String>) {
    let rollouts = of.engine.history(&of.namespace, &of.entity);
    let rollouts =
        rollouts.map(|rollout| format!("{} {} {:?}", rollout.version, rollout.state, rollout.counts));
    let board = of.engine.board(&of.namespace, &of.entity).unwrap();
    let targets = board.targets().map(|target| {
        let state = target.state.map(|state| (&state.version, state.assignment, state.purpose));
        format!("{} {state:?}", target.name)
    });
    (of.good(), rollouts.collect(), targets.collect())
}

#[test]
fn an_engine_that_is_loaded_again_after_every_call_does_what_one_that_was_not_does() {
    let (mut one, mut other) =
        (Controller::new("production", one_at_a_time()), Controller::new("production", one_at_a_time()));
    let mut store = Records::default();
    let mut steps: Vec<(&str, u64)> = vec![("!v1", 0), ("a=v1 b=v1 c=v1", 0), ("", 10)];
    steps.extend([("!v2", 1), ("a=v1 b=v1 c=v1", 1), ("a=v2 b=v1 c=v1", 2), ("a=v2", 10), ("b=v1", 0)]);
    steps.extend([("b=v2", 1), ("a=v2 b=v2 c=v1", 10), ("c=v2", 1), ("c=v2", 10), ("!v3", 5), ("a=v2", 1)]);
    steps.extend([("a=! b=v2 c=v2", 1), ("a=v2 b=v2 c=v2", 1), ("a=v2 b=v2 c=v2", 10)]);
    for (step, seconds) in steps {
        let mut said = [String::new(), String::new()];
        for (controller, said) in [&mut one, &mut other].into_iter().zip(&mut said) {
            controller.pass(seconds);
            match step.strip_prefix('!') {
                Some(version) => controller.start(version),
                None if step.is_empty() => {}
                None => *said = controller.report(step),
            }
        }
        assert_eq!(said[0], said[1], "after {step}");
        other.engine.save(&mut store).unwrap();
        let saved = store.kept.clone();
        other.engine.save(&mut store).unwrap();
        assert_eq!(store.kept, saved, "nothing is left to save");
        other.engine = RolloutEngine::load(&mut store, other.now).unwrap();
        other.engine.tick(other.now);
        assert_eq!(state(&one), state(&other), "after {step}");
    }
    assert_eq!(one.good().as_deref(), Some("v2"), "{:?}", state(&one));
}

#[test]
fn a_time_without_an_engine_makes_no_target_fail_or_silent_and_a_refused_save_is_repeated() {
    let mut web = Controller::new("production", one_at_a_time());
    let mut store = Records::default();
    web.start("v1");
    assert_eq!(web.report("a=v0 b=v0"), "a=v1 b=-");
    store.refuses = true;
    assert_eq!(web.engine.save(&mut store), Err("full"));
    store.refuses = false;
    web.engine.save(&mut store).unwrap();
    web.now = web.now.plus(Span::from_secs(7 * 86_400));
    web.engine = RolloutEngine::load(&mut store, web.now).unwrap();
    web.pass(0);
    assert_eq!(web.report("a=v1 b=v0"), "a=v1 b=-", "nobody failed or was removed");
    web.pass(10);
    assert_eq!(web.report("a=v1 b=v0"), "a=v1 b=v1");
    web.report("a=v1 b=v1");
    web.pass(10);
    web.report("a=v1 b=v1");
    assert_eq!(web.good().as_deref(), Some("v1"));
}
