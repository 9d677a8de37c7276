//! Reports of agents: requests, which contain durations because an agent has no common clock with the server,
//! and stored records, which contain times of the server's clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_core::records::report as core;
use bellwether_core::words::counter::{AssignmentNumber, Epoch, Generation};
use bellwether_core::words::feature::{Feature, Features};
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::job::ReportedJob;
use super::registrations::waits_for;
use super::status::Status;
use crate::shape::{ShapeError, is_zero, map_from, read, read_some, try_map_from};

/// The observed state of one node. The agent sends the whole report whenever something changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Node name; it must be that of the sender.
    pub node: String,
    /// The agent's version.
    pub agent_version: String,
    /// Generation of the order that the node has accepted.
    pub generation: u64,
    /// Features of the agent; those of the first release if absent. What an agent does not have is not in its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<BTreeSet<String>>,
    /// The agent's ledger, a DNS label; another one means that the agent lost the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// The epoch of the installation in which this ledger was reported first; 0 if it was never restored from a backup. Ignored in requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ledger_since: u64,
    /// Number of the report among those of this ledger, from 1: one that arrives after a later one changes nothing. Absent from an agent
    /// that does not number them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequence: u64,
    /// The state of each entity, by entity name, at most 1,024.
    #[serde(default)]
    pub entities: BTreeMap<String, EntityReport>,
    /// The state in each category, by category, at most 64.
    #[serde(default)]
    pub statuses: BTreeMap<String, Status>,
    /// Statuses that were deleted at the control plane, with the update that is not to return. Ignored in requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deleted: BTreeMap<String, u64>,
    /// Time at which the report arrived, in milliseconds since the Unix epoch, by the server's clock. Ignored
    /// in requests.
    #[serde(default)]
    pub received_at_ms: u64,
}

/// The observed state of one entity on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntityReport {
    /// The version that the node runs: the last one whose validation passed; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// Number of the assignment to which this state belongs; 0 for none.
    #[serde(default)]
    pub answering: u64,
    /// Time at which the first report that answers this assignment arrived, in milliseconds since the Unix epoch. Ignored in
    /// requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answered_at_ms: u64,
    /// What the node is doing about the assignment.
    #[serde(default)]
    pub activity: TargetActivity,
    /// The result of the entity's checks.
    #[serde(default)]
    pub health: TargetHealth,
    /// How long the entity has been healthy without interruption, in milliseconds, measured on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_for_ms: Option<u64>,
    /// Time since which the entity has been healthy, in milliseconds since the Unix epoch, by the server's
    /// clock. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_since_ms: Option<u64>,
    /// Healthy time on the assignment that the agent observed itself, and then confirmed by asking every check again, in
    /// milliseconds; absent until that is the soak in its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soaked_ms: Option<u64>,
    /// Why the entity's health was lost in the soak of the assignment, the first time, in one line; absent if it was not. It stays until
    /// another assignment, so that a server that was away learns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_failure: Option<String>,
    /// Whether the agent has started again since it accepted the assignment, and may not have seen everything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_restarted: bool,
    /// Services that the entity waits for before it continues, at most 64.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waits_for: BTreeSet<String>,
    /// The step that runs; absent if none runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<RunningStep>,
    /// For the run of a workflow: its jobs; absent if none of them changed since the last report. Only in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<ReportedJob>>,
}

/// Longest reason of a soak's failure that is kept, in characters.
const MAX_SOAK_FAILURE: usize = 500;

/// A step that runs on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunningStep {
    /// The part: `static`, `dynamic`, `static, then dynamic`, `validate` or `action`.
    pub part: String,
    /// The command lines of the part, in order, at most 120 characters.
    pub command: String,
    /// How long it has run, in milliseconds, measured on the machine. Only in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Its start, in milliseconds since the Unix epoch, by the server's clock. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// How long each part may take, in milliseconds.
    pub limit_ms: u64,
}

