//! A rollout: one move of an entity's targets to a version, with who, when, why, figures and outcome. The history of an
//! entity is all of them. Written only by the rollout decider.

mod text;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entity::RequestKind;
use super::evidence::Evidence;
use super::hook_answers::HookPurpose;
use super::policy::Policy;
use super::policy::ordering::ServiceNeed;
use crate::words::counter::{RequestNumber, RolloutNumber};
use crate::words::name::{Actor, FreezeName, TargetName};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Most batches kept with their figures; the oldest go first. A rollout in 5 % batches has twenty.
pub const MAX_BATCHES: usize = 64;

/// Most failed targets kept with their evidence: enough to see what is wrong, whatever the fleet's size.
pub const MAX_FAILURES: usize = 16;

/// One move of an entity's targets to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// Its place in the entity's history, from 1.
    pub number: RolloutNumber,
    /// The request it answers.
    pub request: RequestNumber,
    /// The version it moves targets to.
    pub version: Version,
    /// What was last known good when it started.
    pub from: Option<Version>,
    /// In which way it was asked for.
    pub how: RequestKind,
    /// Who asked.
    pub by: Actor,
    /// Why, in their words; may be empty.
    pub reason: String,
    /// The policy as it was at the start; later changes apply from the next pass but are not kept here.
    pub policy: Policy,
    /// When it started.
    pub started: Timestamp,
    /// When it reached its final state.
    pub ended: Option<Timestamp>,
    /// Where it stands.
    pub state: RolloutState,
    /// Which way it goes.
    pub direction: Direction,
    /// What is held of its version.
    pub judgement: VersionJudgement,
    /// What a person let pass by resuming.
    pub waived: WaivedPauses,
    /// How far through the policy's stages it is.
    pub stage: StageProgress,
    /// The most targets it ever had gained at once, and when; kept only for a policy with `progress`.
    pub peak: Option<PeakProgress>,
    /// The figures when the record was last written; the live ones come from the board.
    pub counts: TargetCounts,
    /// The batches opened, oldest first, the last [`MAX_BATCHES`].
    pub batches: Vec<RolloutBatch>,
    /// The first [`MAX_FAILURES`] targets that failed.
    pub failures: Vec<TargetFailure>,
}

/// Where a rollout stands. The last six are final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutState {
    /// It dispatches its version, batch by batch.
    InProgress,
    /// It will go on by itself when the reason is gone.
    Waiting(RolloutWait),
    /// It stands still; see [`RolloutPause`] for what ends it.
    Paused(RolloutPause),
    /// It takes its targets back to last known good.
    RollingBack,
    /// Enough targets succeeded and none failed.
    Succeeded,
    /// It went to its end, and this many failed. Never shown green.
    PartiallySucceeded {
        /// Targets that failed.
        failed: u64,
    },
    /// Every target that was moved is back on last known good, or will be when it is heard from.
    RolledBack,
    /// The rollback ended, and this many failed on last known good.
    RollbackFailed {
        /// Targets that failed on the way back.
        failed: u64,
    },
    /// A person ended it and left targets as they are.
    Aborted {
        /// The token or node that did it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
    /// A newer rollout took its place.
    Superseded {
        /// The newer one.
        by: RolloutNumber,
    },
}

/// What a rollout waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutWait {
    /// Nothing matches the selector, and no controller reported a target.
    NoTargets,
    /// The policy's batch is zero.
    BatchIsZero,
    /// What is left is held by an operator.
    OnlyHeld,
    /// What is left has just become quiet.
    OnlyQuiet,
    /// No target at all can be reached.
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
        /// The token or node that did it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
        /// When it ends by itself.
        until: Option<Timestamp>,
    },
    /// The policy's windows are closed.
    Window {
        /// When the next one opens.
        opens: Timestamp,
    },
    /// Every target that is left is frozen, or outside its own window.
    Shut {
        /// When that changes by itself for one of them.
        until: Option<Timestamp>,
    },
    /// A person has to approve the next stage.
    Approval {
        /// Which, from 1.
        stage: u32,
    },
    /// A service is not functional.
    Need {
        /// What is needed.
        need: ServiceNeed,
    },
    /// As many targets are unavailable as may be.
    Unavailable {
        /// The domain in which, if it is not all of them together.
        domain: Option<Arc<str>>,
    },
    /// A controller has not answered yet, or not agreed.
    Hook {
        /// The hook that was asked.
        asked: HookPurpose,
        /// What it said, or what happens instead; may be empty.
        reason: String,
    },
}

