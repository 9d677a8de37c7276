use super::super::memory::StepOutcome;
use super::*;
use crate::records::evidence::Evidence;
use crate::records::order::{ApplyMethod, Assignment};
use crate::words::time::Span;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn evidence(summary: &str) -> Evidence {
    Evidence { summary: summary.into(), ..Evidence::default() }
}

fn assigned(text: &str) -> EntityMemory {
    let mut memory = EntityMemory::default();
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version: version(text),
        number: AssignmentNumber::new(4),
        method: ApplyMethod::Apply,
        binding: Default::default(),
    });
    memory
}

fn account(memory: &EntityMemory, busy: &AgentActivity) -> EntityAccount {
    EntityAccount::of(memory, busy, &CheckSummary::NoChecks, None)
}

#[test]
fn a_failed_attempt_stays_visible_until_the_next_one_runs() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    memory.ended(
        ApplyProgress::Static,
        StepOutcome::Failed(evidence("static: exit code 3")),
        Timestamp::EPOCH,
        1,
    );
    let resting = account(&memory, &AgentActivity::Idle);
    assert!(
        matches!(&resting.activity, TargetActivity::Failed { attempts: 1, evidence } if evidence.summary == "static: exit code 3")
    );
    assert_eq!(resting.configure.unwrap().state, StatusState::Failed);
    assert_eq!(resting.validate.unwrap().state, StatusState::Pending);
    let again = account(&memory, &AgentActivity::Step(ApplyProgress::Static));
    assert_eq!(again.activity, TargetActivity::Applying { attempt: 2, waiting_for: None });
    assert_eq!(again.configure.unwrap().state, StatusState::Running);
    assert_eq!(again.answering, AssignmentNumber::new(4));
}

#[test]
fn what_ran_and_lost_its_health_stays_failed_until_an_attempt_at_it_passes() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    memory.ended(ApplyProgress::Validated, StepOutcome::Done, Timestamp::EPOCH, 1);
    memory.relapsed(evidence("check file is failing"), Span::ZERO, Timestamp::EPOCH, 1);
    memory.begins(&version("v1"));
    for aim in [ApplyProgress::Static, ApplyProgress::Dynamic, ApplyProgress::Validated] {
        let validate = account(&memory, &AgentActivity::Step(aim)).validate.unwrap();
        assert_eq!((validate.state, &*validate.reason), (StatusState::Failed, "check file is failing"));
    }
    memory.ended(ApplyProgress::Validated, StepOutcome::Done, Timestamp::EPOCH, 1);
    assert_eq!(account(&memory, &AgentActivity::Idle).validate.unwrap().state, StatusState::Success);
}

#[test]
fn a_failed_category_points_at_its_own_run_and_says_which_attempt_it_was() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    for _ in 0..2 {
        memory.ended(
            ApplyProgress::Static,
            StepOutcome::Failed(evidence("exit code 3")),
            Timestamp::EPOCH,
            1,
        );
    }
    let runs = FailedRuns { configure: Some("9-1".into()), validate: Some("8-1".into()) };
    let resting = account(&memory, &AgentActivity::Idle).with_runs(&runs);
    let configure = resting.configure.unwrap();
    assert_eq!((configure.attempt, configure.run.as_deref()), (2, Some("9-1")));
    assert_eq!(resting.validate.unwrap().run, None, "it has not failed this time");
    let again =
        account(&memory, &AgentActivity::Step(ApplyProgress::Static)).with_runs(&runs).configure.unwrap();
    assert_eq!((again.attempt, again.run), (3, None));
}

#[test]
fn a_wait_stays_a_wait_while_it_is_tried_again() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    memory.ended(ApplyProgress::Dynamic, StepOutcome::NotYet(evidence("needs mysql")), Timestamp::EPOCH, 1);
    for busy in [AgentActivity::Idle, AgentActivity::Step(ApplyProgress::Dynamic)] {
        let account = account(&memory, &busy);
        assert_eq!(account.activity, TargetActivity::Waiting { reason: "needs mysql".into() });
        assert_eq!(account.configure.unwrap().state, StatusState::Pending);
    }
}

