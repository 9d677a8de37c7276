//! Rollouts, as they travel and are kept.

pub mod counts;
pub mod direction;
pub mod status;

use std::sync::Arc;

use bellwether_core::records::rollout as core;
use bellwether_core::words::counter::{RequestNumber, RolloutNumber};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::counts::TargetCounts;
pub use self::direction::{Direction, PersonAction, VersionJudgement};
pub use self::status::{RolloutState, RolloutStatus};
use super::entity::{Entity, RequestKind};
use super::evidence::Evidence;
use super::policy::Policy;
use super::progress::Progress;
use crate::shape::{ShapeError, read, read_some};

/// Asks for a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRollout {
    /// The version every target is to be at. With a profile, `profile@revision`, or its newest if absent; with an action,
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why, for whoever reads the history.
    #[serde(default)]
    pub reason: String,
    /// Policy fields for this rollout; the others are the entity's.
    #[serde(default)]
    pub policy: Policy,
    /// Names of policy fields that take their defaults for this rollout, like `windows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// Whether `policy` and `unset` change the entity's policy too, rather than this rollout's alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub save: bool,
    /// A plan's token: refused if the world is no longer as the plan saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A rollout that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StartedRollout {
    /// The version that was meant.
    pub version: String,
    /// The request's number; the rollout that answers it bears it.
    pub request: u64,
}

/// Asks for something to be done to the current rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutOperation {
    /// For `retry` alone: the bad version to try again; the last one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// For `approve` alone: the stage that is approved, from 1; the one that waits if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Why, for whoever reads the history.
    #[serde(default)]
    pub reason: String,
}

/// One move of an entity's targets to a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rollout {
    /// Its place in the entity's history, from 1.
    pub number: u64,
    /// The request it answers.
    pub request: u64,
    /// The version it moves targets to.
    pub version: String,
    /// What was last known good when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The kind of the request it answers.
    pub kind: RequestKind,
    /// Who asked.
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// The policy at its start.
    pub policy: Policy,
    /// When it started.
    pub started_ms: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Its state, with what it waits for or why it is paused.
    pub status: RolloutStatus,
    /// Whether it moves targets to its version or rolls them back.
    pub direction: Direction,
    /// Who undid it, if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<PersonAction>,
    /// The verdict on its version.
    pub judgement: VersionJudgement,
    /// Failures a person let pass.
    #[serde(default)]
    pub waived_failed: u64,
    /// Silent targets a person let pass.
    #[serde(default)]
    pub waived_unreachable: u64,
    /// Whether a person let pass what its monitor says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waived_monitor: bool,
    /// How far through the policy's stages it is.
    #[serde(default, skip_serializing_if = "is_first")]
    pub stage: StageProgress,
    /// The most targets it ever had gained at once; kept for a policy with `progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<PeakProgress>,
    /// How its targets stood when this was written.
    pub counts: TargetCounts,
    /// The batches opened, oldest first, the last 64.
    #[serde(default)]
    pub batches: Vec<RolloutBatch>,
    /// The first 16 targets that failed.
    #[serde(default)]
    pub failures: Vec<TargetFailure>,
}

/// How far through the policy's stages a rollout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StageProgress {
    /// The stage it is in, from 0.
    pub current: u32,
    /// Stages before this one need no approval any more.
    #[serde(default)]
    pub approved: u32,
}

/// The most targets a rollout ever had gained at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PeakProgress {
    /// How many had succeeded.
    pub succeeded: u64,
    /// Since when, on a clock that stands still while nothing counts.
    pub at_ms: u64,
}

/// One batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutBatch {
    /// Its place, from 1.
    pub number: u64,
    /// When its first target was told.
    pub opened_ms: u64,
    /// How many targets will have been told when it is full.
    pub assigned_total: u64,
    /// How the rollout stood when it opened.
    pub counts: TargetCounts,
}

/// One target that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetFailure {
    /// Which.
    pub target: String,
    /// When.
    pub at_ms: u64,
    /// What it looked like.
    pub evidence: Evidence,
}

