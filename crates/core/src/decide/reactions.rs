//! What a reaction is to do now: run its workflow for a condition, or wait, and why. Decided from what is recorded, never from events: one
//! that nobody saw is not missed.
//!
//! Of one episode of a condition there is one run. The record of a firing is written in the transaction that starts the run.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::cluster::ClusterMode;
use crate::records::cluster_view::ConditionKind;
use crate::records::reaction::{
    ConditionSubject, FiringResult, RATE_WINDOW, RETRY_FAILED, Reaction, ReactionFiring,
};
use crate::rollout::environment::Watch;
use crate::words::name::{EntityName, WorkflowName};
use crate::words::time::{Span, Timestamp};
use crate::world::conditions::TrueCondition;
use crate::world::fleet::Fleet;

/// How far a recorded time may be ahead of the clock before it is taken for one of a clock that was set back since: it would hold back what
/// is due for as long as that.
const CLOCK_TOLERANCE: Span = Span::from_secs(60 * 60);

/// Most firings that are kept: of episodes that go on for ever.
const MAX_FIRINGS: usize = 1_000;

/// How a reaction stands to a condition that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It fires.
    Due,
    /// It has started a run for this episode.
    Fired,
    /// The run that it started for this subject before has not ended.
    Running {
        /// That run.
        run: EntityName,
    },
    /// The condition has not been true for long enough.
    Holds {
        /// When it will have been.
        until: Timestamp,
    },
    /// It has fired for this subject not long ago.
    CoolsDown {
        /// When it may again.
        until: Timestamp,
    },
    /// It has fired as often as it may within an hour.
    Limited {
        /// When it may again.
        until: Timestamp,
    },
    /// The cluster's mode starts nothing.
    Mode(ClusterMode),
    /// The reaction is suspended.
    Suspended,
    /// The leader has not listened for long enough to believe what is recorded.
    Unsettled {
        /// When it will have.
        until: Timestamp,
    },
}

impl Standing {
    /// The run that has not ended, if that is what it waits for.
    #[must_use]
    pub const fn run(&self) -> Option<&EntityName> {
        match self {
            Self::Running { run } => Some(run),
            Self::Due
            | Self::Fired
            | Self::Holds { .. }
            | Self::CoolsDown { .. }
            | Self::Limited { .. }
            | Self::Mode(_)
            | Self::Suspended
            | Self::Unsettled { .. } => None,
        }
    }

    /// The mode of the cluster that starts nothing, if that is what it waits for.
    #[must_use]
    pub const fn mode(&self) -> Option<ClusterMode> {
        match self {
            Self::Mode(mode) => Some(*mode),
            Self::Due
            | Self::Fired
            | Self::Running { .. }
            | Self::Holds { .. }
            | Self::CoolsDown { .. }
            | Self::Limited { .. }
            | Self::Suspended
            | Self::Unsettled { .. } => None,
        }
    }
}

/// What is to happen with a reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Nothing before this time; nothing without a change, if there is none.
    Wait(Option<Timestamp>),
    /// It has become limited: a run that causes what it reacts to ends here.
    Limit(Box<Reaction>),
    /// It fires for the condition of this name and subject, which has been true since then.
    Fire(DueCondition),
}

/// A condition for which a reaction fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCondition {
    /// Name of the condition.
    pub condition: String,
    /// What it is true of.
    pub subject: ConditionSubject,
    /// Since when.
    pub since: Timestamp,
}

/// The conditions that a reaction is about, each with how it stands to it. `watch` says from when what is recorded is believed.
#[must_use]
pub fn matches<'a>(
    reaction: &Reaction,
    fleet: &'a Fleet,
    watch: Watch,
    now: Timestamp,
) -> Vec<(TrueCondition<'a>, Standing)> {
    let own = fleet.true_conditions().filter(|condition| reaction.on.matches(condition));
    own.map(|condition| {
        let standing = standing(reaction, fleet, &condition, (watch, now));
        (condition, limited(reaction, standing, now))
    })
    .collect()
}

