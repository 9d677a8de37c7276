//! Plans, as they travel.

use std::collections::BTreeMap;

use bellwether_core::trial::plan as core;
use bellwether_core::trial::simulation::timeline::{SimulationEnd, Timeline};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::policy::Policy;
use crate::shape::map_from;

/// Asks what a rollout would bring.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlan {
    /// As in a new rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Policy fields that would change with it.
    #[serde(default)]
    pub policy: Policy,
    /// Names of policy fields that would take their defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// How long a target is taken to need for the change, like `30s`. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<String>,
}

/// What a rollout would bring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Plan {
    /// The version that is meant.
    pub version: String,
    /// By version that targets run now, `-` for none: how many.
    pub running: BTreeMap<String, u64>,
    /// The batches if every target succeeds, the first 1,000.
    pub batches: Vec<PlannedBatch>,
    /// How many batches there are.
    pub batches_opened: u64,
    /// How it ends if every target succeeds.
    pub end: String,
    /// Whether it ends by itself, within 30 days.
    pub ends: bool,
    /// When it ends at the earliest, or when nothing happens any more.
    pub ended_ms: u64,
    /// When it would begin.
    pub began_ms: u64,
    /// Targets touched by a bad version that shows itself at once.
    pub touched_at_best: u64,
    /// Targets touched by a bad version that shows itself as late as it can.
    pub touched_at_worst: u64,
    /// The longest that a target runs a version that shows itself as late as it can.
    pub longest_at_worst_ms: u64,
    /// Hand it to the start of the rollout: that is refused once the world has moved.
    pub token: String,
}

/// A batch that would be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlannedBatch {
    /// Its place, from 1.
    pub number: u64,
    /// When.
    pub opened_ms: u64,
    /// How many targets are told in it.
    pub assigned: u64,
    /// The first of them by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The last of them by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// By domain: how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, u64>,
}

/// How a plan is known again.
#[must_use]
pub fn token(fingerprint: u64) -> String {
    format!("plan-{fingerprint:016x}")
}

impl Plan {
    /// The shape of a plan for a version.
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
