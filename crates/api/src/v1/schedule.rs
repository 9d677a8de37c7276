//! Schedules of workflows: requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::schedule as core;
use bellwether_core::words::counter::ScheduleRevision;
use bellwether_core::words::cron::Cron;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::WorkflowName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::zone::Zone;
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use super::policy::Policy;
use crate::shape::{ShapeError, object, read, read_some, reason};

/// Time zone of a schedule that names none.
pub const DEFAULT_TIME_ZONE: &str = "UTC";

/// Request to create a schedule, or to change one. Absent fields take their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSpec {
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
    /// What happens at a due time while its last run is in progress. Default `forbid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Whether due times pass without a run. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Policy of its runs; absent fields take their defaults, as for a run that is started by hand.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What happens at a due time while the last run is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// The due time is skipped.
    Forbid,
    /// Another run is started; a node that is in both begins it after the one before.
    Allow,
}

/// A schedule, as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// Number of the last change of what it is, from 1.
    pub revision: u64,
    /// Name of the workflow that it runs.
    pub workflow: String,
    /// Filter of the nodes that run it.
    pub filter: String,
    /// When it is due.
    pub cron: String,
    /// Time zone by whose clocks it is due.
    pub time_zone: String,
    /// How long after a due time its run may be started, in milliseconds.
    pub starting_deadline_ms: u64,
    /// What happens at a due time while its last run is in progress.
    pub concurrency: Concurrency,
    /// Whether due times pass without a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Policy of its runs.
    pub policy: Policy,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it is due next, in milliseconds since the Unix epoch; absent while it is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// When that was computed, in milliseconds since the Unix epoch, by the server's clock.
    pub planned_at_ms: u64,
    /// The run that it started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// What became of the last time that it was due; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<DueOutcome>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What became of a due time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DueOutcome {
    /// The due time, in milliseconds since the Unix epoch.
    pub due_ms: u64,
    /// `started`, `skipped` or `failed`.
    pub result: String,
    /// The run that was started, or why there is none.
    pub text: String,
}

/// What a schedule is to be, all but its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredSchedule {
    /// The workflow that it runs.
    pub workflow: WorkflowName,
    /// Filter of the nodes that run it.
    pub filter: String,
    /// When it is due.
    pub cron: Cron,
    /// By whose clocks.
    pub zone: Zone,
    /// How long after a due time its run may be started.
    pub starting_deadline: Span,
    /// What happens at a due time while its last run is in progress.
    pub concurrency: core::Concurrency,
    /// Whether due times pass without a run.
    pub suspended: bool,
    /// Reason for the change.
    pub reason: String,
}

impl ScheduleSpec {
    /// What the schedule is to be.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn desired(&self) -> Result<DesiredSchedule, ShapeError> {
        if self.filter.trim().is_empty() {
            return Err(ShapeError::at("filter", "missing; write 'all' for every node"));
        }
        Filter::parse(&self.filter, &NODES).map_err(|error| ShapeError::misread("filter", &error))?;
        let deadline: Option<Span> = read_some("starting_deadline", self.starting_deadline.as_deref())?;
        let deadline = deadline.unwrap_or(core::STARTING_DEADLINE);
        let (least, most) = (core::MIN_STARTING_DEADLINE, core::MAX_STARTING_DEADLINE);
        if !(least..=most).contains(&deadline) {
            return Err(ShapeError::at("starting_deadline", format!("{deadline}; write {least} to {most}")));
        }
        Ok(DesiredSchedule {
            workflow: read("workflow", &self.workflow)?,
            filter: self.filter.trim().to_owned(),
            cron: read("cron", &self.cron)?,
            zone: read("time_zone", self.time_zone.as_deref().unwrap_or(DEFAULT_TIME_ZONE))?,
            starting_deadline: deadline,
            concurrency: self.concurrency.map(Into::into).unwrap_or_default(),
            suspended: self.suspended,
            reason: reason(&self.reason)?,
        })
    }
}

impl Schedule {
    /// The request that would make this schedule.
    #[must_use]
    pub fn spec(&self) -> ScheduleSpec {
        ScheduleSpec {
            workflow: self.workflow.clone(),
            filter: self.filter.clone(),
            cron: self.cron.clone(),
            time_zone: Some(self.time_zone.clone()),
            starting_deadline: Some(Span::from_millis(self.starting_deadline_ms).to_string()),
            concurrency: Some(self.concurrency),
            suspended: self.suspended,
            policy: self.policy.clone(),
            reason: String::new(),
        }
    }
}

impl From<Concurrency> for core::Concurrency {
    fn from(from: Concurrency) -> Self {
        match from {
            Concurrency::Forbid => Self::Forbid,
            Concurrency::Allow => Self::Allow,
        }
    }
}

impl From<core::Concurrency> for Concurrency {
    fn from(from: core::Concurrency) -> Self {
        match from {
            core::Concurrency::Forbid => Self::Forbid,
            core::Concurrency::Allow => Self::Allow,
        }
    }
}

impl From<&core::Schedule> for Schedule {
    fn from(from: &core::Schedule) -> Self {
        let outcome = |last: &core::DueOutcome| DueOutcome {
            due_ms: last.due.as_millis(),
            result: last.result.to_string(),
            text: last.text.clone(),
        };
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            workflow: from.workflow.to_string(),
            filter: from.filter.clone(),
            cron: from.cron.to_string(),
            time_zone: from.zone.to_string(),
            starting_deadline_ms: from.starting_deadline.as_millis(),
            concurrency: from.concurrency.into(),
            suspended: from.suspended,
            policy: (&from.policy).into(),
            labels: labels_out(&from.labels),
            next_ms: from.next.map(Timestamp::as_millis),
            planned_at_ms: from.planned_at.as_millis(),
            last_run: from.last_run.as_ref().map(ToString::to_string),
            last: from.last.as_ref().map(outcome),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }
}

impl TryFrom<Schedule> for core::Schedule {
    type Error = ShapeError;
    fn try_from(from: Schedule) -> Result<Self, ShapeError> {
        let outcome = |last: DueOutcome| {
            let due = Timestamp::from_millis(last.due_ms);
            Ok::<_, ShapeError>(core::DueOutcome {
                due,
                result: read("result", &last.result)?,
                text: last.text,
            })
        };
        Ok(Self {
            name: read("name", &from.name)?,
            revision: ScheduleRevision::new(from.revision),
            workflow: read("workflow", &from.workflow)?,
            filter: from.filter,
            cron: read("cron", &from.cron)?,
            zone: read("time_zone", &from.time_zone)?,
            starting_deadline: Span::from_millis(from.starting_deadline_ms),
            concurrency: from.concurrency.into(),
            suspended: from.suspended,
            policy: (&from.policy).try_into()?,
            labels: labels_in(&from.labels)?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
            next: from.next_ms.map(Timestamp::from_millis),
            planned_at: Timestamp::from_millis(from.planned_at_ms),
            last_run: read_some("last_run", from.last_run.as_deref())?,
            last: from.last.map(outcome).transpose()?,
        })
    }
}