/// What a node is doing about an assignment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetActivity {
    /// Nothing; or the assignment is complete.
    #[default]
    Nothing,
    /// The node applies the version.
    Applying {
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The check that has not passed since the start, with its first complaint, one line; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<String>,
    },
    /// The node cannot start yet.
    Waiting {
        /// What it waits for, one line.
        reason: String,
    },
    /// The node failed to apply the version.
    Failed {
        /// Number of failed attempts, from 1.
        attempts: u32,
        /// Evidence of the last failure.
        evidence: Evidence,
    },
}

/// The result of the checks of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetHealth {
    /// The entity has no checks.
    #[default]
    NoChecks,
    /// No check fails.
    Healthy,
    /// At least one fails.
    Failing {
        /// The failing checks and their output.
        evidence: Evidence,
    },
}

impl From<&core::Report> for Report {
    fn from(from: &core::Report) -> Self {
        let entities = from.entities.iter().map(|(name, report)| (name.to_string(), report.into()));
        let statuses = from.statuses.iter().map(|(name, status)| (name.to_string(), status.into()));
        Self {
            node: from.node.to_string(),
            agent_version: from.agent_version.clone(),
            generation: from.generation.get(),
            features: Some(from.features.iter().map(|feature| feature.to_string()).collect()),
            ledger: from.ledger.as_ref().map(ToString::to_string),
            ledger_since: from.ledger_since.get(),
            sequence: from.sequence,
            entities: map_from(entities),
            statuses: map_from(statuses),
            deleted: from.deleted.iter().map(|(category, update)| (category.to_string(), *update)).collect(),
            received_at_ms: from.received_at.as_millis(),
        }
    }
}

impl TryFrom<Report> for core::Report {
    type Error = ShapeError;
    fn try_from(from: Report) -> Result<Self, ShapeError> {
        if from.entities.len() > core::MAX_ENTITIES {
            return Err(ShapeError::at("entities", format!("more than {}", core::MAX_ENTITIES)));
        }
        if from.statuses.len() > bellwether_core::records::status::MAX_CATEGORIES {
            return Err(ShapeError::at("statuses", "more than 64"));
        }
        let entities = from.entities.into_iter().map(|(name, report)| {
            let at = |error: ShapeError| error.within(&format!("entities.{name}"));
            Ok((read("name", &name).map_err(at)?, report.try_into().map_err(at)?))
        });
        let statuses = from.statuses.into_iter().map(|(name, status)| {
            let at = |error: ShapeError| error.within(&format!("statuses.{name}"));
            Ok((read("name", &name).map_err(at)?, status.try_into().map_err(at)?))
        });
        let deleted = from.deleted.iter().map(|(name, update)| Ok((read("deleted", name)?, *update)));
        Ok(Self {
            node: read("node", &from.node)?,
            received_at: Timestamp::from_millis(from.received_at_ms),
            agent_version: from.agent_version.chars().take(64).collect(),
            generation: Generation::new(from.generation),
            // Features of later builds are of no use to this one.
            features: from.features.map_or_else(Features::default, |features| {
                features.iter().filter_map(|feature| Feature::named(feature)).collect()
            }),
            ledger: read_some("ledger", from.ledger.as_deref())?,
            ledger_since: Epoch::new(from.ledger_since),
            sequence: from.sequence,
            entities: try_map_from(entities)?,
            statuses: try_map_from(statuses)?,
            deleted: try_map_from(deleted)?,
        })
    }
}

impl From<&core::EntityReport> for EntityReport {
    fn from(from: &core::EntityReport) -> Self {
        Self {
            running: from.running.as_ref().map(ToString::to_string),
            answering: from.answering.get(),
            activity: (&from.activity).into(),
            health: (&from.health).into(),
            healthy_for_ms: None,
            healthy_since_ms: from.healthy_since.map(Timestamp::as_millis),
            answered_at_ms: from.answered_at.as_millis(),
            soaked_ms: from.soaked.map(Span::as_millis),
            soak_failure: from.soak_failure.as_deref().map(ToOwned::to_owned),
            agent_restarted: from.agent_restarted,
            waits_for: from.waits_for.iter().map(ToString::to_string).collect(),
            step: from.step.as_ref().map(|step| RunningStep {
                part: step.part.clone(),
                command: step.command.clone(),
                for_ms: None,
                since_ms: Some(step.since.as_millis()),
                limit_ms: step.limit.as_millis(),
            }),
            jobs: None,
        }
    }
}

