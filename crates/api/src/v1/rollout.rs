//! Rollouts: requests, answers and stored records.

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
use crate::shape::{ShapeError, object, read, read_some};

/// Request to start a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRollout {
    /// The version to roll out. For an entity with a profile, `profile@revision`; the newest revision if
    /// absent. For an entity with an action, absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Reason for the rollout, recorded in the history.
    #[serde(default)]
    pub reason: String,
    /// Policy fields for this rollout; the others are the entity's.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Names of policy fields that take their defaults for this rollout, like `windows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// Whether `policy` and `unset` also change the policy of the entity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub save: bool,
    /// The token of a plan: the start is refused if anything that the plan depends on has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// Answer to the request for a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StartedRollout {
    /// The version that is rolled out.
    pub version: String,
    /// Number of the request; the rollout that carries it out contains it.
    pub request: u64,
    /// Number of the rollout that must end before this one starts; absent if it starts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_behind: Option<u64>,
    /// Number of the rollout in progress that is rolled back, because the version is the last known good one;
    /// no new rollout starts then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Version of a queued request that this one replaced; it is not rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

impl StartedRollout {
    /// What the request leads to, in one line for a person.
    #[must_use]
    pub fn summary(&self) -> String {
        let version = &self.version;
        let line = match (self.queued_behind, self.undoes) {
            (Some(number), _) => {
                format!("rollout of {version} queued: starts when rollout {number} has ended")
            }
            (None, Some(number)) => format!("rollout {number} is rolled back to {version}"),
            (None, None) => format!("rollout of {version} started"),
        };
        match &self.replaces {
            Some(dropped) => format!("{line}; the queued rollout of {dropped} is dropped"),
            None => line,
        }
    }
}

/// Request to pause, resume, approve, abort, undo or retry the current rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutOperation {
    /// With `retry` only: the bad version to roll out again; the last known bad version if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// With `approve` only: the stage to approve, from 1; the stage that waits for approval if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Reason for the operation, recorded in the history.
    #[serde(default)]
    pub reason: String,
}

/// One rollout: the move of an entity's targets to a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Rollout {
    /// Number of the rollout within the entity, from 1.
    pub number: u64,
    /// Number of the request that it carries out.
    pub request: u64,
    /// The version it moves targets to.
    pub version: String,
    /// The last known good version when it started; of an undo, the version that most targets were left on. Absent if there was
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The kind of the request that it carries out.
    pub kind: RequestKind,
    /// Name of the token of the requester.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
    /// The policy of the rollout, as it was at the start.
    pub policy: Policy,
    /// Time of its start, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Time of its end, in milliseconds since the Unix epoch; absent while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Its state, with what it waits for or why it is paused.
    pub status: RolloutStatus,
    /// Whether it moves targets to its version or rolls them back.
    pub direction: Direction,
    /// Who undid the rollout; absent if no one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<PersonAction>,
    /// The verdict on its version.
    pub judgement: VersionJudgement,
    /// Number of failed targets that a person waived by resuming the rollout.
    #[serde(default)]
    pub waived_failed: u64,
    /// Number of unreachable targets that a person waived by resuming the rollout.
    #[serde(default)]
    pub waived_unreachable: u64,
    /// Whether a person waived the judgement of the monitor by resuming the rollout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waived_monitor: bool,
    /// The stage of the policy that the rollout is in.
    #[serde(default, skip_serializing_if = "is_first")]
    pub stage: StageProgress,
    /// The largest number of targets so far, of which the tolerated failures are a share.
    #[serde(default)]
    pub enrolled: u64,
    /// The highest number of succeeded targets so far; only with a policy that has `progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<PeakProgress>,
    /// Number of targets in each state when this record was written.
    pub counts: TargetCounts,
    /// The batches that were started, oldest first; the last 64.
    #[serde(default)]
    pub batches: Vec<RolloutBatch>,
    /// The first 16 targets that failed.
    #[serde(default)]
    pub failures: Vec<TargetFailure>,
}

/// The stage of the policy that a rollout is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StageProgress {
    /// Index of the present stage, from 0.
    pub current: u32,
    /// Number of stages that need no further approval.
    #[serde(default)]
    pub approved: u32,
}

/// The highest number of succeeded targets of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PeakProgress {
    /// Number of succeeded targets.
    pub succeeded: u64,
    /// Time at which it was reached, in milliseconds, on a clock that stands still while the rollout waits or
    /// is paused.
    pub at_ms: u64,
}

/// A batch of a rollout: targets that are assigned the version together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutBatch {
    /// Number of the batch, from 1.
    pub number: u64,
    /// Time of its first assignment, in milliseconds since the Unix epoch.
    pub opened_ms: u64,
    /// Number of targets that are assigned the version in this and all earlier batches, once it is full.
    pub assigned_total: u64,
    /// Number of targets in each state when the batch started.
    pub counts: TargetCounts,
}

/// A target that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetFailure {
    /// Target name.
    pub target: String,
    /// Time of the failure, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Evidence of the failure.
    pub evidence: Evidence,
}

/// The current rollout of an entity, with its present counts and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutView {
    /// The entity.
    pub entity: Entity,
    /// The progress of the entity's versions.
    pub progress: Progress,
    /// The version that targets are to run now: the one requested last, or the last known good one once a
    /// rollback began; absent before the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// The rollout in progress, or the last one; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Number of targets in each state now.
    pub counts: TargetCounts,
    /// Number of targets that must succeed.
    pub needed: u64,
    /// Number of failed targets that are tolerated.
    pub tolerated: u64,
    /// Most targets in flight at once.
    pub batch: u64,
    /// The state of the rollout and the reason for it, one line for a person.
    pub reason: String,
    /// Time of the answer by the server's clock, in milliseconds since the Unix epoch; ages are relative to
    /// it.
    pub now_ms: u64,
    /// Revision of the last change to the entity, its targets or their reports; pass it as `index` to wait
    /// for the next change.
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
            enrolled: from.enrolled,
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
            enrolled: from.enrolled,
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

/// Whether a rollout is in the first stage and nothing was approved.
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
