//! Documents of schedules.

use std::collections::BTreeMap;

use bellwether_core::records::schedule as core;
use serde::{Deserialize, Serialize};

use super::ignored::Ignored;
use super::schema;
use crate::shape::object;
use crate::v1::policy::Policy;
use crate::v1::schedule::{Concurrency, Schedule, ScheduleSpec};

/// The desired state of a schedule of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::schedule, required)]
    pub kind: Ignored,
    /// Schedule name, a DNS label.
    #[schema(example = "nightly")]
    pub name: String,
    /// Namespace of the schedule. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the workflow; it need not exist yet.
    #[schema(example = "backup")]
    pub workflow: String,
    /// Filter of the nodes that run it, such as `role=db`, evaluated at each due time; `all` for every node of the namespace.
    #[schema(example = "role=db")]
    pub filter: String,
    /// When it is due, as crontab(5) has it: minute, hour, day of the month, month and day of the week; or `@hourly`, `@daily`,
    /// `@weekly`, `@monthly`, `@yearly`.
    #[schema(example = "30 3 * * Mon-Fri")]
    pub cron: String,
    /// Time zone by whose clocks it is due. Default `UTC`.
    #[schema(example = "Europe/Berlin")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How long after a due time its run may be started, if no server could at that time, `10s` to `7d`. Default `1h`.
    #[schema(example = "1h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline: Option<String>,
    /// What happens at a due time while its last run is in progress: `forbid` skips it, `allow` starts another run. Default `forbid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Whether due times pass without a run. Default false.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Policy of its runs; absent fields take their defaults, as for a run that is started by hand.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "backups on working days")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl ScheduleDocument {
    /// The document of a schedule.
    #[must_use]
    pub fn of(schedule: &core::Schedule) -> Self {
        let shape = Schedule::from(schedule);
        let spec = shape.spec();
        Self {
            name: shape.name,
            labels: shape.labels,
            workflow: spec.workflow,
            filter: spec.filter,
            cron: spec.cron,
            time_zone: spec.time_zone,
            starting_deadline: spec.starting_deadline,
            concurrency: spec.concurrency,
            suspended: spec.suspended,
            policy: spec.policy,
            ..Self::default()
        }
    }

    /// The schedule that the document sets.
    #[must_use]
    pub fn spec(&self) -> ScheduleSpec {
        ScheduleSpec {
            workflow: self.workflow.clone(),
            filter: self.filter.clone(),
            cron: self.cron.clone(),
            time_zone: self.time_zone.clone(),
            starting_deadline: self.starting_deadline.clone(),
            concurrency: self.concurrency,
            suspended: self.suspended,
            policy: self.policy.clone(),
            reason: self.reason.clone(),
        }
    }
}