/// A rollout with what is around it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutView {
    /// The entity.
    pub entity: Entity,
    /// Where the entity stands.
    pub progress: Progress,
    /// The rollout that runs, or the last one; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// How its targets stand now.
    pub counts: TargetCounts,
    /// Targets that must succeed: S.
    pub needed: u64,
    /// Failures tolerated: F.
    pub tolerated: u64,
    /// Most targets in flight at once.
    pub batch: u64,
    /// The state of the rollout and the reason for it, one line for a person.
    pub message: String,
    /// The server's clock, in milliseconds since the Unix epoch: ages are counted from it.
    pub now_ms: u64,
    /// Revision of the last change to this entity, its targets or their reports; pass as `index` to wait for the next.
    pub revision: u64,
}

impl From<&core::Rollout> for Rollout {
    fn from(from: &core::Rollout) -> Self {
        Self {
            number: from.number.get(),
            request: from.request.get(),
            version: from.version.to_string(),
            from: from.from.as_ref().map(ToString::to_string),
            kind: from.how.into(),
            by: from.by.to_string(),
            reason: from.reason.clone(),
            policy: (&from.policy).into(),
            started_ms: from.started.as_millis(),
            ended_ms: from.ended.map(Timestamp::as_millis),
            status: (&from.state).into(),
            direction: (&from.direction).into(),
            undone: direction::undone(&from.direction),
            judgement: (&from.judgement).into(),
            waived_failed: from.waived.failed,
            waived_unreachable: from.waived.unreachable,
            waived_monitor: from.waived.monitor,
            stage: StageProgress { current: from.stage.at, approved: from.stage.approved },
            peak: from.peak.map(|peak| PeakProgress { succeeded: peak.best, at_ms: peak.at.as_millis() }),
            counts: from.counts.into(),
            batches: from.batches.iter().map(RolloutBatch::from).collect(),
            failures: from.failures.iter().map(TargetFailure::from).collect(),
        }
    }
}

impl TryFrom<Rollout> for core::Rollout {
    type Error = ShapeError;
    fn try_from(from: Rollout) -> Result<Self, ShapeError> {
        Ok(Self {
            number: RolloutNumber::new(from.number),
            request: RequestNumber::new(from.request),
            version: read("version", &from.version)?,
            from: read_some("from", from.from.as_deref())?,
            how: from.kind.into(),
            by: read("by", &from.by)?,
            reason: from.reason,
            policy: (&from.policy).try_into().map_err(|error: ShapeError| error.within("policy"))?,
            started: Timestamp::from_millis(from.started_ms),
            ended: from.ended_ms.map(Timestamp::from_millis),
            state: from.status.try_into()?,
            direction: direction::read_direction(from.direction, from.undone)?,
            judgement: from.judgement.into(),
            waived: core::WaivedPauses {
                failed: from.waived_failed,
                unreachable: from.waived_unreachable,
                monitor: from.waived_monitor,
            },
            stage: core::StageProgress { at: from.stage.current, approved: from.stage.approved },
            peak: from.peak.map(|peak| core::PeakProgress {
                best: peak.succeeded,
                at: Timestamp::from_millis(peak.at_ms),
            }),
            counts: from.counts.into(),
            batches: from.batches.into_iter().map(Into::into).collect(),
            failures: from.failures.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

/// Whether a rollout is where every rollout begins.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form in which serde asks")]
fn is_first(stage: &StageProgress) -> bool {
    *stage == StageProgress::default()
}

impl From<&core::RolloutBatch> for RolloutBatch {
    fn from(from: &core::RolloutBatch) -> Self {
        let opened_ms = from.opened.as_millis();
        Self { number: from.number, opened_ms, assigned_total: from.upto, counts: from.counts.into() }
    }
}

impl From<RolloutBatch> for core::RolloutBatch {
    fn from(from: RolloutBatch) -> Self {
        let opened = Timestamp::from_millis(from.opened_ms);
        Self { number: from.number, opened, upto: from.assigned_total, counts: from.counts.into() }
    }
}

impl From<&core::TargetFailure> for TargetFailure {
    fn from(from: &core::TargetFailure) -> Self {
        Self {
            target: from.target.to_string(),
            at_ms: from.at.as_millis(),
            evidence: (&*from.evidence).into(),
        }
    }
}

impl TryFrom<TargetFailure> for core::TargetFailure {
    type Error = ShapeError;
    fn try_from(from: TargetFailure) -> Result<Self, ShapeError> {
        Ok(Self {
            target: read("failures.target", &from.target)?,
            at: Timestamp::from_millis(from.at_ms),
            evidence: Arc::new(from.evidence.into()),
        })
    }
}
