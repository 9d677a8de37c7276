//! What can happen in a random history, and how it happens to the world.

use std::sync::Arc;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::Entity;
use bellwether_core::records::freeze::{Freeze, FreezeKind, FreezeScope};
use bellwether_core::records::policy::ordering::PolicyStage;
use bellwether_core::records::policy::{OnFailure, Policy, PolicyDraft, Supersede};
use bellwether_core::records::report::{TargetActivity, TargetHealth};
use bellwether_core::rollout::observation::PresenceState;
use bellwether_core::rollout::operations::{self, OperationRefusal};
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::percent::{Amount, Percent};
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::Span;
use bellwether_core::words::version::Version;
use proptest::prelude::*;

use crate::world::{World, evidence, newcomer};

/// Most targets of a history: few, so that thresholds are crossed often.
pub(crate) const TARGETS: u8 = 9;

/// One thing that happens. Targets and versions are numbers, so that a failing history shrinks to small ones.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Time(u8),
    Comply(u8),
    ComplyAll,
    Fail(u8),
    ChecksFail(u8),
    OldReport(u8, u8),
    ByHand(u8, u8),
    Applying(u8),
    Contact(u8, PresenceState),
    Held(u8, bool),
    Join(u8, u8),
    Leave(u8),
    Start(u8),
    Retry,
    Undo,
    Abort,
    Pause,
    Resume,
    Approve,
    Policy(Box<Policy>),
    Label(u8, u8),
    Waits(u8),
    Freeze(u8, bool),
    Thaw,
    ClockBack(u8),
    Crash(u8),
    Restart,
}

fn contact() -> impl Strategy<Value = PresenceState> {
    prop_oneof![
        3 => Just(PresenceState::Up),
        1 => Just(PresenceState::Suspect),
        1 => Just(PresenceState::Unreachable),
        1 => Just(PresenceState::Never),
    ]
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let target = || 0..TARGETS;
    let version = || 0_u8..4;
    prop_oneof![
        6 => (1_u8..90).prop_map(Act::Time),
        8 => target().prop_map(Act::Comply),
        6 => Just(Act::ComplyAll),
        3 => target().prop_map(Act::Fail),
        2 => target().prop_map(Act::ChecksFail),
        1 => (target(), version()).prop_map(|(target, version)| Act::OldReport(target, version)),
        1 => (target(), version()).prop_map(|(target, version)| Act::ByHand(target, version)),
        1 => target().prop_map(Act::Applying),
        4 => (target(), contact()).prop_map(|(target, contact)| Act::Contact(target, contact)),
        2 => (target(), any::<bool>()).prop_map(|(target, on)| Act::Held(target, on)),
        3 => (target(), version()).prop_map(|(target, version)| Act::Join(target, version)),
        2 => target().prop_map(Act::Leave),
        5 => version().prop_map(Act::Start),
        1 => Just(Act::Retry),
        1 => Just(Act::Undo),
        1 => Just(Act::Abort),
        1 => Just(Act::Pause),
        3 => Just(Act::Resume),
        2 => Just(Act::Approve),
        2 => policy().prop_map(|policy| Act::Policy(Box::new(policy))),
        3 => (target(), 0_u8..4).prop_map(|(target, zone)| Act::Label(target, zone)),
        1 => target().prop_map(Act::Waits),
        1 => (0_u8..4, any::<bool>()).prop_map(|(scope, stop)| Act::Freeze(scope, stop)),
        2 => Just(Act::Thaw),
        1 => (1_u8..90).prop_map(Act::ClockBack),
        3 => (0_u8..8).prop_map(Act::Crash),
        1 => Just(Act::Restart),
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        (0_u32..6).prop_map(Amount::Count),
        (0_u8..=100).prop_map(|share| Amount::Share(Percent::new(share).unwrap())),
    ]
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let on_failure = prop_oneof![4 => Just(OnFailure::Rollback), 1 => Just(OnFailure::Pause), 1 => Just(OnFailure::Continue)];
    let supersede = prop_oneof![3 => Just(Supersede::Replace), 1 => Just(Supersede::Finish), 1 => Just(Supersede::Refuse)];
    let shares = (amount(), 1_u8..=100, proptest::option::of(0_u32..4), amount(), amount());
    let further =
        (stages(), proptest::option::of(amount()), 0_u8..4, 0_u8..3, proptest::option::of(1_u64..200));
    let rest = (0_u64..40, 1_u64..60, any::<bool>(), 0_u32..2, on_failure, supersede);
    (shares, rest, further).prop_map(|((batch, success, failures, unreachable, rollback), rest, further)| {
        let (stages, max_unavailable, domain, order, progress) = further;
        let (soak, apply, fail_fast, retries, on_failure, supersede) = rest;
        let rollback = if rollback.is_zero() { Amount::Count(1) } else { rollback };
        Policy::new(PolicyDraft {
            batch: Some(batch),
            success: Percent::new(success),
            // A success of everything leaves nothing to fail: a count beside it is refused.
            failures: failures.filter(|_| success < 100).map(Amount::Count),
            unreachable: Some(unreachable),
            soak: Some(Span::from_secs(soak)),
            deadline: Some(Span::from_secs(soak + apply)),
            fail_fast: Some(fail_fast),
            retries: Some(retries),
            on_failure: Some(on_failure),
            rollback: Some(rollback),
            supersede: Some(supersede),
            stages: Some(stages),
            max_unavailable: max_unavailable.filter(|most| !most.is_zero()),
            domain: ["zone", "zone:c,a"].get(usize::from(domain)).and_then(|text| text.parse().ok()),
            order: ["shuffle:3", "label:zone"].get(usize::from(order)).and_then(|text| text.parse().ok()),
            progress: progress.map(|progress| Span::from_secs(soak + progress)),
            ..PolicyDraft::default()
        })
        .unwrap()
    })
}

