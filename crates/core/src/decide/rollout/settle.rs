//! Settles targets: turns what reports and passing time mean for single targets into outcomes.

use super::deadline;
use super::outcome::{GONE_IN_ROLLBACK, event, fail, fail_later, give_up, recover, succeed};
use super::pass::Pass;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::rollout::board::member::{BoardMember, UpcomingChange};

/// Settles every target that is due; returns whether any was.
pub(super) fn settle(pass: &mut Pass<'_>) -> bool {
    let mut changed = deadline::begin_watch(pass);
    let started_by = deadline::limit(pass);
    let due = pass.board.tree().due(pass.now, started_by);
    for name in &due {
        if let Some(member) = pass.board.member(name).cloned() {
            changed |= settle_one(pass, &member);
        }
    }
    changed
}

/// Settles one target; returns whether that changed it. Nothing follows from time alone while it could not report.
fn settle_one(pass: &mut Pass<'_>, member: &BoardMember) -> bool {
    let coming = member.coming(pass.board.frame());
    let by_time = match coming {
        UpcomingChange::Nothing
        | UpcomingChange::Success(_)
        | UpcomingChange::Adoption(_)
        | UpcomingChange::GivenUp
        | UpcomingChange::Recovered(_)
        | UpcomingChange::RunOut(_) => true,
        UpcomingChange::Removal
        | UpcomingChange::ClockTurn
        | UpcomingChange::Failure(_)
        | UpcomingChange::AlreadyGood
        | UpcomingChange::Carry
        | UpcomingChange::FailedLater(_)
        | UpcomingChange::Relapse(_)
        | UpcomingChange::SoakChange(_) => false,
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
        (UpcomingChange::ClockTurn, Some(state)) => deadline::turn_clock(pass, member, state),
        (UpcomingChange::Failure(evidence), Some(state)) => {
            pass.stop_node(&member.name, &evidence);
            fail(pass, member, state, evidence);
        }
        (UpcomingChange::GivenUp, Some(state)) => {
            give_up(pass, member, state, GONE_IN_ROLLBACK.into());
        }
        (UpcomingChange::Success(at), Some(state)) if at <= now => succeed(pass, &member.name, state),
        (UpcomingChange::Adoption(at), _) if at <= now => adopt(pass, member),
        (UpcomingChange::AlreadyGood, _) => rest_on_good(pass, member),
        (UpcomingChange::Carry, Some(state)) => {
            let (rollout, purpose) = (pass.board.progress().last, AssignmentPurpose::Update);
            pass.put(&member.name, Some(TargetState { rollout, purpose, ..state.clone() }), None);
        }
        (UpcomingChange::Recovered(at), Some(state)) if at <= now => recover(pass, &member.name, state),
        (UpcomingChange::SoakChange(soak), Some(state)) => {
            pass.put(&member.name, Some(TargetState { soak, ..state.clone() }), None);
        }
        (UpcomingChange::FailedLater(evidence), Some(state)) => {
            fail_later(pass, &member.name, state, &evidence);
        }
        (UpcomingChange::Relapse(evidence), Some(state)) => deadline::relapse(pass, member, state, &evidence),
        (UpcomingChange::RunOut(at), Some(state)) if at <= now => deadline::run_out(pass, member, state),
        (
            UpcomingChange::Nothing
            | UpcomingChange::Success(_)
            | UpcomingChange::Adoption(_)
            | UpcomingChange::Recovered(_)
            | UpcomingChange::RunOut(_),
            Some(state),
        ) => deadline::pass_deadline(pass, member, state),
        (
            UpcomingChange::Nothing
            | UpcomingChange::ClockTurn
            | UpcomingChange::Failure(_)
            | UpcomingChange::GivenUp
            | UpcomingChange::Success(_)
            | UpcomingChange::Adoption(_)
            | UpcomingChange::RunOut(_)
            | UpcomingChange::Carry
            | UpcomingChange::FailedLater(_)
            | UpcomingChange::Relapse(_)
            | UpcomingChange::SoakChange(_)
            | UpcomingChange::Recovered(_),
            None,
        ) => {}
    }
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
    let Some(version) = pass.board.frame().base.clone() else { return };
    let mut state = pass.assignment(member, version, AssignmentPurpose::KnownGood);
    state.outcome = AssignmentOutcome::Succeeded { at: pass.now, failed_later: None };
    pass.put(&member.name, Some(state), None);
}