/// What is to happen with a reaction now.
#[must_use]
pub fn turn(reaction: &Reaction, fleet: &Fleet, watch: Watch, now: Timestamp) -> Turn {
    let mut wake: Option<Timestamp> = None;
    for (condition, standing) in matches(reaction, fleet, watch, now) {
        let at = match standing {
            Standing::Due => {
                let TrueCondition { name, subject, since, .. } = condition;
                return Turn::Fire(DueCondition { condition: name.into(), subject: subject.clone(), since });
            }
            Standing::Limited { .. } if reaction.limited_since.is_none() => {
                return Turn::Limit(Box::new(Reaction { limited_since: Some(now), ..reaction.clone() }));
            }
            Standing::Holds { until }
            | Standing::CoolsDown { until }
            | Standing::Limited { until }
            | Standing::Unsettled { until } => until,
            Standing::Fired | Standing::Running { .. } | Standing::Mode(_) | Standing::Suspended => continue,
        };
        wake = Some(wake.map_or(at, |wake| wake.min(at)));
    }
    Turn::Wait(wake)
}

/// How a reaction would stand to a condition that had been true for as long as it waits, or how it stands to one that is true now; `None`
/// if it is not about it.
#[must_use]
pub fn rehearse(
    reaction: &Reaction,
    fleet: &Fleet,
    (name, subject): (&str, &ConditionSubject),
    (watch, now): (Watch, Timestamp),
) -> Option<Standing> {
    let present = fleet.true_conditions().find(|known| known.name == name && known.subject == subject);
    let (cluster, since) = (fleet.cluster_of_subject(subject), now.minus(hold(reaction, name, watch)));
    let condition = present.unwrap_or(TrueCondition { name, subject, cluster, since });
    let is_about = reaction.on.matches(&condition);
    is_about.then(|| limited(reaction, standing(reaction, fleet, &condition, (watch, now)), now))
}

/// How a reaction stands to a condition, with its limit.
fn limited(reaction: &Reaction, standing: Standing, now: Timestamp) -> Standing {
    match (standing, limited_until(reaction, now)) {
        (Standing::Due, Some(until)) => Standing::Limited { until },
        (standing, _) => standing,
    }
}

/// How a reaction stands to a condition, its limit aside.
fn standing(
    reaction: &Reaction,
    fleet: &Fleet,
    condition: &TrueCondition<'_>,
    (watch, now): (Watch, Timestamp),
) -> Standing {
    let own =
        |firing: &&ReactionFiring| firing.subject == *condition.subject && firing.condition == condition.name;
    let has_run =
        |firing: &ReactionFiring| firing.since == condition.since && firing.result == FiringResult::Started;
    if reaction.firings.iter().filter(own).any(has_run) {
        return Standing::Fired;
    }
    if reaction.suspended {
        return Standing::Suspended;
    }
    let cluster = condition.cluster.and_then(|name| fleet.clusters.get(name));
    match cluster.map(|kept| kept.value.mode).unwrap_or_default() {
        ClusterMode::Active => {}
        mode @ (ClusterMode::Observe | ClusterMode::Disabled) => return Standing::Mode(mode),
    }
    if watch.settled() > now {
        return Standing::Unsettled { until: watch.settled() };
    }
    let held = condition.since.plus(hold(reaction, condition.name, watch));
    if held > now && !is_ahead(condition.since, now) {
        return Standing::Holds { until: held };
    }
    if let Some(run) = run_in_progress(reaction, fleet, condition.subject) {
        return Standing::Running { run };
    }
    let of_subject = reaction.firings.iter().filter(|firing| firing.subject == *condition.subject);
    let again = |firing: &ReactionFiring| match firing.result {
        FiringResult::Started => firing.at.plus(reaction.cooldown),
        FiringResult::Failed => firing.at.plus(reaction.cooldown.max(RETRY_FAILED)),
    };
    match of_subject.filter(|firing| !is_ahead(firing.at, now)).map(again).max() {
        Some(until) if until > now => Standing::CoolsDown { until },
        Some(_) | None => Standing::Due,
    }
}

/// How long a condition has to be true. Which store is the primary is told by several, each at its own time: that there is none, or more
/// than one, is believed once any of them that had fallen silent meanwhile would have been noticed.
fn hold(reaction: &Reaction, condition: &str, watch: Watch) -> Span {
    let compares = [ConditionKind::NoPrimary, ConditionKind::SeveralPrimaries];
    let least = compares.iter().any(|kind| kind.as_str() == condition).then_some(watch.detection);
    reaction.hold.max(least.unwrap_or_default())
}

/// The run that a reaction started for a subject and that has not ended.
fn run_in_progress(reaction: &Reaction, fleet: &Fleet, subject: &ConditionSubject) -> Option<EntityName> {
    let of_subject = reaction.firings.iter().filter(|firing| firing.subject == *subject);
    of_subject.filter_map(run_of).find(|run| fleet.run_index.is_open(run))
}

