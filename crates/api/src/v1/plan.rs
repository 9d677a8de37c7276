//! Plans: requests and answers.

use std::collections::BTreeMap;

use bellwether_core::trial::plan as core;
use bellwether_core::trial::simulation::timeline::{SimulationEnd, Timeline};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::policy::Policy;
use crate::shape::{map_from, object};

/// Request to simulate a rollout without starting it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlan {
    /// The version to simulate, as in a new rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Policy fields for the rollout; the others are the entity's.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Names of policy fields that take their defaults for the rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// How long a target is assumed to need to apply the version, such as `30s`. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<String>,
}

/// The result of a simulated rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Plan {
    /// The version that is rolled out.
    pub version: String,
    /// Number of targets by the version that they run now; `-` for no version.
    pub running: BTreeMap<String, u64>,
    /// The first 1,000 batches if every target succeeds.
    pub batches: Vec<PlannedBatch>,
    /// Number of batches if every target succeeds.
    pub batches_opened: u64,
    /// The state in which the rollout ends if every target succeeds, one line.
    pub end: String,
    /// Whether it ends without a person's action within 30 simulated days.
    pub ends: bool,
    /// Simulated time at which it ends or stops advancing, in milliseconds since the Unix epoch.
    pub ended_ms: u64,
    /// Simulated time at which it starts, in milliseconds since the Unix epoch.
    pub began_ms: u64,
    /// Number of targets that a bad version reaches if its failure shows at once.
    pub touched_at_best: u64,
    /// Number of targets that a bad version reaches if its failure shows as late as possible.
    pub touched_at_worst: u64,
    /// Longest time that a target runs a bad version whose failure shows as late as possible, in ms.
    pub longest_at_worst_ms: u64,
    /// Number of present targets that must succeed.
    pub needed: u64,
    /// Number of failures tolerated among the present targets: never more than `needed` leaves room for.
    pub tolerated: u64,
    /// Pass this as `plan` to start the rollout; the start is refused if the plan no longer applies.
    pub token: String,
}

/// A batch of a simulated rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlannedBatch {
    /// Number of the batch, from 1.
    pub number: u64,
    /// Simulated time at which it starts, in milliseconds since the Unix epoch.
    pub opened_ms: u64,
    /// Number of targets that are assigned the version in it.
    pub assigned: u64,
    /// Name of its first target, in the order of names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Name of its last target, in the order of names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Number of its targets by domain.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, u64>,
}

/// The token of a plan with this fingerprint.
#[must_use]
pub fn token(fingerprint: u64) -> String {
    format!("plan-{fingerprint:016x}")
}

/// Whether a text has the form of a plan's token.
#[must_use]
pub fn is_token(text: &str) -> bool {
    let hex = text.strip_prefix("plan-").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hex && text.len() == token(0).len()
}

impl Plan {
    /// Converts the plan of a version to its shape.
    #[must_use]
    pub fn of(version: &str, plan: &core::RolloutPlan) -> Self {
        let (end, ends) = end(&plan.smooth.end);
        let touched = |timeline: &Timeline| timeline.blast.map_or(0, |blast| blast.touched);
        let batches = plan.smooth.batches.iter().map(|batch| PlannedBatch {
            number: batch.number,
            opened_ms: batch.opened.as_millis(),
            assigned: batch.assigned,
            first: batch.names.as_ref().map(|(first, _)| first.to_string()),
            last: batch.names.as_ref().map(|(_, last)| last.to_string()),
            domains: map_from(batch.domains.iter().map(|(domain, count)| (domain.to_string(), *count))),
        });
        let runs = plan.running.iter().map(|(version, count)| {
            (version.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string), *count)
        });
        Self {
            version: version.to_owned(),
            running: map_from(runs),
            batches: batches.collect(),
            batches_opened: plan.smooth.batches_opened,
            end,
            ends,
            ended_ms: plan.smooth.ended.as_millis(),
            began_ms: Timestamp::as_millis(plan.smooth.began),
            touched_at_best: touched(&plan.best),
            touched_at_worst: touched(&plan.worst),
            longest_at_worst_ms: plan.worst.blast.map_or(0, |blast| blast.longest.as_millis()),
            needed: plan.thresholds.needed,
            tolerated: plan.thresholds.tolerated,
            token: token(plan.fingerprint),
        }
    }
}

fn end(end: &SimulationEnd) -> (String, bool) {
    match end {
        SimulationEnd::Over(state) => (state.to_string(), true),
        SimulationEnd::NeedsPerson(state) | SimulationEnd::Stuck(state) => (state.to_string(), false),
        SimulationEnd::Horizon(state) => (format!("still {state} after 30 days"), false),
        SimulationEnd::Nothing => ("nothing to roll out".to_owned(), true),
    }
}
