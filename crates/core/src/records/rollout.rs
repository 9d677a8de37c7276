//! A rollout: one change of an entity's targets to a version, with author, time, reason, counts and outcome.
//! The rollouts of an entity are its history. Written only by the rollout decider.

pub mod frozen_targets;
mod held_target;
mod text;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use self::frozen_targets::FrozenTargets;
pub use self::held_target::HeldTarget;
use super::entity::RequestKind;
use super::evidence::Evidence;
use super::hook_answers::HookPurpose;
use super::policy::Policy;
use super::policy::ordering::ServiceNeed;
use crate::words::counter::{RequestNumber, RolloutNumber};
use crate::words::name::{Actor, FreezeName, TargetName};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Most batches kept with their counts; the oldest are removed first. A rollout in 5 % batches has twenty.
pub const MAX_BATCHES: usize = 64;

/// Most failed targets kept with their evidence: enough to see the cause, whatever the fleet's size.
pub const MAX_FAILURES: usize = 16;

/// One change of an entity's targets to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// Number in the entity's history, from 1.
    pub number: RolloutNumber,
    /// Number of the request it answers.
    pub request: RequestNumber,
    /// The version it rolls out.
    pub version: Version,
    /// The last known good version when it started; of an undo, the version that most targets were left on.
    pub from: Option<Version>,
    /// Kind of the request it answers.
    pub how: RequestKind,
    /// Token or node that requested it.
    pub by: Actor,
    /// The reason given with the request; may be empty.
    pub reason: String,
    /// The policy at the start; later changes take effect with the next pass but are not recorded here.
    pub policy: Policy,
    /// Time it started, by the server's clock.
    pub started: Timestamp,
    /// Time it reached its final state, by the server's clock.
    pub ended: Option<Timestamp>,
    /// Its state.
    pub state: RolloutState,
    /// Whether it rolls forward or back, and why back.
    pub direction: Direction,
    /// Judgement of its version.
    pub judgement: VersionJudgement,
    /// Failures and silent targets that a person accepted by resuming.
    pub waived: WaivedPauses,
    /// Progress through the policy's stages.
    pub stage: StageProgress,
    /// The largest number of succeeded targets so far, and when; only for a policy with `progress`.
    pub peak: Option<PeakProgress>,
    /// The largest number of targets so far: what the tolerated failures are a share of, so that targets that leave
    /// lower nothing.
    pub enrolled: u64,
    /// Counts of targets when the record was last written; the live ones come from the board.
    pub counts: TargetCounts,
    /// The batches that started, oldest first, at most the last [`MAX_BATCHES`].
    pub batches: Vec<RolloutBatch>,
    /// The first [`MAX_FAILURES`] targets that failed.
    pub failures: Vec<TargetFailure>,
}

/// State of a rollout. The last seven are final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutState {
    /// It dispatches its version, batch by batch.
    InProgress,
    /// It waits for a condition, and continues without an operation once the condition holds.
    Waiting(RolloutWait),
    /// It is paused; [`RolloutPause`] lists what ends each pause.
    Paused(RolloutPause),
    /// It rolls its targets back to last known good.
    RollingBack,
    /// Enough targets succeeded and none failed.
    Succeeded,
    /// It ended with a good version, and some targets failed. Never shown as success.
    PartiallySucceeded {
        /// Number of failed targets.
        failed: u64,
    },
    /// It continued to its end in spite of its failures, and the version is bad.
    Failed {
        /// Number of failed targets.
        failed: u64,
    },
    /// Every target that was updated is back on last known good, or will be once it is reachable.
    RolledBack,
    /// The rollback ended, and some targets failed on last known good.
    RollbackFailed {
        /// Number of targets that failed during the rollback.
        failed: u64,
    },
    /// A person aborted it; targets were left as they are.
    Aborted {
        /// Token or node that aborted it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
    /// A newer rollout replaced it.
    Superseded {
        /// Number of the newer rollout.
        by: RolloutNumber,
    },
}

/// Condition that a rollout waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutWait {
    /// Nothing matches the selector, and no controller reported a target.
    NoTargets,
    /// The policy's batch is zero.
    BatchIsZero,
    /// Every target that is left is held: paused or cordoned by an operator, or not able to begin.
    OnlyHeld {
        /// One of them, and what holds it; `None` in a record of an earlier release.
        held: Option<HeldTarget>,
    },
    /// Every target that is left has recently stopped reporting.
    OnlyQuiet,
    /// Every target is unreachable.
    OnlyUnreachable,
    /// No target carries the label of the policy's domain.
    NoDomain {
        /// The label's key.
        key: Arc<str>,
    },
    /// A freeze is in force.
    Frozen {
        /// Name of the freeze, unique in its namespace, or among the global ones.
        freeze: FreezeName,
        /// Token or node that set the freeze.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
        /// Time it ends without an operation; `None` if a person must remove it.
        until: Option<Timestamp>,
    },
    /// The policy's windows are closed.
    Window {
        /// Time the next window opens.
        opens: Timestamp,
    },
    /// Every target that is left is frozen, or outside its own windows.
    Shut {
        /// Time at which that next changes for a target; `None` if a person must act.
        until: Option<Timestamp>,
        /// The targets of the freeze that keeps the most; `None` if only windows are closed.
        frozen: Option<FrozenTargets>,
    },
    /// A person must approve the next stage.
    Approval {
        /// Number of the stage, from 1.
        stage: u32,
    },
    /// Every target that is left has a data store that must not stop now.
    Stores {
        /// Why not the first of them, in one line for people.
        reason: String,
    },
    /// A service is not functional.
    Need {
        /// The service and number of instances needed.
        need: ServiceNeed,
        /// Number of functional instances when the rollout began to wait, or last looked.
        functional: u64,
    },
    /// The policy's limit of unavailable targets is reached.
    Unavailable {
        /// The domain whose limit is reached; `None` for the limit over all targets.
        domain: Option<Arc<str>>,
    },
    /// A hook has not answered yet, or has not approved.
    Hook {
        /// Purpose of the hook.
        asked: HookPurpose,
        /// The hook's answer, or what happens meanwhile; may be empty.
        reason: String,
    },
}

