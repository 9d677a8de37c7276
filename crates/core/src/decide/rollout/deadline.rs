//! Deadlines of targets: their clocks, and what follows when one has passed. Only time in which a success could have
//! been seen counts, and the absence of a report is no evidence.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::outcome::{event, fail, give_up};
use super::pass::Pass;
use crate::records::entity::TargetSource;
use crate::records::evidence::Evidence;
use crate::records::report::TargetActivity;
use crate::records::target::{AssignmentOutcome, DeadlineClock, TargetState};
use crate::rollout::board::member::{BoardMember, ClockCourse};
use crate::rollout::board::tally::NEVER;
use crate::rollout::observation::{Observation, is_half_seen, is_unproved, refusal};
use crate::words::plural::Plural;
use crate::words::time::{Span, Timestamp};

/// Starts all deadlines anew when the watch over the targets began after the last one that was stored.
pub(super) fn begin_watch(pass: &mut Pass<'_>) -> bool {
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
pub(super) fn limit(pass: &Pass<'_>) -> Option<Timestamp> {
    let clock = pass.board.progress().clock;
    let shown = clock.at(pass.now).as_millis();
    let limit =
        shown.checked_sub(pass.board.entity().policy.deadline.as_millis()).map(Timestamp::from_millis);
    limit.filter(|limit| *limit >= clock.floor)
}

pub(super) fn turn_clock(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
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
    let set_at = pass.now.max(observation.contact_since).max(observation.answered_at);
    let clock = match ClockCourse::of(pass.board.frame(), observation, state) {
        ClockCourse::StandsStill => DeadlineClock::Stopped { spent },
        ClockCourse::Silent if unseen => {
            DeadlineClock::Silent { since: shown, spent: spent.minus(pass.now.since(proved)) }
        }
        ClockCourse::Silent => DeadlineClock::Silent { since: shown, spent },
        // It accepted its assignment only now, or contact was lost and regained between two looks: nobody knows for how long.
        ClockCourse::Runs if unseen => DeadlineClock::Running { from: shown, set_at },
        ClockCourse::Runs => DeadlineClock::Running { from: shown.minus(spent), set_at },
    };
    pass.put(&member.name, Some(TargetState { clock, ..state.clone() }), None);
}

/// Until when contact with a target that was just lost is proved: its last report, or, for a node, what its server saw.
fn proved_contact(pass: &Pass<'_>, observation: &Observation) -> Timestamp {
    match pass.board.entity().source {
        TargetSource::External(_) => observation.reported_at,
        TargetSource::Nodes(_) | TargetSource::Listed(_) => pass.now.minus(unnoticed(pass)),
    }
}

/// The longest time in which a node may be out of contact while it counts as in contact.
pub(super) fn unnoticed(pass: &Pass<'_>) -> Span {
    pass.environment.watch.grace.max(pass.environment.watch.detection)
}

/// The deadline has passed, or a silence as long. A target in contact is judged by what it reports from now on, or
/// once its contact has lasted; one out of contact is given up for this rollout, and is no evidence against the version.
pub(super) fn pass_deadline(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    if !state.is_in_flight() || member.observation.is_none() {
        return;
    }
    let deadline = pass.board.entity().policy.deadline;
    match state.clock {
        DeadlineClock::Running { from, .. } => {
            let clock = pass.board.progress().clock;
            let at = clock.when(from.max(clock.floor).plus(deadline)).unwrap_or(pass.now);
            let reports_alone = matches!(pass.board.entity().source, TargetSource::External(_));
            let until = (!reports_alone).then(|| at.plus(unnoticed(pass)));
            let clock = DeadlineClock::Overdue { at, until };
            pass.put(&member.name, Some(TargetState { clock, ..state.clone() }), None);
        }
        DeadlineClock::Silent { .. } => {
            let refusal = member.observation.as_ref().and_then(refusal);
            let cause = match refusal {
                Some(refusal) => format!("the target {refusal}, for {deadline}"),
                None => format!("out of contact for {deadline}"),
            };
            give_up(pass, member, state, cause);
        }
        DeadlineClock::Stopped { .. } | DeadlineClock::Overdue { .. } => {}
    }
}

/// A target past its deadline reported again, or could have: it has failed, unless it never accepted the assignment, or may
/// have been healthy for its soak and could not prove it.
pub(super) fn run_out(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState) {
    let Some(observation) = &member.observation else { return };
    let deadline = pass.board.entity().policy.deadline;
    if observation.answering != state.assignment {
        give_up(pass, member, state, format!("the assignment was not accepted within {deadline}"));
    } else if is_unproved(observation, state, pass.now) {
        let cause = format!("healthy for {}, which no report confirmed within {deadline}", state.soak);
        give_up(pass, member, state, cause);
    } else if is_half_seen(observation, state) {
        let cause = match observation.activity {
            TargetActivity::Nothing => format!(
                "its agent started again, and saw it healthy for less than {} within {deadline}",
                state.soak
            ),
            TargetActivity::Applying { .. }
            | TargetActivity::Waiting { .. }
            | TargetActivity::Failed { .. } => {
                format!("its agent started again, and had not applied {} within {deadline}", state.version)
            }
        };
        give_up(pass, member, state, cause);
    } else {
        let summary = overdue(observation, state, deadline);
        fail(pass, member, state, Arc::new(Evidence { summary, ..Evidence::default() }));
    }
}

/// A target that was given up is heard of again: what it does counts, and its clock goes on.
pub(super) fn resume_in_flight(pass: &mut Pass<'_>, member: &BoardMember) {
    let Some(state) = &member.state else { return };
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

/// A target that had succeeded has not any more, before the version is judged: it is in flight again, with a deadline of its
/// own in which it may recover.
pub(super) fn relapse(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState, evidence: &Evidence) {
    let from = pass.board.progress().clock.at(pass.now);
    let clock = DeadlineClock::Running { from, set_at: pass.now };
    let event = event(pass, "target.relapsed", &member.name, &state.version, evidence.summary.clone());
    let state = TargetState { clock, outcome: AssignmentOutcome::InFlight, ..state.clone() };
    pass.put(&member.name, Some(state), Some(event));
}

fn overdue(observation: &Observation, state: &TargetState, deadline: Span) -> String {
    let version = &state.version;
    let missed = match &observation.running {
        Some(running) if running == version => {
            format!("not healthy on {version} within its deadline of {deadline}")
        }
        Some(running) => format!("not on {version} within its deadline of {deadline}: runs {running}"),
        None => format!("not on {version} within its deadline of {deadline}: runs no known version"),
    };
    let activity = match &observation.activity {
        _ if observation.answering != state.assignment => "has not answered".into(),
        TargetActivity::Nothing => format!("has not been healthy for {}", state.soak),
        TargetActivity::Applying { attempt, waiting_for: None } => {
            format!("is still applying, attempt {attempt}")
        }
        TargetActivity::Applying { attempt, waiting_for: Some(check) } => {
            format!("is still applying, attempt {attempt}: {check}")
        }
        TargetActivity::Waiting { reason } => format!("waits: {reason}"),
        TargetActivity::Failed { attempts, evidence } => {
            format!("failed {}: {}", Plural(u64::from(*attempts), "attempt"), evidence.summary)
        }
    };
    format!("{missed}, {activity}")
}
