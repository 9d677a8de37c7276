//! Settles targets: turns what reports and passing time mean for single targets into outcomes.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::event_text;
use super::pass::Pass;
use crate::records::entity::TargetSource;
use crate::records::event::EventDraft;
use crate::records::evidence::Evidence;
use crate::records::report::TargetActivity;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::board::member::{BoardMember, ClockCourse, UpcomingChange};
use crate::rollout::board::phase::TargetPhase;
use crate::rollout::board::tally::NEVER;
use crate::rollout::observation::Observation;
use crate::words::name::TargetName;
use crate::words::plural::Plural;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Settles every target that is due; returns whether any was.
pub(super) fn settle(pass: &mut Pass<'_>) -> bool {
    let mut changed = begin_watch(pass);
    let started_by = deadline_limit(pass);
    let due = pass.board.tree().due(pass.now, started_by);
    for name in &due {
        if let Some(member) = pass.board.member(name).cloned() {
            changed |= settle_one(pass, &member);
        }
    }
    changed
}

/// Starts all deadlines anew when the watch over the targets began after the last one that was stored.
fn begin_watch(pass: &mut Pass<'_>) -> bool {
    let since = pass.environment.watch.since;
    let progress = pass.board.progress();
    let runs = progress.active().is_some() || pass.board.tree().tally().clock_from != NEVER;
    if progress.clock.watched_since >= since || !runs {
        return false;
    }
    let mut draft = pass.draft();
    let now = pass.now;
    draft.change_progress(|progress| progress.clock = progress.clock.watched(since, now));
    pass.take(draft)
}

/// Deadlines that started by this time have passed; `None` when none can have.
fn deadline_limit(pass: &Pass<'_>) -> Option<Timestamp> {
    let clock = pass.board.progress().clock;
    let shown = clock.at(pass.now).as_millis();
    let limit =
        shown.checked_sub(pass.board.entity().policy.deadline.as_millis()).map(Timestamp::from_millis);
    limit.filter(|limit| *limit >= clock.floor)
}

/// Settles one target; returns whether that changed it. Nothing follows from time alone while it could not report.
fn settle_one(pass: &mut Pass<'_>, member: &BoardMember) -> bool {
    let coming = member.coming(pass.board.frame());
    let by_time = match coming {
        UpcomingChange::Nothing
        | UpcomingChange::Success(_)
        | UpcomingChange::Adoption(_)
        | UpcomingChange::RunOut(_) => true,
        UpcomingChange::Removal
        | UpcomingChange::ClockTurn
        | UpcomingChange::Failure(_)
        | UpcomingChange::AlreadyGood
        | UpcomingChange::Carry
        | UpcomingChange::Return
        | UpcomingChange::FailedLater => false,
    };
    let watch = pass.environment.watch;
    if by_time && member.observation.as_ref().is_some_and(|seen| !watch.covers(seen, pass.now)) {
        pass.look_again(Some(watch.settled()));
        return false;
    }
    settle_coming(pass, member, coming);
    true
}

fn settle_coming(pass: &mut Pass<'_>, member: &BoardMember, coming: UpcomingChange) {
    let now = pass.now;
    match (coming, &member.state) {
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
        (UpcomingChange::Return, Some(state)) => take_back_in_flight(pass, member, state),
        (UpcomingChange::FailedLater, Some(state)) => fail_later(pass, &member.name, state),
        (UpcomingChange::RunOut(at), Some(state)) if at <= now => run_out(pass, member, state),
        (
            UpcomingChange::Nothing
            | UpcomingChange::Success(_)
            | UpcomingChange::Adoption(_)
            | UpcomingChange::RunOut(_),
            Some(state),
        ) => pass_deadline(pass, member, state),
        (
            UpcomingChange::Nothing
            | UpcomingChange::ClockTurn
            | UpcomingChange::Failure(_)
            | UpcomingChange::Success(_)
            | UpcomingChange::Adoption(_)
            | UpcomingChange::RunOut(_)
            | UpcomingChange::Carry
            | UpcomingChange::Return
            | UpcomingChange::FailedLater,
            None,
        ) => {}
    }
}