/// The run of a firing; `None` if it started none.
fn run_of(firing: &ReactionFiring) -> Option<EntityName> {
    match firing.result {
        FiringResult::Started => EntityName::parse(&firing.text).ok(),
        FiringResult::Failed => None,
    }
}

/// Whether a reaction has started as many runs as it may within an hour.
#[must_use]
pub fn is_limited(reaction: &Reaction, now: Timestamp) -> bool {
    limited_until(reaction, now).is_some()
}

/// Until when a reaction has started as many runs as it may; `None` if it may fire. What could not be started does not count.
fn limited_until(reaction: &Reaction, now: Timestamp) -> Option<Timestamp> {
    let mut recent: Vec<Timestamp> = reaction
        .firings
        .iter()
        .filter(|firing| firing.result == FiringResult::Started && is_recent(firing.at, RATE_WINDOW, now))
        .map(|firing| firing.at)
        .collect();
    recent.sort_unstable();
    if reaction.firings.len() >= MAX_FIRINGS {
        return Some(recent.first().copied().unwrap_or(now).plus(RATE_WINDOW));
    }
    let most = usize::try_from(reaction.max_per_hour).unwrap_or(usize::MAX);
    let first = recent.len().checked_sub(most)?;
    recent.get(first).map(|at| at.plus(RATE_WINDOW))
}

/// The reaction after it fired. It forgets what it need not know any more.
#[must_use]
pub fn fired(reaction: &Reaction, fleet: &Fleet, firing: ReactionFiring) -> Reaction {
    let now = firing.at;
    let kept = reaction.cooldown.max(RATE_WINDOW);
    let goes_on = |firing: &ReactionFiring| {
        let is = |condition: TrueCondition<'_>| {
            condition.since == firing.since
                && condition.name == firing.condition
                && *condition.subject == firing.subject
        };
        fleet.true_conditions().any(is)
    };
    // Of what could not be started the last time is enough.
    let is_replaced = |old: &ReactionFiring| {
        old.result == FiringResult::Failed
            && old.subject == firing.subject
            && old.condition == firing.condition
    };
    let runs = |old: &ReactionFiring| run_of(old).is_some_and(|run| fleet.run_index.is_open(&run));
    let is_kept = |old: &&ReactionFiring| {
        !is_replaced(old) && (is_recent(old.at, kept, now) || goes_on(old) || runs(old))
    };
    let old: Vec<ReactionFiring> = reaction.firings.iter().filter(is_kept).cloned().collect();
    let firings = old.into_iter().chain([firing]).collect();
    Reaction { firings, limited_since: None, ..reaction.clone() }
}

/// The reactions with a workflow that could start nothing for something, as they are once it changed: they try at once.
pub fn that_try_again<'a>(
    fleet: &'a Fleet,
    workflow: &'a WorkflowName,
) -> impl Iterator<Item = Reaction> + 'a {
    let all = fleet.reactions.values().map(|kept| &*kept.value);
    let own = all.filter(move |reaction| reaction.workflow == *workflow);
    let failed = own.filter(|reaction| reaction.firings.iter().any(|of| of.result == FiringResult::Failed));
    failed.map(|reaction| Reaction { firings: started(&reaction.firings), ..reaction.clone() })
}

/// The firings that started a run.
#[must_use]
pub fn started(firings: &[ReactionFiring]) -> Vec<ReactionFiring> {
    firings.iter().filter(|firing| firing.result == FiringResult::Started).cloned().collect()
}

/// The most frequent subject of a reaction within the last hour, in one line for people: what it does may be what it reacts to.
#[must_use]
pub fn explain_limit(reaction: &Reaction, now: Timestamp) -> String {
    let is_one = |firing: &&ReactionFiring| {
        firing.result == FiringResult::Started && is_recent(firing.at, RATE_WINDOW, now)
    };
    let recent: Vec<&ReactionFiring> = reaction.firings.iter().filter(is_one).collect();
    let count =
        |subject: &ConditionSubject| recent.iter().filter(|firing| firing.subject == *subject).count();
    let most = recent.iter().map(|firing| (count(&firing.subject), &firing.subject)).max();
    let often = match most {
        Some((count, subject)) if count > 1 => {
            format!(", {count} times for {subject}: its run may cause what it reacts to")
        }
        Some(_) | None => String::new(),
    };
    format!("it fired {} times within an hour{often}; nothing is started until it may again", recent.len())
}

fn is_recent(at: Timestamp, window: Span, now: Timestamp) -> bool {
    at.plus(window) > now && !is_ahead(at, now)
}

fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    at > now.plus(CLOCK_TOLERANCE)
}

#[cfg(test)]
mod tests;
