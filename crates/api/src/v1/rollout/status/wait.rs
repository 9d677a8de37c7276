//! Reasons for which a rollout waits or is paused: answers and stored records.

use bellwether_core::records::rollout as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, is_zero, read};
use crate::v1::hook::HookPurpose;

/// What a rollout waits for. It continues by itself once the reason is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RolloutWait {
    /// No target matches the selector.
    NoTargets,
    /// The policy's `batch` is 0.
    BatchIsZero,
    /// Every remaining target is held: by a pause or a cordon, or because it is not able to begin.
    OnlyHeld {
        /// One of them, and what holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<HeldTarget>,
    },
    /// Every remaining target is suspect: it has stopped reporting, and is not unreachable yet.
    OnlySuspect,
    /// Every remaining target is unreachable.
    OnlyUnreachable,
    /// No target has the label of the policy's `domain`.
    NoDomain {
        /// Key of the label.
        key: String,
    },
    /// A freeze is in force.
    Frozen {
        /// Name of the freeze.
        freeze: String,
        /// Name of the token that set it.
        by: String,
        /// The reason that was given; may be empty.
        reason: String,
        /// Time at which it ends by itself, in milliseconds since the Unix epoch; absent if a person has to
        /// delete it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// No window of the policy is open.
    Window {
        /// Time at which the next window opens, in milliseconds since the Unix epoch.
        opens_ms: u64,
    },
    /// Every remaining target is frozen or outside its own window.
    TargetsClosed {
        /// Time at which the first of them can be updated, in milliseconds since the Unix epoch; absent if it
        /// is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
        /// The targets of the freeze that keeps the most; absent if only windows are closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frozen: Option<FrozenTargets>,
    },
    /// A stage needs approval.
    Approval {
        /// Number of the stage, from 1.
        stage: u32,
    },
    /// Every remaining target has a data store that must not stop now.
    Stores {
        /// Why not the first of them, in one line.
        reason: String,
    },
    /// A service that the policy needs is not functional.
    Need {
        /// The need as the policy contains it, such as `2 of db`.
        need: String,
        /// Number of functional instances.
        functional: u64,
    },
    /// As many targets are unavailable as the policy permits.
    Unavailable {
        /// The domain whose limit is reached; absent if it is the limit of all targets together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        domain: Option<String>,
    },
    /// A hook has not answered, or has not approved.
    Hook {
        /// The purpose of the hook.
        hook: HookPurpose,
        /// Its answer, or the error of the call; empty before the first answer.
        reason: String,
    },
}

/// A target that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HeldTarget {
    /// Its name.
    pub target: String,
    /// What holds it.
    pub reason: String,
    /// Number of further targets that are held.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u64,
}

/// Targets that a freeze keeps from being updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FrozenTargets {
    /// Number of targets that the freeze keeps.
    pub targets: u64,
    /// Name of the freeze.
    pub freeze: String,
    /// Name of the token that set it.
    pub by: String,
    /// The reason that was given; may be empty.
    pub reason: String,
    /// Number of further targets that another freeze or a closed window keeps.
    pub others: u64,
}

impl From<&core::frozen_targets::FrozenTargets> for FrozenTargets {
    fn from(from: &core::frozen_targets::FrozenTargets) -> Self {
        Self {
            targets: from.targets,
            freeze: from.freeze.to_string(),
            by: from.by.to_string(),
            reason: from.reason.clone(),
            others: from.others,
        }
    }
}

impl TryFrom<FrozenTargets> for core::frozen_targets::FrozenTargets {
    type Error = ShapeError;
    fn try_from(from: FrozenTargets) -> Result<Self, ShapeError> {
        Ok(Self {
            targets: from.targets,
            freeze: read("status.waiting.frozen.freeze", &from.freeze)?,
            by: read("status.waiting.frozen.by", &from.by)?,
            reason: from.reason,
            others: from.others,
        })
    }
}

