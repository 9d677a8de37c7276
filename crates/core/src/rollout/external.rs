//! External targets: from a controller's report to the stored record and the observation, and which
//! controller owns which group. Owns no clock; the server and the library both absorb reports here.

use alloc::string::{String, ToString};
use alloc::sync::Arc;

use super::observation::{HealthProof, Observation, PresenceState};
use crate::records::evidence::Evidence;
use crate::records::external::{
    Controller, Controllers, ExternalTarget, MAX_ERROR, MAX_GROUPS, StalenessLimits,
};
use crate::records::hook_answers::MonitorReport;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::words::counter::AssignmentNumber;
use crate::words::label::Labels;
use crate::words::name::{Actor, TargetName};
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// A controller's report about one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetReport {
    /// Name of the target; `group/name` for one in a group.
    pub target: TargetName,
    /// The version it runs, if known.
    pub running: Option<Version>,
    /// The error, in one line; `None` while it is healthy.
    pub error: Option<String>,
    /// The assignment that it answers; `None` to have it judged by `running`.
    pub assignment: Option<AssignmentNumber>,
}

/// The version that a target is expected to run, and the number of that assignment.
pub type Expected<'a> = Option<(&'a Version, AssignmentNumber)>;

/// The record of a target after `report`.
///
/// A report is judged by the version that it says the target runs. Without a number it answers the assignment whose
/// version that is; one without error about another version answers the assignment last sent to the controller, whose
/// work is under way, and so does an error of a target that does not say what it runs; an error of another version is no
/// evidence about the assigned one.
#[must_use]
pub fn absorb(
    known: Option<&ExternalTarget>,
    report: &TargetReport,
    expected: Expected<'_>,
    staleness: StalenessLimits,
    now: Timestamp,
) -> ExternalTarget {
    let assigned = known.map(|known| known.assigned).unwrap_or_default();
    let error = report.error.as_deref().map(line);
    let expected_now = expected.filter(|(version, _)| report.running.as_ref() == Some(*version));
    let answered = known.map(|known| known.answering).unwrap_or_default();
    let implied = match (expected_now, &error) {
        (Some((_, number)), _) => number,
        // Of another version: it must not answer the assignment that is under way.
        (None, Some(_)) if report.running.is_some() => match expected {
            Some((_, number)) => answered.min(AssignmentNumber::new(number.get().saturating_sub(1))),
            None => assigned,
        },
        (None, _) => assigned,
    };
    let last = known.filter(|known| !known.silent && now.since(known.reported_at) <= staleness.longest_gap());
    let as_before =
        known.filter(|known| known.running == report.running && known.error.is_none() && !known.silent);
    let well = error.is_none() && report.running.is_some();
    let answering = report.assignment.unwrap_or(implied);
    let last_answer = known.filter(|known| known.answering == answering);
    ExternalTarget {
        running: report.running.clone(),
        error,
        answering,
        answered_at: last_answer.map_or(now, |known| known.answered_at),
        assigned,
        healthy_since: well.then(|| as_before.and_then(|known| known.healthy_since).unwrap_or(now)),
        reported_at: now,
        silent: false,
        contact_since: last.map_or(now, |last| last.contact_since),
    }
}

/// Whether `new` differs from `known`, is at least `grain` later, or is the first report at or after the end of a soak, so that
/// it must be written.
#[must_use]
pub fn is_news(
    known: Option<&ExternalTarget>,
    new: &ExternalTarget,
    grain: Span,
    soak_ends: Option<Timestamp>,
) -> bool {
    known.is_none_or(|known| {
        let same = ExternalTarget { reported_at: known.reported_at, ..new.clone() } == *known;
        let confirms = |end| known.reported_at < end && end <= new.reported_at;
        !same || new.reported_at.since(known.reported_at) >= grain || soak_ends.is_some_and(confirms)
    })
}

/// The observation of an external target.
#[must_use]
pub fn observation(external: &ExternalTarget, labels: Labels, word: Option<MonitorReport>) -> Observation {
    let activity = match &external.error {
        Some(error) => {
            let evidence = Evidence { summary: error.to_string(), ..Evidence::default() };
            TargetActivity::Failed { attempts: 1, evidence: Arc::new(evidence) }
        }
        None => TargetActivity::Nothing,
    };
    Observation {
        running: external.running.clone(),
        answering: external.answering,
        activity,
        health: TargetHealth::NoChecks,
        healthy_since: external.healthy_since,
        soak_failure: None,
        agent_restarted: false,
        proof: HealthProof::Reports,
        reported_at: external.reported_at,
        answered_at: external.answered_at,
        contact: if external.silent { PresenceState::Unreachable } else { PresenceState::Up },
        contact_since: external.contact_since,
        held: None,
        refuses: None,
        drained: false,
        labels,
        data: Default::default(),
        word,
    }
}

/// The group of a target: the part before the first `/` of its name, or "".
#[must_use]
pub fn group(target: &TargetName) -> &str {
    target.as_str().split_once('/').map_or("", |(group, _)| group)
}

/// Why a controller may not report a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupConflict {
    /// Another controller reports it.
    #[error("accept reports about {what} from {who}: {other} reports them, last {ago} ago")]
    Other {
        /// The targets concerned.
        what: String,
        /// The controller that reported now.
        who: Actor,
        /// The controller that owns them.
        other: Actor,
        /// Time since the last report of that controller.
        ago: Span,
    },
    /// The entity has [`MAX_GROUPS`] groups already.
    #[error("accept reports about another group: the entity has {MAX_GROUPS} groups, the maximum")]
    TooMany,
}

/// A controller's claim to report the targets of a group.
#[derive(Debug, Clone, Copy)]
pub struct GroupClaim<'a> {
    /// The group; "" for targets without one.
    pub group: &'a str,
    /// The controller.
    pub controller: &'a Actor,
    /// Whether it also replaces a controller that is not silent.
    pub take_over: bool,
}

/// The controllers after a controller claimed a group. A silent controller is replaced by any other.
/// `None` when nothing must be written.
///
/// # Errors
/// [`GroupConflict`] when another controller owns the group and is not replaced, or there are too many groups.
pub fn claim(
    known: &Controllers,
    claim: GroupClaim<'_>,
    staleness: StalenessLimits,
    now: Timestamp,
) -> Result<Option<Controllers>, GroupConflict> {
    let GroupClaim { group, controller: who, take_over } = claim;
    if let Some(owner) = known.0.get(group) {
        let ago = now.since(owner.reported_at);
        if owner.name == *who && ago < staleness.grain() {
            return Ok(None);
        }
        if owner.name != *who && ago < staleness.unreachable_after && !take_over {
            let what =
                if group.is_empty() { "these targets".into() } else { alloc::format!("group {group}") };
            return Err(GroupConflict::Other { what, who: who.clone(), other: owner.name.clone(), ago });
        }
    } else if known.0.len() >= MAX_GROUPS {
        return Err(GroupConflict::TooMany);
    }
    let mut controllers = known.clone();
    controllers.0.insert(group.into(), Controller { name: who.clone(), reported_at: now });
    Ok(Some(controllers))
}

fn line(error: &str) -> Arc<str> {
    let line: String = error.lines().next().unwrap_or_default().chars().take(MAX_ERROR).collect();
    if line.is_empty() { Arc::from("it reports an error without a description") } else { Arc::from(line) }
}

#[cfg(test)]
mod tests;
