//! The direction of a rollout and the verdict on its version: answers and stored records.

use bellwether_core::records::rollout as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};
use crate::word::words;

words! {
    /// Whether a rollout moves its targets to its version or rolls them back.
    Direction {
        /// It moves targets to its version.
        Forward = "forward",
        /// It rolls targets back because its version is bad.
        RollbackFromBad = "rollback_from_bad",
        /// It rolls targets back because a person undid it.
        RollbackByUndo = "rollback_by_undo",
    }
}

/// A person's operation on a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PersonAction {
    /// Name of the token of the person or program.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// The verdict on the version of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum VersionJudgement {
    /// No verdict yet.
    Open,
    /// The version became last known good.
    Good {
        /// Time of the verdict, in milliseconds since the Unix epoch.
        at_ms: u64,
    },
    /// The version became known bad.
    Bad {
        /// Time of the verdict, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// The reason, one line.
        reason: String,
    },
}

impl From<&core::Direction> for Direction {
    fn from(from: &core::Direction) -> Self {
        match from {
            core::Direction::Forward => Self::Forward,
            core::Direction::RollbackFromBad => Self::RollbackFromBad,
            core::Direction::RollbackByUndo { .. } => Self::RollbackByUndo,
        }
    }
}

/// Who undid a rollout; `None` if no one did.
pub(super) fn undone(direction: &core::Direction) -> Option<PersonAction> {
    match direction {
        core::Direction::Forward | core::Direction::RollbackFromBad => None,
        core::Direction::RollbackByUndo { by, reason } => {
            Some(PersonAction { by: by.to_string(), reason: reason.clone() })
        }
    }
}

/// Reads the direction of a rollout.
///
/// # Errors
/// [`ShapeError`] at `undone` when it is missing or is not a valid name.
pub(super) fn read_direction(
    direction: Direction,
    undone: Option<PersonAction>,
) -> Result<core::Direction, ShapeError> {
    match (direction, undone) {
        (Direction::Forward, _) => Ok(core::Direction::Forward),
        (Direction::RollbackFromBad, _) => Ok(core::Direction::RollbackFromBad),
        (Direction::RollbackByUndo, Some(PersonAction { by, reason })) => {
            Ok(core::Direction::RollbackByUndo { by: read("undone.by", &by)?, reason })
        }
        (Direction::RollbackByUndo, None) => Err(ShapeError::at("undone", "missing")),
    }
}

impl From<&core::VersionJudgement> for VersionJudgement {
    fn from(from: &core::VersionJudgement) -> Self {
        match from {
            core::VersionJudgement::Open => Self::Open,
            core::VersionJudgement::Good { at } => Self::Good { at_ms: at.as_millis() },
            core::VersionJudgement::Bad { at, reason } => {
                Self::Bad { at_ms: at.as_millis(), reason: reason.clone() }
            }
        }
    }
}

impl From<VersionJudgement> for core::VersionJudgement {
    fn from(from: VersionJudgement) -> Self {
        match from {
            VersionJudgement::Open => Self::Open,
            VersionJudgement::Good { at_ms } => Self::Good { at: Timestamp::from_millis(at_ms) },
            VersionJudgement::Bad { at_ms, reason } => {
                Self::Bad { at: Timestamp::from_millis(at_ms), reason }
            }
        }
    }
}