/// Why a rollout is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RolloutPause {
    /// A person paused it.
    Person {
        /// Name of the token of the person or program.
        by: String,
        /// The reason that was given; may be empty.
        reason: String,
    },
    /// A stop is in force.
    Stopped {
        /// Name of the freeze.
        freeze: String,
        /// Name of the token that set it.
        by: String,
        /// The reason that was given; may be empty.
        reason: String,
    },
    /// The monitor does not answer.
    MonitorUnavailable {
        /// The error of the last call.
        reason: String,
    },
    /// The version is bad for another reason than failed targets.
    BadVersion {
        /// The reason, one line.
        reason: String,
    },
    /// More targets failed than the policy tolerates, and its `on_failure` is `pause`.
    TooManyFailed {
        /// The number of targets that failed.
        failed: u64,
        /// The number of failures that the policy tolerates.
        tolerated: u64,
    },
    /// More targets failed than the policy tolerates, and there is no last known good version.
    NoKnownGood {
        /// The number of targets that failed.
        failed: u64,
        /// The number of failures that the policy tolerates.
        tolerated: u64,
    },
    /// Every target that was updated failed, and each was failing on the last known good version before.
    OnlyFailingBefore {
        /// The number of these targets.
        failing: u64,
    },
    /// More targets are unreachable than the policy tolerates.
    TooManyUnreachable {
        /// The number of unreachable targets, with those that do not accept their orders.
        unreachable: u64,
        /// How many of them are in contact, but do not accept their orders.
        #[serde(default, skip_serializing_if = "is_zero")]
        refusing: u64,
        /// The number of unreachable targets that the policy tolerates.
        tolerated: u64,
    },
}

impl From<&core::RolloutWait> for RolloutWait {
    fn from(from: &core::RolloutWait) -> Self {
        match from {
            core::RolloutWait::NoTargets => Self::NoTargets,
            core::RolloutWait::BatchIsZero => Self::BatchIsZero,
            core::RolloutWait::OnlyHeld { held } => Self::OnlyHeld {
                held: held.as_ref().map(|held| HeldTarget {
                    target: held.target.to_string(),
                    reason: held.reason.to_string(),
                    others: held.others,
                }),
            },
            core::RolloutWait::OnlyQuiet => Self::OnlySuspect,
            core::RolloutWait::OnlyUnreachable => Self::OnlyUnreachable,
            core::RolloutWait::NoDomain { key } => Self::NoDomain { key: key.to_string() },
            core::RolloutWait::Frozen { freeze, by, reason, until } => Self::Frozen {
                freeze: freeze.to_string(),
                by: by.to_string(),
                reason: reason.clone(),
                until_ms: until.map(Timestamp::as_millis),
            },
            core::RolloutWait::Window { opens } => Self::Window { opens_ms: opens.as_millis() },
            core::RolloutWait::Shut { until, frozen } => Self::TargetsClosed {
                until_ms: until.map(Timestamp::as_millis),
                frozen: frozen.as_ref().map(Into::into),
            },
            core::RolloutWait::Approval { stage } => Self::Approval { stage: *stage },
            core::RolloutWait::Stores { reason } => Self::Stores { reason: reason.clone() },
            core::RolloutWait::Need { need, functional } => {
                Self::Need { need: need.to_string(), functional: *functional }
            }
            core::RolloutWait::Unavailable { domain } => {
                Self::Unavailable { domain: domain.as_ref().map(ToString::to_string) }
            }
            core::RolloutWait::Hook { asked, reason } => {
                Self::Hook { hook: (*asked).into(), reason: reason.clone() }
            }
        }
    }
}

fn held_target(from: HeldTarget) -> Result<core::HeldTarget, ShapeError> {
    let HeldTarget { target, reason, others } = from;
    Ok(core::HeldTarget { target: read("status.waiting.target", &target)?, reason: reason.into(), others })
}