/// Why a rollout is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutPause {
    /// A person paused it; `resume` ends it.
    Person {
        /// Token or node that paused it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
    /// The version is bad for another reason than failed targets, and the policy pauses, or there is no known
    /// good version to roll back to; `resume` accepts that reason.
    Bad {
        /// Why it is bad.
        reason: String,
    },
    /// The version is bad and the policy pauses; `resume` accepts these failures.
    TooManyFailed {
        /// Number of failed targets.
        failed: u64,
        /// Number of tolerated failures.
        tolerated: u64,
    },
    /// The version is bad and there is no known good version to roll back to; `resume` accepts these
    /// failures.
    NothingToRollBackTo {
        /// Number of failed targets.
        failed: u64,
        /// Number of tolerated failures.
        tolerated: u64,
    },
    /// A stop is in force; the pause ends with it.
    Stopped {
        /// Name of the freeze, unique in its namespace, or among the global ones.
        freeze: FreezeName,
        /// Token or node that set the stop.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
    /// The monitor of the rollout as a whole does not answer; the pause ends when it does.
    MonitorSilent {
        /// The error, and what happens meanwhile.
        reason: String,
    },
    /// Every target that was updated failed, and each was failing on the last known good version before: nothing shows
    /// whether the version is good. Ends when one of them succeeds, or by `resume`, which accepts these failures.
    OnlyFailingBefore {
        /// Number of these targets.
        failing: u64,
    },
    /// Too many targets are silent; ends when enough of them report again, or by `resume`.
    TooManyUnreachable {
        /// Number of silent targets, with those that do not accept their orders.
        unreachable: u64,
        /// How many of them are in contact, but do not accept their orders.
        refusing: u64,
        /// Number of tolerated silent targets.
        tolerated: u64,
    },
}

/// Direction of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Direction {
    /// Forward, to its version.
    Forward,
    /// Back to last known good, because the version is bad.
    RollbackFromBad,
    /// Back to last known good, because a person requested it.
    RollbackByUndo {
        /// Token or node that requested it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
}

/// Judgement of a rollout's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionJudgement {
    /// No judgement yet.
    Open,
    /// Enough targets succeeded: it became last known good. Later failures do not change that.
    Good {
        /// Time of the judgement, by the server's clock.
        at: Timestamp,
    },
    /// Too many targets failed: it became last known bad.
    Bad {
        /// Time of the judgement, by the server's clock.
        at: Timestamp,
        /// One line: how many failed, of how many, and the first of them.
        reason: String,
    },
}

/// What a person accepted by resuming a rollout that had paused itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaivedPauses {
    /// Number of failures tolerated, in place of the policy's.
    pub failed: u64,
    /// Number of silent targets tolerated, in place of the policy's.
    pub unreachable: u64,
    /// Whether the monitor's judgement is ignored.
    pub monitor: bool,
}

/// Progress of a rollout through the policy's stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageProgress {
    /// Index of the present stage, from 0.
    pub at: u32,
    /// Stages with an index below this, from 0, need no further approval.
    pub approved: u32,
}

/// The largest number of targets that had succeeded at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakProgress {
    /// Number of succeeded targets.
    pub best: u64,
    /// Time it was reached, on the entity's pause clock, moved forward by the waiting time that does not
    /// count.
    pub at: Timestamp,
}

/// Number of a rollout's targets in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetCounts {
    /// All targets of the entity.
    pub targets: u64,
    /// Assigned by this rollout, without an outcome yet.
    pub in_flight: u64,
    /// Succeeded on the version.
    pub succeeded: u64,
    /// Failed on the version, including former targets.
    pub failed: u64,
    /// Failed on the version as they had on the last known good one before: no evidence against the version.
    pub failing_before: u64,
    /// Silent past their deadline, or silent and never assigned the version.
    pub unreachable: u64,
    /// Held by an operator before they were assigned the version.
    pub held: u64,
    /// Not assigned the version yet, and none of the above.
    pub waiting: u64,
    /// Back on last known good.
    pub returned: u64,
    /// Failed during the rollback.
    pub failed_return: u64,
    /// Out of contact during the rollback: they go back when they are heard of again.
    pub missed_return: u64,
}

/// One batch: as many targets as the policy's batch allows in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutBatch {
    /// Number of the batch, from 1.
    pub number: u64,
    /// Time its first target was assigned, by the server's clock.
    pub opened: Timestamp,
    /// Number of assigned targets at which the batch is full.
    pub upto: u64,
    /// Target counts of the rollout when the batch started.
    pub counts: TargetCounts,
}

/// A target that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFailure {
    /// Name of the target.
    pub target: TargetName,
    /// Time of the failure, by the server's clock.
    pub at: Timestamp,
    /// Evidence of the failure.
    pub evidence: Arc<Evidence>,
}

impl Rollout {
    /// Whether the rollout has reached a final state.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.is_final()
    }
}

impl RolloutState {
    /// Whether the state is final.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::InProgress | Self::Waiting(_) | Self::Paused(_) | Self::RollingBack => false,
            Self::Succeeded
            | Self::PartiallySucceeded { .. }
            | Self::Failed { .. }
            | Self::RolledBack
            | Self::RollbackFailed { .. }
            | Self::Aborted { .. }
            | Self::Superseded { .. } => true,
        }
    }
}