/// None, or a few that grow.
fn stages() -> impl Strategy<Value = Vec<PolicyStage>> {
    let stage = |text: &str| text.parse::<PolicyStage>().unwrap();
    prop_oneof![
        3 => Just(Vec::new()),
        1 => Just(vec![stage("1"), stage("100%")]),
        1 => Just(vec![stage("2"), stage("50% approve"), stage("100%")]),
    ]
}

fn name(target: u8) -> TargetName {
    format!("web-{target}").parse().unwrap()
}

pub(crate) fn version(number: u8) -> Version {
    format!("v{number}").parse().unwrap()
}

impl World {
    pub(crate) fn act(&mut self, act: &Act) {
        match act {
            Act::Time(seconds) => self.pass_time(Span::from_secs(u64::from(*seconds))),
            Act::ComplyAll => (0..TARGETS).for_each(|target| self.comply(target)),
            Act::Comply(target) => self.comply(*target),
            Act::Start(number) => self.person(|world| {
                let intent = world.intent("");
                operations::start(&world.entity, &world.progress, version(*number), intent)
            }),
            Act::Retry => {
                self.person(|world| {
                    operations::retry(&world.entity, &world.progress, None, world.intent(""))
                });
            }
            Act::Undo => {
                self.person(|world| operations::undo(&world.entity, &world.progress, world.intent("")))
            }
            Act::Abort => {
                self.person(|world| operations::abort(&world.entity, &world.progress, world.intent("")))
            }
            Act::Pause => {
                self.person(|world| operations::pause(&world.entity, &world.progress, world.intent("")))
            }
            Act::Resume => self.person(|world| operations::resume(&world.entity, &world.progress)),
            Act::Policy(policy) => self.set_policy(Policy::clone(policy)),
            Act::Approve => self.person(|world| {
                operations::approve(&world.entity, world.active().as_ref(), None, world.intent(""))
            }),
            Act::Freeze(scope, stop) => self.freeze(*scope, *stop),
            Act::Thaw => self.environment.freezes.clear(),
            Act::ClockBack(seconds) => self.now = self.now.minus(Span::from_secs(u64::from(*seconds))),
            Act::Restart | Act::Crash(_) => self.board = self.rebuilt(),
            Act::Join(target, number) => {
                let running = (*number > 0).then(|| version(*number));
                self.see(&name(*target), Some(newcomer(running.as_ref(), self.now)));
            }
            Act::Fail(target)
            | Act::ChecksFail(target)
            | Act::OldReport(target, _)
            | Act::ByHand(target, _)
            | Act::Applying(target)
            | Act::Contact(target, _)
            | Act::Held(target, _)
            | Act::Label(target, _)
            | Act::Waits(target)
            | Act::Leave(target) => {
                if self.observations.contains_key(&name(*target)) {
                    self.target_acts(&name(*target), act);
                }
            }
        }
    }