impl TryFrom<RolloutWait> for core::RolloutWait {
    type Error = ShapeError;
    fn try_from(from: RolloutWait) -> Result<Self, ShapeError> {
        Ok(match from {
            RolloutWait::NoTargets => Self::NoTargets,
            RolloutWait::BatchIsZero => Self::BatchIsZero,
            RolloutWait::OnlyHeld { held } => Self::OnlyHeld { held: held.map(held_target).transpose()? },
            RolloutWait::OnlySuspect => Self::OnlyQuiet,
            RolloutWait::OnlyUnreachable => Self::OnlyUnreachable,
            RolloutWait::NoDomain { key } => Self::NoDomain { key: key.into() },
            RolloutWait::Frozen { freeze, by, reason, until_ms } => Self::Frozen {
                freeze: read("status.waiting.freeze", &freeze)?,
                by: read("status.waiting.by", &by)?,
                reason,
                until: until_ms.map(Timestamp::from_millis),
            },
            RolloutWait::Window { opens_ms } => Self::Window { opens: Timestamp::from_millis(opens_ms) },
            RolloutWait::TargetsClosed { until_ms, frozen } => Self::Shut {
                until: until_ms.map(Timestamp::from_millis),
                frozen: frozen.map(TryInto::try_into).transpose()?,
            },
            RolloutWait::Approval { stage } => Self::Approval { stage },
            RolloutWait::Stores { reason } => Self::Stores { reason },
            RolloutWait::Need { need, functional } => {
                Self::Need { need: read("status.waiting.need", &need)?, functional }
            }
            RolloutWait::Unavailable { domain } => Self::Unavailable { domain: domain.map(Into::into) },
            RolloutWait::Hook { hook, reason } => Self::Hook { asked: hook.into(), reason },
        })
    }
}

impl From<&core::RolloutPause> for RolloutPause {
    fn from(from: &core::RolloutPause) -> Self {
        match from {
            core::RolloutPause::Person { by, reason } => {
                Self::Person { by: by.to_string(), reason: reason.clone() }
            }
            core::RolloutPause::Stopped { freeze, by, reason } => {
                Self::Stopped { freeze: freeze.to_string(), by: by.to_string(), reason: reason.clone() }
            }
            core::RolloutPause::MonitorSilent { reason } => {
                Self::MonitorUnavailable { reason: reason.clone() }
            }
            core::RolloutPause::Bad { reason } => Self::BadVersion { reason: reason.clone() },
            core::RolloutPause::TooManyFailed { failed, tolerated } => {
                Self::TooManyFailed { failed: *failed, tolerated: *tolerated }
            }
            core::RolloutPause::NothingToRollBackTo { failed, tolerated } => {
                Self::NoKnownGood { failed: *failed, tolerated: *tolerated }
            }
            core::RolloutPause::OnlyFailingBefore { failing } => {
                Self::OnlyFailingBefore { failing: *failing }
            }
            core::RolloutPause::TooManyUnreachable { unreachable, refusing, tolerated } => {
                Self::TooManyUnreachable {
                    unreachable: *unreachable,
                    refusing: *refusing,
                    tolerated: *tolerated,
                }
            }
        }
    }
}

impl TryFrom<RolloutPause> for core::RolloutPause {
    type Error = ShapeError;
    fn try_from(from: RolloutPause) -> Result<Self, ShapeError> {
        Ok(match from {
            RolloutPause::Person { by, reason } => {
                Self::Person { by: read("status.paused.by", &by)?, reason }
            }
            RolloutPause::Stopped { freeze, by, reason } => Self::Stopped {
                freeze: read("status.paused.freeze", &freeze)?,
                by: read("status.paused.by", &by)?,
                reason,
            },
            RolloutPause::MonitorUnavailable { reason } => Self::MonitorSilent { reason },
            RolloutPause::BadVersion { reason } => Self::Bad { reason },
            RolloutPause::TooManyFailed { failed, tolerated } => Self::TooManyFailed { failed, tolerated },
            RolloutPause::NoKnownGood { failed, tolerated } => {
                Self::NothingToRollBackTo { failed, tolerated }
            }
            RolloutPause::OnlyFailingBefore { failing } => Self::OnlyFailingBefore { failing },
            RolloutPause::TooManyUnreachable { unreachable, refusing, tolerated } => {
                Self::TooManyUnreachable { unreachable, refusing, tolerated }
            }
        })
    }
}
