//! Outcomes of assignments: what is written when a target succeeds, fails or is given up, with its event.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::event_text;
use super::pass::Pass;
use crate::records::event::EventDraft;
use crate::records::evidence::Evidence;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::TargetPhase;
use crate::words::name::TargetName;
use crate::words::version::Version;

pub(super) fn succeed(pass: &mut Pass<'_>, name: &TargetName, state: &TargetState) {
    let soaked = pass.board.entity().policy.soak;
    let (kind, cause) = match &state.outcome {
        AssignmentOutcome::Failed { at, .. } => (
            "target.recovered",
            format!("healthy for {soaked}, {} after it had failed", pass.now.since(*at).brief()),
        ),
        AssignmentOutcome::InFlight
        | AssignmentOutcome::Succeeded { .. }
        | AssignmentOutcome::Unreachable { .. } => ("target.succeeded", format!("healthy for {soaked}")),
    };
    let event = matches!(state.purpose, AssignmentPurpose::Update | AssignmentPurpose::Adopted)
        .then(|| event(pass, kind, name, &state.version, cause));
    let outcome = AssignmentOutcome::Succeeded { at: pass.now, failed_later: None };
    pass.put(name, Some(TargetState { outcome, failing_before: None, ..state.clone() }), event);
}

pub(super) fn fail(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState, evidence: Arc<Evidence>) {
    let counts =
        [TargetPhase::InFlight, TargetPhase::HeldFlight, TargetPhase::Succeeded, TargetPhase::Adopted];
    if counts.contains(&member.place.phase) && state.failing_before.is_none() {
        pass.keep_failure(&member.name, &evidence);
    }
    let cause = match &state.failing_before {
        Some(before) => format!("{}; it was failing on {before} before", evidence.summary),
        None => evidence.summary.clone(),
    };
    let event = event(pass, "target.failed", &member.name, &state.version, cause);
    let outcome = AssignmentOutcome::Failed { at: pass.now, evidence };
    pass.put(&member.name, Some(TargetState { outcome, ..state.clone() }), Some(event));
}

pub(super) fn fail_later(pass: &mut Pass<'_>, name: &TargetName, state: &TargetState, evidence: &Evidence) {
    if let AssignmentOutcome::Succeeded { at, .. } = state.outcome {
        // A failure long after is not attributed to the version: it is stored, but without an event.
        let late = pass.now.since(at);
        let cause = format!("{}, {} after it had succeeded; not rolled back", evidence.summary, late.brief());
        let event = (late <= pass.board.entity().policy.settle)
            .then(|| event(pass, "target.late_failure", name, &state.version, cause));
        let outcome = AssignmentOutcome::Succeeded { at, failed_later: Some(pass.now) };
        pass.put(name, Some(TargetState { outcome, ..state.clone() }), event);
    }
}

/// A target that failed after it had succeeded is healthy again.
pub(super) fn recover(pass: &mut Pass<'_>, name: &TargetName, state: &TargetState) {
    if let AssignmentOutcome::Succeeded { at, failed_later: Some(since) } = state.outcome {
        let cause = format!("healthy again after {}", pass.now.since(since).brief());
        let told = since.since(at) <= pass.board.entity().policy.settle;
        let event = told.then(|| event(pass, "target.recovered", name, &state.version, cause));
        let outcome = AssignmentOutcome::Succeeded { at, failed_later: None };
        pass.put(name, Some(TargetState { outcome, ..state.clone() }), event);
    }
}

/// Gives a target up for this rollout: it is no evidence against the version.
/// Why a target is given up that was out of contact when it was to be rolled back.
pub(super) const GONE_IN_ROLLBACK: &str = "out of contact during its rollback";

pub(super) fn give_up(pass: &mut Pass<'_>, member: &BoardMember, state: &TargetState, cause: String) {
    let outcome = AssignmentOutcome::Unreachable { at: pass.now, reason: cause.as_str().into() };
    let event = event(pass, "target.unreachable", &member.name, &state.version, cause);
    pass.put(&member.name, Some(TargetState { outcome, ..state.clone() }), Some(event));
}

pub(super) fn event(
    pass: &Pass<'_>,
    kind: &'static str,
    target: &TargetName,
    version: &Version,
    cause: String,
) -> EventDraft {
    event_text::target(kind, &pass.board.entity().name, target, version, cause)
}