    fn person(&mut self, operation: impl FnOnce(&Self) -> Result<Entity, OperationRefusal>) {
        let result = operation(self);
        drop(self.operate(result));
    }

    fn target_acts(&mut self, name: &TargetName, act: &Act) {
        let answering = self.assignment(name);
        match act {
            Act::Fail(_) => self.fails(name, 2, "exit code 1"),
            Act::ChecksFail(_) => self.change(name, |observation| {
                observation.answering = answering;
                observation.activity = TargetActivity::Nothing;
                observation.health = TargetHealth::Failing { evidence: evidence("http 500") };
                observation.healthy_since = None;
            }),
            Act::OldReport(_, number) => {
                self.runs(name, &version(*number));
                let older = AssignmentNumber::new(answering.get().saturating_sub(1));
                self.change(name, |observation| observation.answering = older);
            }
            Act::ByHand(_, number) => self.runs(name, &version(*number)),
            Act::Applying(_) => self.change(name, |observation| {
                observation.answering = answering;
                observation.activity = TargetActivity::Applying { attempt: 1, waiting_for: None };
            }),
            Act::Contact(_, contact) => self.change(name, |observation| observation.contact = *contact),
            Act::Held(_, on) => self.change(name, |observation| observation.held = on.then(|| "disk".into())),
            Act::Label(_, zone) => self.change(name, |observation| {
                let zone = ["zone=a", "zone=b", "zone=c"].get(usize::from(*zone));
                match zone.map(|label| label.parse().unwrap()) {
                    Some(label) => observation.labels.set(label).unwrap(),
                    None => drop(observation.labels.remove("zone")),
                }
            }),
            Act::Waits(_) => self.change(name, |observation| {
                observation.answering = answering;
                observation.activity = TargetActivity::Waiting { reason: "db".into() };
            }),
            Act::Leave(_) => self.see(name, None),
            Act::Time(_)
            | Act::Comply(_)
            | Act::ComplyAll
            | Act::Join(..)
            | Act::Start(_)
            | Act::Retry
            | Act::Undo
            | Act::Abort
            | Act::Pause
            | Act::Resume
            | Act::Approve
            | Act::Freeze(..)
            | Act::Thaw
            | Act::ClockBack(_)
            | Act::Policy(_)
            | Act::Crash(_)
            | Act::Restart => {}
        }
    }

    fn freeze(&mut self, scope: u8, stop: bool) {
        let scope = match scope {
            0 => FreezeScope::Everything,
            1 => FreezeScope::Entity("web".parse().unwrap()),
            2 => FreezeScope::Targets(Selector::parse("zone=a").unwrap()),
            _ => FreezeScope::Entity("db".parse().unwrap()),
        };
        let kind = if stop { FreezeKind::Stop } else { FreezeKind::Freeze };
        let (name, by) = ("quiet".parse().unwrap(), "alice".parse().unwrap());
        let until = Some(self.now.plus(Span::from_secs(120)));
        let (labels, annotation) =
            (Labels::default(), Annotation { by, reason: String::new(), at: self.now });
        let freeze = Freeze { name, scope, kind, annotation, until, labels };
        self.environment.freezes = vec![Arc::new(freeze)];
    }

    fn comply(&mut self, target: u8) {
        let name = name(target);
        let Some(observation) = self.observations.get(&name) else { return };
        let assigned = self.states.get(&name).map(|state| state.version.clone());
        if let Some(version) = assigned.or(observation.running.clone())
            && observation.contact == PresenceState::Up
        {
            self.runs(&name, &version);
        }
    }
}
