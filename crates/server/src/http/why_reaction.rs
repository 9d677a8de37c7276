//! Why a reaction has started a run, or has not.

use bellwether_api::v1::reaction::{FiringResult, Reaction, ReactionFiring, ReactionMatch, ReactionState};
use bellwether_core::words::name::{EntityName, ReactionName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::problem::Failure;
use super::reactions::{missing, standings};
use super::readable::Readable;
use super::state::AppState;
use crate::ops;

/// Newest firings that are told.
const FIRINGS: usize = 5;

/// Most nodes of a run that are named.
const NAMED: usize = 5;

/// Whether it waits with a condition that is true, and a line for each of those and for what it did last.
pub(super) fn reaction(
    app: &AppState,
    (world, fleet): (&World, &Fleet),
    readable: &Readable,
    name: &ReactionName,
) -> Result<(bool, Vec<String>), Failure> {
    let kept = fleet.reactions.get(name).ok_or_else(|| missing(name))?;
    let (shape, now) = (Reaction::from(&*kept.value), app.clock.now());
    let matches = standings(app, (world, fleet), readable, &kept.value);
    let waits = |of: &ReactionMatch| match of.state {
        ReactionState::Due | ReactionState::Fired => false,
        ReactionState::Running
        | ReactionState::Pending
        | ReactionState::CoolingDown
        | ReactionState::Limited
        | ReactionState::Observed
        | ReactionState::Suspended
        | ReactionState::Unsettled => true,
    };
    let suspended = shape.suspended.then(|| {
        let reason = if shape.reason.is_empty() { String::new() } else { format!(": {}", shape.reason) };
        format!("suspended by {}{reason}; end it: bellwether reaction resume {name}", shape.by)
    });
    let none = || format!("no condition that it is about is true: {}", shape.on);
    let quiet = matches.is_empty().then(none);
    let firings = shape.firings.iter().rev().take(FIRINGS).map(|firing| fired(fleet, firing, now));
    let leaderless = (world.leader.is_none() && !matches.is_empty())
        .then(|| "no server leads, and nothing fires until one does; see: bellwether server list".to_owned());
    let standings = matches.iter().map(|of| standing(of, &shape.firings, now));
    let lines = suspended.into_iter().chain(leaderless).chain(quiet).chain(standings);
    Ok((matches.iter().any(waits), lines.chain(firings).collect()))
}

/// How long ago that was.
fn ago(at_ms: u64, now: Timestamp) -> Span {
    now.since(Timestamp::from_millis(at_ms))
}

/// A condition that is true, and what the reaction does about it.
fn standing(of: &ReactionMatch, firings: &[ReactionFiring], now: Timestamp) -> String {
    let left = of.until_ms.map_or(Span::ZERO, |until| Timestamp::from_millis(until).since(now)).brief();
    let state = match of.state {
        ReactionState::Due => "it fires now".to_owned(),
        ReactionState::Fired => "it has fired for it".to_owned(),
        ReactionState::Running => {
            let run = of.run.as_deref().unwrap_or_default();
            format!(
                "run {run}, which it started for this subject before, has not ended, and it starts no other until then; see: bellwether why run/{run}"
            )
        }
        ReactionState::Pending => format!("it fires in {left} if that is still so"),
        ReactionState::CoolingDown if could_start_nothing(firings, &of.subject) => {
            format!(
                "nothing was started; it tries again in {left}, and at once when the reaction or its workflow is changed"
            )
        }
        ReactionState::CoolingDown => {
            format!("it fired for this subject not long ago, and may again in {left}")
        }
        ReactionState::Limited => {
            format!("it fired as often as it may within an hour, and may again in {left}")
        }
        ReactionState::Observed => observed(of),
        ReactionState::Suspended => "the reaction is suspended".to_owned(),
        ReactionState::Unsettled => {
            format!("the servers listen to the nodes for {left} more before it may fire")
        }
    };
    format!("{} of {} for {}: {state}", of.condition, of.subject, ago(of.since_ms, now).brief())
}

/// Whether the last firing for a subject failed.
fn could_start_nothing(firings: &[ReactionFiring], subject: &str) -> bool {
    let last = firings.iter().rev().find(|firing| firing.subject == subject);
    last.is_some_and(|firing| firing.result == FiringResult::Failed)
}

/// That the mode of the cluster starts nothing, and how to change that.
fn observed(of: &ReactionMatch) -> String {
    match (&of.observed_cluster, of.mode) {
        (Some(cluster), Some(mode)) => format!(
            "the mode of cluster {cluster} is {}, which starts nothing; bellwether cluster set {cluster} --mode active",
            mode.as_str()
        ),
        (_, _) => "the mode of the cluster starts nothing".to_owned(),
    }
}

/// What became of a run, and of the nodes that begin no other because of it; `None` if it is gone.
fn became(fleet: &Fleet, name: &EntityName) -> Option<String> {
    let run = ops::run::get(fleet, name)?;
    let marked = fleet.not_runnable.iter().map(|(node, kept)| (node, &kept.value));
    let marked: Vec<_> = marked
        .filter(|(_, mark)| mark.run.as_ref() == Some(name))
        .map(|(node, _)| node)
        .take(NAMED)
        .collect();
    let marked = match marked.as_slice() {
        [] => String::new(),
        [first, rest @ ..] => {
            let names = rest.iter().fold(first.to_string(), |names, node| format!("{names}, {node}"));
            format!(
                "; it failed on {names}, and no other run begins there until: bellwether node runnable {first}"
            )
        }
    };
    Some(format!(", which is {}{marked}", run.state))
}

/// What it did.
fn fired(fleet: &Fleet, firing: &ReactionFiring, now: Timestamp) -> String {
    let ReactionFiring { condition, subject, at_ms, result, text, .. } = firing;
    let what = match result {
        FiringResult::Started => {
            let became = EntityName::parse(text).ok().and_then(|run| became(fleet, &run)).unwrap_or_default();
            format!("it started run {text}{became}; see: bellwether why run/{text}")
        }
        FiringResult::Failed => format!("nothing was started: {text}"),
    };
    format!("{} ago, for {condition} of {subject}, {what}", ago(*at_ms, now).brief())
}
