//! Settles targets: turns what reports and passing time mean for single targets into outcomes.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::event_text;
use super::pass::Pass;
use crate::records::event::EventDraft;
use crate::records::evidence::Evidence;
use crate::records::report::TargetActivity;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::board::member::{BoardMember, UpcomingChange};
use crate::rollout::board::phase::TargetPhase;
use crate::rollout::observation::{Observation, PresenceState};
use crate::words::name::TargetName;
use crate::words::plural::Plural;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Settles every target that is due; returns whether any was.
pub(super) fn settle(pass: &mut Pass<'_>) -> bool {
    let started_by = deadline_limit(pass);
    let due = pass.board.tree().due(pass.now, started_by);
    for name in &due {
        if let Some(member) = pass.board.member(name).cloned() {
            settle_one(pass, &member);
        }
    }
    !due.is_empty()
}

/// Deadlines that started by this time have passed; `None` when none can have.
fn deadline_limit(pass: &Pass<'_>) -> Option<Timestamp> {
    let shown = pass.board.progress().clock.at(pass.now).as_millis();
    shown.checked_sub(pass.board.entity().policy.deadline.as_millis()).map(Timestamp::from_millis)
}

fn settle_one(pass: &mut Pass<'_>, member: &BoardMember) {
    let now = pass.now;
    match (member.coming(pass.board.frame()), &member.state) {
        (UpcomingChange::Removal, _) => pass.put(&member.name, None, None),
        (UpcomingChange::ClockTurn, Some(state)) => turn_clock(pass, member, state),
        (UpcomingChange::Failure(evidence), Some(state)) => fail(pass, member, state, evidence),
        (UpcomingChange::Success(at), Some(state)) if at <= now => succeed(pass, &member.name, state),
        (UpcomingChange::Adoption(at), _) if at <= now => adopt(pass, member),
        (UpcomingChange::AlreadyGood, _) => rest_on_good(pass, member),
        (UpcomingChange::Carry, Some(state)) => {
            let (rollout, purpose) = (pass.board.progress().last, AssignmentPurpose::Update);
            pass.put(&member.name, Some(TargetState { rollout, purpose, ..state.clone() }), None);
        }
        (UpcomingChange::FailedLater, Some(state)) => fail_later(pass, &member.name, state),
        (UpcomingChange::Nothing | UpcomingChange::Success(_) | UpcomingChange::Adoption(_), Some(state)) => {
            run_out(pass, member, state);
        }
        (
            UpcomingChange::Nothing
            | UpcomingChange::ClockTurn
            | UpcomingChange::Failure(_)
            | UpcomingChange::Success(_)
            | UpcomingChange::Adoption(_)
            | UpcomingChange::Carry
            | UpcomingChange::FailedLater,
            None,
        ) => {}
    }
}

fn turn_clock(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    let shown = pass.board.progress().clock.at(pass.now);
    let clock = match state.clock {
        DeadlineClock::Running { from } => DeadlineClock::Stopped { spent: shown.since(from) },
        DeadlineClock::Stopped { spent } => DeadlineClock::Running { from: shown.minus(spent) },
    };
    pass.put(&member.name, Some(TargetState { clock, ..state.clone() }), None);
}

fn succeed(pass: &mut Pass<'_>, name: &TargetName, state: &TargetState) {
    let soaked = pass.board.entity().policy.soak;
    let event = (state.purpose == AssignmentPurpose::Update)
        .then(|| event(pass, "target.succeeded", name, &state.version, format!("healthy for {soaked}")));
    let outcome = AssignmentOutcome::Succeeded { at: pass.now, failed_later: None };
    pass.put(name, Some(TargetState { outcome, ..state.clone() }), event);
}

