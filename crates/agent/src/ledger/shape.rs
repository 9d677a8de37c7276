//! The ledger's stored form: JSON with its schema version.

mod envelope;
mod handovers;
mod identity;
mod live_params;
mod needs;
mod services;
mod statuses;

use bellwether_api::v1;
use bellwether_core::local::memory::{ActionRun, ApplyProgress, EntityMemory, FailureReason, RunOutcome};
use bellwether_core::records::order::Order;
use bellwether_core::words::counter::Epoch;
use bellwether_core::words::name::EntityName;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use serde::{Deserialize, Serialize};

pub(super) use handovers::{handover, handover_text};
pub(super) use identity::{identity, identity_text};
pub(super) use live_params::{live_params, live_params_text};
pub(super) use needs::{met, met_text};
pub(super) use services::{services, services_text};
pub(super) use statuses::{statuses, statuses_text};

use envelope::{SCHEMA, known, parse, text};

use super::entry::EntityEntry;
use crate::apply::process::ProcessMark;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderFile {
    schema: u32,
    order: v1::order::Order,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntityFile {
    schema: u32,
    entity: String,
    wanted: Option<v1::order::Assignment>,
    #[serde(default, skip_serializing_if = "is_zero")]
    named_in: u64,
    running: Option<String>,
    touched: Option<String>,
    progress: ProgressWord,
    failed_attempts: u32,
    retry_at_ms: Option<u64>,
    failure_reason: Option<FailureReasonShape>,
    process: Option<ProcessMarkShape>,
    run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ran: Option<ActionRunShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    followed: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    rendered: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionRunShape {
    version: String,
    outcome: RunOutcomeWord,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunOutcomeWord {
    Begun,
    Done,
    Failed,
    Lost,
    Retry,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgressWord {
    Begun,
    Static,
    Dynamic,
    Validated,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FailureReasonShape {
    NotYet { aim: ProgressWord, evidence: v1::evidence::Evidence },
    Failed { aim: ProgressWord, evidence: v1::evidence::Evidence },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessMarkShape {
    pid: i32,
    started_ticks: u64,
    boot_id: String,
}

/// Reads `order.json`.
pub(super) fn order(text: &str) -> Result<Order, String> {
    let file: OrderFile = parse(text)?;
    known(file.schema)?;
    file.order.try_into().map_err(|error: bellwether_api::shape::ShapeError| error.to_string())
}

/// Writes `order.json`.
pub(super) fn order_text(order: &Order) -> Result<String, String> {
    text(&OrderFile { schema: SCHEMA, order: order.into() })
}

/// Reads an entity's file.
pub(super) fn entity(text: &str) -> Result<(EntityName, EntityEntry), String> {
    let file: EntityFile = parse(text)?;
    known(file.schema)?;
    let name = EntityName::parse(&file.entity).map_err(|error| error.to_string())?;
    let version = |text: Option<String>| text.map(|text| Version::parse(&text)).transpose();
    let wanted = file.wanted.map(TryInto::try_into).transpose();
    let memory = EntityMemory {
        wanted: wanted.map_err(|error: bellwether_api::shape::ShapeError| error.to_string())?,
        named_in: Epoch::new(file.named_in),
        running: version(file.running).map_err(|error| error.to_string())?,
        touched: version(file.touched).map_err(|error| error.to_string())?,
        progress: file.progress.into(),
        failed_attempts: file.failed_attempts,
        retry_at: file.retry_at_ms.map(Timestamp::from_millis),
        failure_reason: file.failure_reason.map(Into::into),
        ran: file.ran.map(TryInto::try_into).transpose()?,
    };
    let process = file.process.map(|mark| ProcessMark {
        pid: mark.pid,
        started_ticks: mark.started_ticks,
        boot_id: mark.boot_id,
    });
    Ok((
        name,
        EntityEntry { memory, process, run: file.run, followed: file.followed, rendered: file.rendered },
    ))
}

/// Writes an entity's file.
pub(super) fn entity_text(name: &EntityName, entry: &EntityEntry) -> Result<String, String> {
    let memory = &entry.memory;
    let process = entry.process.as_ref().map(|mark| ProcessMarkShape {
        pid: mark.pid,
        started_ticks: mark.started_ticks,
        boot_id: mark.boot_id.clone(),
    });
    text(&EntityFile {
        schema: SCHEMA,
        entity: name.to_string(),
        wanted: memory.wanted.as_ref().map(Into::into),
        named_in: memory.named_in.get(),
        running: memory.running.as_ref().map(ToString::to_string),
        touched: memory.touched.as_ref().map(ToString::to_string),
        progress: memory.progress.into(),
        failed_attempts: memory.failed_attempts,
        retry_at_ms: memory.retry_at.map(Timestamp::as_millis),
        failure_reason: memory.failure_reason.as_ref().map(Into::into),
        process,
        run: entry.run.clone(),
        ran: memory.ran.as_ref().map(Into::into),
        followed: entry.followed,
        rendered: entry.rendered,
    })
}

impl TryFrom<ActionRunShape> for ActionRun {
    type Error = String;
    fn try_from(from: ActionRunShape) -> Result<Self, String> {
        let outcome = match from.outcome {
            RunOutcomeWord::Begun => RunOutcome::Begun,
            RunOutcomeWord::Done => RunOutcome::Done,
            RunOutcomeWord::Failed => RunOutcome::Failed,
            RunOutcomeWord::Lost => RunOutcome::Lost,
            RunOutcomeWord::Retry => RunOutcome::Retry,
        };
        Ok(Self { version: Version::parse(&from.version).map_err(|error| error.to_string())?, outcome })
    }
}

impl From<&ActionRun> for ActionRunShape {
    fn from(from: &ActionRun) -> Self {
        let outcome = match from.outcome {
            RunOutcome::Begun => RunOutcomeWord::Begun,
            RunOutcome::Done => RunOutcomeWord::Done,
            RunOutcome::Failed => RunOutcomeWord::Failed,
            RunOutcome::Lost => RunOutcomeWord::Lost,
            RunOutcome::Retry => RunOutcomeWord::Retry,
        };
        Self { version: from.version.to_string(), outcome }
    }
}

impl From<ProgressWord> for ApplyProgress {
    fn from(from: ProgressWord) -> Self {
        match from {
            ProgressWord::Begun => Self::Begun,
            ProgressWord::Static => Self::Static,
            ProgressWord::Dynamic => Self::Dynamic,
            ProgressWord::Validated => Self::Validated,
        }
    }
}

impl From<ApplyProgress> for ProgressWord {
    fn from(from: ApplyProgress) -> Self {
        match from {
            ApplyProgress::Begun => Self::Begun,
            ApplyProgress::Static => Self::Static,
            ApplyProgress::Dynamic => Self::Dynamic,
            ApplyProgress::Validated => Self::Validated,
        }
    }
}

impl From<FailureReasonShape> for FailureReason {
    fn from(from: FailureReasonShape) -> Self {
        match from {
            FailureReasonShape::NotYet { aim, evidence } => {
                Self::NotYet { aim: aim.into(), evidence: evidence.into() }
            }
            FailureReasonShape::Failed { aim, evidence } => {
                Self::Failed { aim: aim.into(), evidence: evidence.into() }
            }
        }
    }
}

impl From<&FailureReason> for FailureReasonShape {
    fn from(from: &FailureReason) -> Self {
        match from {
            FailureReason::NotYet { aim, evidence } => {
                Self::NotYet { aim: (*aim).into(), evidence: evidence.into() }
            }
            FailureReason::Failed { aim, evidence } => {
                Self::Failed { aim: (*aim).into(), evidence: evidence.into() }
            }
        }
    }
}