/// What a command said that is not done yet is told, and told again only when it says something else than the time.
#[test]
fn what_a_command_said_that_waits_is_told_once() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    let mut told = Vec::new();
    for tail in ["12:00:01 no licence", "12:00:02 no licence", "12:00:03 no database"] {
        let evidence =
            Evidence { tail: alloc::format!("connecting\n{tail}\n"), ..evidence("exit code 75, not yet") };
        memory.ended(ApplyProgress::Dynamic, StepOutcome::NotYet(evidence), Timestamp::EPOCH, 1);
        let account = account(&memory, &AgentActivity::Idle);
        let TargetActivity::Waiting { reason } = account.activity else { panic!("it waits") };
        told.push(reason.to_string());
    }
    let line = |said: &str| alloc::format!("exit code 75, not yet; last output: {said}");
    assert_eq!(
        told,
        [line("12:00:01 no licence"), line("12:00:01 no licence"), line("12:00:03 no database")]
    );
}

#[test]
fn a_paused_node_reports_that_it_is_unhealthy() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    memory.ended(ApplyProgress::Validated, StepOutcome::Done, Timestamp::EPOCH, 1);
    let unhealthy = CheckSummary::Unhealthy(evidence("validate: exit code 1"));
    let account =
        EntityAccount::of(&memory, &AgentActivity::Held("the node is paused: x".into()), &unhealthy, None);
    let standing = account.validate.unwrap();
    assert_eq!((standing.state, standing.reason.as_str()), (StatusState::Failed, "validate: exit code 1"));
    assert_eq!(account.configure.unwrap().state, StatusState::Success);
}

#[test]
fn a_validated_version_is_a_success_in_both_categories() {
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    memory.ended(ApplyProgress::Validated, StepOutcome::Done, Timestamp::EPOCH, 1);
    let account = account(&memory, &AgentActivity::Idle);
    assert_eq!(account.activity, TargetActivity::Nothing);
    assert_eq!(account.configure.unwrap().state, StatusState::Success);
    assert_eq!(account.validate.unwrap().state, StatusState::Success);
}

#[test]
fn the_worst_entity_speaks_for_the_node() {
    let (a, b) = (EntityName::parse("a").unwrap(), EntityName::parse("b").unwrap());
    let good = StateReason { state: StatusState::Success, reason: String::new(), attempt: 0, run: None };
    let bad = StateReason {
        state: StatusState::Failed,
        reason: "exit code 1".into(),
        attempt: 2,
        run: Some("7".into()),
    };
    let (name, worst) = node([(&a, &good), (&b, &bad)].into_iter()).unwrap();
    assert_eq!((name, worst.reason.as_str(), worst.attempt), (&b, "b: exit code 1", 2));
    assert_eq!(node([(&a, &good)].into_iter()).unwrap(), (&a, good.clone()));
    assert_eq!(node(core::iter::empty()), None);
}

#[test]
fn a_step_is_reported_while_its_version_is_applied_and_not_after_a_not_yet() {
    let step = RunningStep::new("static", &"é".repeat(200), Timestamp::EPOCH, Span::from_secs(300));
    assert_eq!(step.command.chars().count(), 120);
    assert_eq!(step.line(Timestamp::from_millis(4_000)).chars().last(), Some('m'));
    let mut memory = assigned("v1");
    memory.begins(&version("v1"));
    let busy = AgentActivity::Step(ApplyProgress::Static);
    assert_eq!(account(&memory, &busy).during(Some(step.clone())).step, Some(step.clone()));
    memory.ended(ApplyProgress::Static, StepOutcome::NotYet(evidence("not yet")), Timestamp::EPOCH, 1);
    assert_eq!(account(&memory, &busy).during(Some(step)).step, None, "it would be a report per attempt");
}