fn fail(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState, evidence: Arc<Evidence>) {
    let counts =
        [TargetPhase::InFlight, TargetPhase::HeldFlight, TargetPhase::Succeeded, TargetPhase::Adopted];
    if counts.contains(&member.place.phase) {
        pass.keep_failure(&member.name, &evidence);
    }
    let event = event(pass, "target.failed", &member.name, &state.version, evidence.summary.clone());
    let outcome = AssignmentOutcome::Failed { at: pass.now, evidence };
    pass.put(&member.name, Some(TargetState { outcome, ..state.clone() }), Some(event));
}

fn fail_later(pass: &mut Pass<'_>, name: &TargetName, state: &TargetState) {
    if let AssignmentOutcome::Succeeded { at, .. } = state.outcome {
        // A failure long after is not attributed to the version: it is stored, but without an event.
        let late = pass.now.since(at);
        let cause = format!("failing, {late} after it had succeeded; not rolled back");
        let event = (late <= pass.board.entity().policy.settle)
            .then(|| event(pass, "target.late_failure", name, &state.version, cause));
        let outcome = AssignmentOutcome::Succeeded { at, failed_later: Some(pass.now) };
        pass.put(name, Some(TargetState { outcome, ..state.clone() }), event);
    }
}

/// The deadline has passed: a target that reports has failed, a silent one counts as unreachable.
fn run_out(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    let Some(observation) = &member.observation else { return };
    if !state.is_in_flight() {
        return;
    }
    let deadline = pass.board.entity().policy.deadline;
    match observation.contact {
        PresenceState::Up => {
            let summary = overdue(observation, state, deadline);
            fail(pass, member, state, Arc::new(Evidence { summary, ..Evidence::default() }));
        }
        PresenceState::Suspect | PresenceState::Unreachable | PresenceState::Never => {
            let cause = format!("unreachable within its deadline of {deadline}");
            let event = event(pass, "target.unreachable", &member.name, &state.version, cause);
            let outcome = AssignmentOutcome::Unreachable { at: pass.now };
            pass.put(&member.name, Some(TargetState { outcome, ..state.clone() }), Some(event));
        }
    }
}

fn overdue(observation: &Observation, state: &TargetState, deadline: Span) -> String {
    let running = match &observation.running {
        Some(version) => format!("runs {version}"),
        None => "runs no known version".into(),
    };
    let activity = match &observation.activity {
        _ if observation.answering != state.assignment => "has not answered".into(),
        TargetActivity::Nothing => "has not been healthy for long enough".into(),
        TargetActivity::Applying { attempt } => format!("is still applying, attempt {attempt}"),
        TargetActivity::Waiting { reason } => format!("waits: {reason}"),
        TargetActivity::Failed { attempts, evidence } => {
            format!("failed {}: {}", Plural(u64::from(*attempts), "attempt"), evidence.summary)
        }
    };
    format!("not on {} within its deadline of {deadline}: {running}, {activity}", state.version)
}

/// The target was brought to the rolling version by hand, or by an older rollout.
fn adopt(pass: &mut Pass<'_>, member: &BoardMember) {
    let Some(version) = pass.board.frame().rolling.clone() else { return };
    let told = member.state.as_ref().is_some_and(|state| state.version == version);
    let cause = "runs the version without an assignment".into();
    let event = (!told).then(|| event(pass, "target.adopted", &member.name, &version, cause));
    let mut state = pass.assignment(member, version, AssignmentPurpose::Adopted);
    state.outcome = AssignmentOutcome::Succeeded { at: pass.now, failed_later: None };
    pass.put(&member.name, Some(state), event);
}

/// A newcomer that runs last known good already.
fn rest_on_good(pass: &mut Pass<'_>, member: &BoardMember) {
    let Some(version) = pass.board.frame().good.clone() else { return };
    let mut state = pass.assignment(member, version, AssignmentPurpose::KnownGood);
    state.outcome = AssignmentOutcome::Succeeded { at: pass.now, failed_later: None };
    pass.put(&member.name, Some(state), None);
}

fn event(
    pass: &Pass<'_>,
    kind: &'static str,
    target: &TargetName,
    version: &Version,
    cause: String,
) -> EventDraft {
    event_text::target(kind, &pass.board.entity().name, target, version, cause)
}