/// Why a rollout stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutPause {
    /// A person paused it; their `resume` ends it.
    Person {
        /// The token or node that did it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
    /// The version is bad for another reason than its failures, and the policy says to pause or there is nothing to go
    /// back to; a `resume` lets that pass.
    Bad {
        /// Why it is bad.
        reason: String,
    },
    /// The version is bad and the policy says to pause; a `resume` lets these failures pass.
    TooManyFailed {
        /// Targets that failed.
        failed: u64,
        /// Failures tolerated.
        tolerated: u64,
    },
    /// The version is bad and there is nothing to go back to; a `resume` lets these failures pass.
    NothingToRollBackTo {
        /// Targets that failed.
        failed: u64,
        /// Failures tolerated.
        tolerated: u64,
    },
    /// A stop is in force; ends with it.
    Stopped {
        /// Name of the freeze, unique in its namespace, or among the global ones.
        freeze: FreezeName,
        /// The token or node that did it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
    /// What judges the rollout as a whole does not answer; ends by itself when it does.
    MonitorSilent {
        /// What happens instead.
        reason: String,
    },
    /// Too many targets are silent; ends by itself when enough are heard from, or by `resume`.
    TooManyUnreachable {
        /// Silent targets.
        unreachable: u64,
        /// Silent targets tolerated.
        tolerated: u64,
    },
}

/// Which way a rollout goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Direction {
    /// To its version.
    Forward,
    /// To last known good, because the version is bad.
    RollbackFromBad,
    /// To last known good, because a person said so.
    RollbackByUndo {
        /// The token or node that did it.
        by: Actor,
        /// The reason given; may be empty.
        reason: String,
    },
}

/// What is held of a rollout's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionJudgement {
    /// Nothing yet.
    Open,
    /// Enough targets succeeded: it became last known good. No failure changes that.
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

/// What a person let pass by resuming a rollout that had paused itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaivedPauses {
    /// So many failures are tolerated, whatever the policy says.
    pub failed: u64,
    /// So many silent targets are tolerated, whatever the policy says.
    pub unreachable: u64,
    /// What the monitor says does not count any more.
    pub monitor: bool,
}

/// How far through the policy's stages a rollout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageProgress {
    /// The stage it is in, from 0.
    pub at: u32,
    /// Stages before this one need no approval any more, from 0.
    pub approved: u32,
}

/// The most targets a rollout ever had gained at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeakProgress {
    /// How many had succeeded.
    pub best: u64,
    /// Since when, on the entity's pause clock; later than that by whatever time did not count.
    pub at: Timestamp,
}

/// How a rollout's targets stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetCounts {
    /// The entity's targets: N.
    pub targets: u64,
    /// Assigned by this rollout, without a verdict yet.
    pub in_flight: u64,
    /// Succeeded on the version.
    pub succeeded: u64,
    /// Failed on the version, members that left since included.
    pub failed: u64,
    /// Silent: their deadline passed unheard, or they could not be told.
    pub unreachable: u64,
    /// Held by an operator before they could be told.
    pub held: u64,
    /// Not told yet, and none of the above.
    pub waiting: u64,
    /// Went back to last known good.
    pub returned: u64,
    /// Failed on the way back.
    pub failed_return: u64,
}

/// One batch: a stretch of the rollout as long as the policy's batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutBatch {
    /// Its place, from 1.
    pub number: u64,
    /// When its first target was told.
    pub opened: Timestamp,
    /// How many targets will have been told when it is full.
    pub upto: u64,
    /// How the rollout stood when it opened.
    pub counts: TargetCounts,
}

/// One target that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFailure {
    /// Name of the target.
    pub target: TargetName,
    /// Time of the failure, by the server's clock.
    pub at: Timestamp,
    /// What was observed when it failed.
    pub evidence: Arc<Evidence>,
}

impl Rollout {
    /// Whether it has reached its one final state.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.is_final()
    }
}

impl RolloutState {
    /// Whether nothing follows this state.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::InProgress | Self::Waiting(_) | Self::Paused(_) | Self::RollingBack => false,
            Self::Succeeded
            | Self::PartiallySucceeded { .. }
            | Self::RolledBack
            | Self::RollbackFailed { .. }
            | Self::Aborted { .. }
            | Self::Superseded { .. } => true,
        }
    }
}
