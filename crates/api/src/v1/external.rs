//! External targets: what controllers report and are answered, and what is kept of it.

pub mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::external as core;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::rollout::RolloutStatus;
use crate::shape::{ShapeError, map_from, read, read_some, try_map_from};

/// What a controller says of its targets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReports {
    /// What the controller calls itself; its token's name if absent. Each group has one controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Takes the group over from another controller that still reports it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_over: bool,
    /// The group that all names here are in: `NAME` means `GROUP/NAME`. Without it, names are whole.
    #[schema(example = "blue")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Some or all of the targets, at most 1000.
    #[serde(default)]
    pub targets: Vec<TargetReport>,
    /// These are all there are in the group (without one: outside of any); others of it are no targets any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    /// These are no targets any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// What a controller saw of one target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReport {
    /// Its name, 1 to 253 letters, digits and `. _ : / -`.
    #[schema(example = "shop-1")]
    pub name: String,
    /// The version it runs; absent if none is known.
    #[schema(example = "v2")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// What is wrong with it, in one line; absent when it runs well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The assignment that this is about, as it was answered; the last one that was answered if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<u64>,
}

/// What targets are to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExpectedVersions {
    /// Those that were reported, in that order.
    pub targets: Vec<ExpectedVersion>,
    /// The status of the entity's last rollout; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RolloutStatus>,
    /// The version that is rolled out now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<String>,
    /// The last version that was found good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<String>,
    /// The last version that was found bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_bad: Option<String>,
}

/// What one target is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExpectedVersion {
    /// Its whole name.
    pub name: String,
    /// The version it is to run; absent: as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of that assignment, to be sent back with the target's next report; it grows with every new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<u64>,
}

/// What was last reported of an external target, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExternalTarget {
    /// The version it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The assignment that the report answers.
    #[serde(default)]
    pub answering: u64,
    /// The assignment that its controller was last answered.
    #[serde(default)]
    pub assigned: u64,
    /// Since when it runs that version without an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_since_ms: Option<u64>,
    /// When it was last reported.
    pub reported_at_ms: u64,
    /// Whether it is silent.
    #[serde(default)]
    pub unreachable: bool,
}

/// Who reports an entity's external targets, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Controllers {
    /// By group; "" for targets outside of any.
    pub groups: BTreeMap<String, Controller>,
}

/// Who reports a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Controller {
    /// Its name.
    pub name: String,
    /// When it last reported.
    pub reported_at_ms: u64,
}

impl From<&core::ExternalTarget> for ExternalTarget {
    fn from(from: &core::ExternalTarget) -> Self {
        Self {
            running: from.running.as_ref().map(ToString::to_string),
            error: from.error.as_ref().map(ToString::to_string),
            answering: from.answering.get(),
            assigned: from.told.get(),
            healthy_since_ms: from.well_since.map(Timestamp::as_millis),
            reported_at_ms: from.reported_at.as_millis(),
            unreachable: from.silent,
        }
    }
}

impl TryFrom<ExternalTarget> for core::ExternalTarget {
    type Error = ShapeError;
    fn try_from(from: ExternalTarget) -> Result<Self, ShapeError> {
        Ok(Self {
            running: read_some("running", from.running.as_deref())?,
            error: from.error.map(Arc::from),
            answering: AssignmentNumber::new(from.answering),
            told: AssignmentNumber::new(from.assigned),
            well_since: from.healthy_since_ms.map(Timestamp::from_millis),
            reported_at: Timestamp::from_millis(from.reported_at_ms),
            silent: from.unreachable,
        })
    }
}

impl From<&core::Controllers> for Controllers {
    fn from(from: &core::Controllers) -> Self {
        let groups = from.0.iter().map(|(group, controller)| {
            let (name, reported_at_ms) = (controller.name.to_string(), controller.reported_at.as_millis());
            (group.clone(), Controller { name, reported_at_ms })
        });
        Self { groups: map_from(groups) }
    }
}

impl TryFrom<Controllers> for core::Controllers {
    type Error = ShapeError;
    fn try_from(from: Controllers) -> Result<Self, ShapeError> {
        let groups = from.groups.into_iter().map(|(group, controller)| {
            let name = read("groups", &controller.name)?;
            let reported_at = Timestamp::from_millis(controller.reported_at_ms);
            Ok::<_, ShapeError>((group, core::Controller { name, reported_at }))
        });
        Ok(Self(try_map_from(groups)?))
    }
}
