//! Watching a rollout as a whole, beside its targets: whether it gains any, and what its monitor says.

use alloc::format;
use alloc::string::String;

use super::head::Head;
use super::hooked;
use super::pass::Pass;
use crate::records::answers::Asked;
use crate::records::policy::hook::Monitor;
use crate::records::rollout::{Figures, Gain, Judgement, Rollout, State, Wait};

/// What keeps a rollout from being good.
pub(super) enum Watched {
    /// It is bad, for this reason.
    Wrong(String),
    /// Its monitor has not answered for too long; what happens instead.
    Silent(String),
    /// Its monitor has not spoken since the last batch.
    Unheard(Wait),
}

/// Remembers the most targets it ever had, and since when.
pub(super) fn count_gain(pass: &Pass<'_>, head: &mut Head, rollout: &Rollout, figures: &Figures) {
    let best = rollout.gain.map(|gain| gain.best);
    let watched = pass.board.entity().policy.progress.is_some() && is_open(rollout);
    if watched && best.is_none_or(|best| figures.succeeded > best) {
        let at = head.progress.clock.at(pass.now);
        head.change_rollout(|rollout| rollout.gain = Some(Gain { best: figures.succeeded, at }));
    }
}

/// What keeps the rollout under way from being good; nothing once it is.
pub(super) fn watch(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<Watched> {
    if !is_open(rollout) {
        return None;
    }
    stalled(pass, rollout).or_else(|| monitored(pass, rollout))
}

/// No target was gained for too long. What it waits for does not count.
fn stalled(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<Watched> {
    let limit = pass.board.entity().policy.progress?;
    let gain = rollout.gain.filter(|_| rollout.state == State::Running)?;
    let clock = pass.board.progress().clock;
    let due = gain.at.plus(limit);
    if clock.at(pass.now) >= due {
        return Some(Watched::Wrong(format!("no target was gained within {limit}")));
    }
    pass.look_again(clock.when(due));
    None
}

fn monitored(pass: &mut Pass<'_>, rollout: &Rollout) -> Option<Watched> {
    let monitor = pass.board.entity().policy.monitor.as_ref().filter(|_| !rollout.waived.monitor)?;
    let Monitor { failures, .. } = *monitor;
    let patience = monitor.patience();
    let answers = hooked::answers(pass);
    let opinion = answers.and_then(|answers| answers.monitor.as_ref());
    if let Some(opinion) = opinion.filter(|opinion| opinion.failing >= failures) {
        return Some(Watched::Wrong(format!("the monitor: {}", opinion.reason)));
    }
    let heard = opinion.map_or(rollout.started, |opinion| opinion.at);
    let silent = heard.plus(patience);
    if pass.now >= silent {
        let trouble = answers.and_then(|answers| answers.troubles.get(&Asked::Monitor));
        let reason =
            trouble.map_or_else(|| format!("nothing for {patience}"), |trouble| trouble.reason.clone());
        return Some(Watched::Silent(reason));
    }
    pass.look_again(Some(silent));
    let asked_after = rollout.batches.last().map_or(rollout.started, |batch| batch.opened);
    let content = opinion.is_some_and(|opinion| opinion.failing == 0 && opinion.at >= asked_after);
    (!content).then(|| Watched::Unheard(hooked::waits_for(pass, Asked::Monitor, None).wait))
}

const fn is_open(rollout: &Rollout) -> bool {
    matches!(rollout.judgement, Judgement::Open)
}