fn turn_clock(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    let Some(observation) = &member.observation else { return };
    let shown = pass.board.progress().clock.at(pass.now);
    let proved = proved_contact(pass, observation);
    let spent = match state.clock {
        DeadlineClock::Running { from, .. } => shown.since(from.max(pass.board.progress().clock.floor)),
        DeadlineClock::Stopped { spent } | DeadlineClock::Silent { spent, .. } => spent,
        DeadlineClock::Overdue { at, .. } => pass.board.entity().policy.deadline.plus(pass.now.since(at)),
    };
    let unseen = matches!(state.clock, DeadlineClock::Running { .. } | DeadlineClock::Overdue { .. });
    // Not before the contact that it counts, lest it be started again and again.
    let set_at = pass.now.max(observation.contact_since);
    let clock = match ClockCourse::of(pass.board.frame(), observation, state) {
        ClockCourse::StandsStill => DeadlineClock::Stopped { spent },
        ClockCourse::Silent if unseen => {
            DeadlineClock::Silent { since: shown, spent: spent.minus(pass.now.since(proved)) }
        }
        ClockCourse::Silent => DeadlineClock::Silent { since: shown, spent },
        // Contact was lost and regained between two looks: nobody knows for how long.
        ClockCourse::Runs if unseen => DeadlineClock::Running { from: shown, set_at },
        ClockCourse::Runs => DeadlineClock::Running { from: shown.minus(spent), set_at },
    };
    pass.put(&member.name, Some(TargetState { clock, ..state.clone() }), None);
}

/// Until when contact with a target that was just lost is proved: its last report, or, for a node, what its server saw.
fn proved_contact(pass: &Pass<'_>, observation: &Observation) -> Timestamp {
    match pass.board.entity().source {
        TargetSource::External(_) => observation.reported_at,
        TargetSource::Nodes(_) => pass.now.minus(pass.environment.watch.grace),
    }
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

/// The deadline has passed, or a silence as long. A target in contact is judged by what it reports from now on, or
/// once its contact has lasted; one out of contact is given up for this rollout, and is no evidence against the version.
fn pass_deadline(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    if !state.is_in_flight() || member.observation.is_none() {
        return;
    }
    let deadline = pass.board.entity().policy.deadline;
    match state.clock {
        DeadlineClock::Running { from, .. } => {
            let clock = pass.board.progress().clock;
            let at = clock.when(from.max(clock.floor).plus(deadline)).unwrap_or(pass.now);
            let reports_alone = matches!(pass.board.entity().source, TargetSource::External(_));
            let until = (!reports_alone).then(|| at.plus(pass.environment.watch.grace));
            let clock = DeadlineClock::Overdue { at, until };
            pass.put(&member.name, Some(TargetState { clock, ..state.clone() }), None);
        }
        DeadlineClock::Silent { .. } => {
            give_up(pass, member, state, format!("out of contact for {deadline}"))
        }
        DeadlineClock::Stopped { .. } | DeadlineClock::Overdue { .. } => {}
    }
}

/// A target past its deadline reported again, or could have: it has failed, unless it never accepted the assignment.
fn run_out(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    let Some(observation) = &member.observation else { return };
    let deadline = pass.board.entity().policy.deadline;
    if observation.answering == state.assignment {
        let summary = overdue(observation, state, deadline);
        fail(pass, member, state, Arc::new(Evidence { summary, ..Evidence::default() }));
    } else {
        give_up(pass, member, state, format!("the assignment was not accepted within {deadline}"));
    }
}

/// A target that was given up is heard of again: what it does counts, and its clock goes on.
fn take_back_in_flight(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    let shown = pass.board.progress().clock.at(pass.now);
    let spent = match state.clock {
        DeadlineClock::Silent { spent, .. } => spent,
        DeadlineClock::Running { .. } | DeadlineClock::Stopped { .. } | DeadlineClock::Overdue { .. } => {
            Span::ZERO
        }
    };
    let clock = DeadlineClock::Running { from: shown.minus(spent), set_at: pass.now };
    let event = event(pass, "target.returned", &member.name, &state.version, "it is in contact again".into());
    let state = TargetState { clock, outcome: AssignmentOutcome::InFlight, ..state.clone() };
    pass.put(&member.name, Some(state), Some(event));
}

fn give_up(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState, cause: String) {
    let event = event(pass, "target.unreachable", &member.name, &state.version, cause);
    let outcome = AssignmentOutcome::Unreachable { at: pass.now };
    pass.put(&member.name, Some(TargetState { outcome, ..state.clone() }), Some(event));
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