impl TryFrom<EntityReport> for core::EntityReport {
    type Error = ShapeError;
    fn try_from(from: EntityReport) -> Result<Self, ShapeError> {
        Ok(Self {
            waits_for: waits_for(&from.waits_for)?,
            running: read_some("running", from.running.as_deref())?,
            answering: AssignmentNumber::new(from.answering),
            activity: from.activity.into(),
            health: from.health.into(),
            healthy_since: from.healthy_since_ms.map(Timestamp::from_millis),
            answered_at: Timestamp::from_millis(from.answered_at_ms),
            soaked: from.soaked_ms.map(Span::from_millis),
            agent_restarted: from.agent_restarted,
            soak_failure: from
                .soak_failure
                .map(|reason| reason.chars().take(MAX_SOAK_FAILURE).collect::<String>().into()),
            step: from.step.map(|step| {
                let part: String = step.part.chars().take(64).collect();
                let since = Timestamp::from_millis(step.since_ms.unwrap_or_default());
                core::RunningStep::new(&part, &step.command, since, Span::from_millis(step.limit_ms))
            }),
        })
    }
}

impl From<&bellwether_core::records::report::TargetActivity> for TargetActivity {
    fn from(from: &bellwether_core::records::report::TargetActivity) -> Self {
        match from {
            bellwether_core::records::report::TargetActivity::Nothing => Self::Nothing,
            bellwether_core::records::report::TargetActivity::Applying { attempt, waiting_for } => {
                Self::Applying { attempt: *attempt, waiting_for: waiting_for.as_deref().map(str::to_owned) }
            }
            bellwether_core::records::report::TargetActivity::Waiting { reason } => {
                Self::Waiting { reason: reason.to_string() }
            }
            bellwether_core::records::report::TargetActivity::Failed { attempts, evidence } => {
                Self::Failed { attempts: *attempts, evidence: (&**evidence).into() }
            }
        }
    }
}

impl From<TargetActivity> for bellwether_core::records::report::TargetActivity {
    fn from(from: TargetActivity) -> Self {
        match from {
            TargetActivity::Nothing => Self::Nothing,
            TargetActivity::Applying { attempt, waiting_for } => {
                let line = |text: String| text.chars().take(512).collect::<String>().into();
                Self::Applying { attempt, waiting_for: waiting_for.map(line) }
            }
            TargetActivity::Waiting { reason } => {
                Self::Waiting { reason: reason.chars().take(512).collect::<String>().into() }
            }
            TargetActivity::Failed { attempts, evidence } => {
                Self::Failed { attempts, evidence: Arc::new(evidence.into()) }
            }
        }
    }
}

impl From<&bellwether_core::records::report::TargetHealth> for TargetHealth {
    fn from(from: &bellwether_core::records::report::TargetHealth) -> Self {
        match from {
            bellwether_core::records::report::TargetHealth::NoChecks => Self::NoChecks,
            bellwether_core::records::report::TargetHealth::Healthy => Self::Healthy,
            bellwether_core::records::report::TargetHealth::Failing { evidence } => {
                Self::Failing { evidence: (&**evidence).into() }
            }
        }
    }
}

impl From<TargetHealth> for bellwether_core::records::report::TargetHealth {
    fn from(from: TargetHealth) -> Self {
        match from {
            TargetHealth::NoChecks => Self::NoChecks,
            TargetHealth::Healthy => Self::Healthy,
            TargetHealth::Failing { evidence } => Self::Failing { evidence: Arc::new(evidence.into()) },
        }
    }
}
