//! Judges a rollout as a whole, besides its targets: whether more targets succeed in time, and what its
//! monitor answers.

use alloc::format;
use alloc::string::String;

use super::draft::RolloutDraft;
use super::hooked;
use super::pass::Pass;
use crate::records::hook_answers::HookPurpose;
use crate::records::policy::hook::Monitor;
use crate::records::rollout::{
    PeakProgress, Rollout, RolloutState, RolloutWait, TargetCounts, VersionJudgement,
};

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

/// No further target succeeded for too long. Waiting time does not count.
fn stalled(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<MonitorObjection> {
    let limit = pass.board.entity().policy.progress?;
    let peak = rollout.peak.filter(|_| rollout.state == RolloutState::InProgress)?;
    let clock = pass.board.progress().clock;
    let due = peak.at.max(clock.floor).plus(limit);
    if clock.at(pass.now) >= due {
        return Some(MonitorObjection::Wrong(format!("no further target succeeded within {limit}")));
    }
    pass.look_again(clock.when(due));
    None
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
