//! Judges a rollout as a whole, besides its targets: whether more targets succeed in time, and what its
//! monitor answers.

use alloc::format;
use alloc::string::String;

use super::deadline::unnoticed;
use super::draft::RolloutDraft;
use super::hooked;
use super::pass::Pass;
use crate::records::entity::TargetSource;
use crate::records::hook_answers::HookPurpose;
use crate::records::policy::hook::Monitor;
use crate::records::rollout::{
    PeakProgress, Rollout, RolloutState, RolloutWait, TargetCounts, VersionJudgement,
};
use crate::records::target::DeadlineClock;
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::{PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::time::{Span, Timestamp};

/// Targets of which a success may still come.
const UNDER_WAY: PhaseSet =
    PhaseSet::of(&[TargetPhase::InFlight, TargetPhase::HeldFlight, TargetPhase::Returning]);

/// Why a rollout's version is not judged good.
pub(super) enum MonitorObjection {
    /// The version is bad, for this reason.
    Wrong(String),
    /// The monitor has not answered for too long; what happens instead.
    Silent(String),
    /// The monitor has not answered since the last batch.
    Unheard(RolloutWait),
}

/// Records the largest number of targets that succeeded, or failed as they had before, and when it was reached.
pub(super) fn count_gain(
    pass: &Pass<'_>,
    draft: &mut RolloutDraft,
    rollout: &Rollout,
    counts: &TargetCounts,
) {
    let best = rollout.peak.map(|peak| peak.best);
    let watched = pass.board.entity().policy.progress.is_some() && is_open(rollout);
    let done = counts.succeeded + counts.failing_before;
    if watched && best.is_none_or(|best| done > best) {
        let at = draft.progress.clock.at(pass.now);
        draft.change_rollout(|rollout| rollout.peak = Some(PeakProgress { best: done, at }));
    }
}

/// What keeps the version of the rollout in progress from being judged good; `None` once it is.
pub(super) fn watch(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<MonitorObjection> {
    if !is_open(rollout) {
        return None;
    }
    stalled(pass, rollout).or_else(|| monitored(pass, rollout))
}

/// No further target succeeded for too long. Waiting time does not count, and neither does time in which no success could have
/// been seen: every target in flight must have been in contact, on one run of its clock, for as long.
fn stalled(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<MonitorObjection> {
    let limit = pass.board.entity().policy.progress?;
    let peak = rollout.peak.filter(|_| rollout.state == RolloutState::InProgress)?;
    let clock = pass.board.progress().clock;
    let due = peak.at.max(clock.floor).plus(limit);
    if clock.at(pass.now) < due {
        pass.look_again(clock.when(due));
        return None;
    }
    let at = seen_until(pass, (clock.when(due).unwrap_or(pass.now), limit))?;
    if pass.now >= at {
        return Some(MonitorObjection::Wrong(format!("no further target succeeded within {limit}")));
    }
    pass.look_again(Some(at));
    None
}

/// When a target in flight, or the last one of them, will have been seen without a gap for as long as a success may take, at the earliest
/// at `due`. `None` while none is in flight, and while that is not known of one: it is out of contact, held, or past a deadline of its
/// own, which then decides.
fn seen_until(pass: &Pass<'_>, (due, limit): (Timestamp, Span)) -> Option<Timestamp> {
    let is_external = matches!(pass.board.entity().source, TargetSource::External(_));
    let at = |member: &BoardMember| {
        let (state, observation) = (member.state.as_ref()?, member.observation.as_ref()?);
        let DeadlineClock::Running { set_at, .. } = state.clock else { return None };
        let enough = due.max(set_at.plus(limit));
        match is_external {
            // Contact is proved once its loss would have been noticed.
            false => Some(enough.plus(unnoticed(pass))),
            true => (observation.reported_at >= enough).then_some(enough),
        }
    };
    let mut seen = None;
    pass.board.tree().walk(&WalkFilter::all(UNDER_WAY), &mut |member| {
        seen = at(member);
        // One that is not ready yet is enough to look again then.
        seen.is_some_and(|seen| seen <= pass.now)
    });
    seen
}

fn monitored(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<MonitorObjection> {
    let monitor = pass.board.entity().policy.monitor.as_ref().filter(|_| !rollout.waived.monitor)?;
    let Monitor { failures, .. } = *monitor;
    let staleness = monitor.staleness();
    let answers = hooked::answers(pass);
    let judgement = answers.and_then(|answers| answers.monitor.as_ref());
    if let Some(judgement) = judgement.filter(|judgement| judgement.failing >= failures) {
        return Some(MonitorObjection::Wrong(format!("the monitor: {}", judgement.reason)));
    }
    let heard = judgement.map_or(rollout.started, |judgement| judgement.at);
    // A monitor that nobody asked has not been silent.
    let silent = heard.max(pass.environment.watch.since).plus(staleness);
    if pass.now >= silent {
        let trouble = answers.and_then(|answers| answers.troubles.get(&HookPurpose::Monitor));
        let reason =
            trouble.map_or_else(|| format!("nothing for {staleness}"), |trouble| trouble.reason.clone());
        return Some(MonitorObjection::Silent(reason));
    }
    pass.look_again(Some(silent));
    let asked_after = rollout.batches.last().map_or(rollout.started, |batch| batch.opened);
    let content = judgement.is_some_and(|judgement| judgement.failing == 0 && judgement.at >= asked_after);
    (!content).then(|| MonitorObjection::Unheard(hooked::waits_for(pass, HookPurpose::Monitor, None).wait))
}

const fn is_open(rollout: &Rollout) -> bool {
    matches!(rollout.judgement, VersionJudgement::Open)
}
