//! External targets: reports of controllers, their answers, and the stored records.

pub mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::external as core;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::rollout::RolloutStatus;
use crate::shape::{ShapeError, map_from, read, read_some, try_map_from};

/// Report of a controller about its targets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReports {
    /// Name of the controller; the name of the token if absent. Each group has one controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Whether to take over the group from another controller that still reports it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_over: bool,
    /// Group of all names in this report: `NAME` means `GROUP/NAME`. If absent, names contain their group.
    #[schema(example = "blue")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Some or all of the targets, at most 10,000.
    #[serde(default)]
    pub targets: Vec<TargetReport>,
    /// Whether these are all targets of `group`; others of it are removed. Without `group`, this applies to
    /// the targets outside any group and to those of each group that occurs in the names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    /// With `complete`: the report is about names after this one only, in the order of their bytes.
    #[schema(example = "shop-1999")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// With `complete`: the report is about names up to this one only, which is included.
    #[schema(example = "shop-2999")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Names of targets to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// The state of one target, as its controller observed it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetReport {
    /// Target name: 1 to 253 letters, digits and `. _ : / -`.
    #[schema(example = "shop-1")]
    pub name: String,
    /// The version that the target runs; absent if it is not known.
    #[schema(example = "v2")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// The error of the target, one line; absent if the target is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of the assignment to which this report belongs. If absent, the report is judged by the version that the
    /// target runs: an error of another version than the assigned one is no evidence about the assigned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<u64>,
}

/// The versions that targets are assigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExpectedVersions {
    /// The targets that were reported, in the order of the report.
    pub targets: Vec<ExpectedVersion>,
    /// Status of the entity's last rollout; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RolloutStatus>,
    /// The version that is being rolled out; absent if no rollout is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<String>,
    /// The last known good version; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<String>,
    /// The last known bad version; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_bad: Option<String>,
}

/// The version that one target is assigned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExpectedVersion {
    /// Target name, with its group.
    pub name: String,
    /// The version that the target is to run; absent if the target is to be left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Number of the assignment, to be sent with the next report of the target; it grows with each
    /// assignment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<u64>,
}

/// Stored record of the last report about an external target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExternalTarget {
    /// The version that the target runs; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// The error of the target, one line; absent if the target is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of the assignment to which the report belongs; 0 for none.
    #[serde(default)]
    pub answering: u64,
    /// Time of the first report that belongs to that assignment, in milliseconds since the Unix epoch.
    pub answered_at_ms: u64,
    /// Number of the assignment that the controller was last answered; 0 for none.
    #[serde(default)]
    pub assigned: u64,
    /// Time since which the target runs this version without an error, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_since_ms: Option<u64>,
    /// Time of the last report, in milliseconds since the Unix epoch.
    pub reported_at_ms: u64,
    /// Whether the target is unreachable: it was not reported for `unreachable_after`.
    #[serde(default)]
    pub unreachable: bool,
    /// Start of the present contact, or of the silence, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub contact_since_ms: u64,
}

/// Stored record of the controllers of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Controllers {
    /// The controller of each group, by group name; the key is empty for targets outside any group.
    pub groups: BTreeMap<String, Controller>,
}

/// The controller of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Controller {
    /// Controller name.
    pub name: String,
    /// Time of its last report, in milliseconds since the Unix epoch.
    pub reported_at_ms: u64,
}

impl From<&core::ExternalTarget> for ExternalTarget {
    fn from(from: &core::ExternalTarget) -> Self {
        Self {
            running: from.running.as_ref().map(ToString::to_string),
            error: from.error.as_ref().map(ToString::to_string),
            answering: from.answering.get(),
            answered_at_ms: from.answered_at.as_millis(),
            assigned: from.assigned.get(),
            healthy_since_ms: from.healthy_since.map(Timestamp::as_millis),
            reported_at_ms: from.reported_at.as_millis(),
            unreachable: from.silent,
            contact_since_ms: from.contact_since.as_millis(),
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
            answered_at: Timestamp::from_millis(from.answered_at_ms),
            assigned: AssignmentNumber::new(from.assigned),
            healthy_since: from.healthy_since_ms.map(Timestamp::from_millis),
            reported_at: Timestamp::from_millis(from.reported_at_ms),
            silent: from.unreachable,
            contact_since: Timestamp::from_millis(from.contact_since_ms),
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
