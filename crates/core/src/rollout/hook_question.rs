//! Hook questions: what a decision must ask the policy's controllers so that a later one can continue. The
//! caller asks them and stores the answers.

use alloc::vec::Vec;

use crate::records::hook_answers::HookPurpose;
use crate::records::rollout::TargetCounts;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;

/// Most targets in one question: a hook chooses among the next targets, not among the whole fleet.
pub const MAX_NAMES: usize = 1_000;

/// A question to one of the policy's controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookQuestion {
    /// Which targets to update next.
    Selection {
        /// Number of targets that have started; returned with the answer.
        turned: u64,
        /// Most targets that may be chosen.
        room: u64,
        /// The targets to choose from, in update order, at most [`MAX_NAMES`].
        candidates: Vec<TargetName>,
    },
    /// Whether these targets may start.
    Approval {
        /// Number of targets that have started; returned with the answer.
        turned: u64,
        /// The targets that would start.
        targets: Vec<TargetName>,
    },
    /// Whether these targets are healthy on the version.
    Monitoring {
        /// The targets, with the assignment to judge; at most [`MAX_NAMES`].
        targets: Vec<(TargetName, AssignmentNumber)>,
    },
    /// Which of these targets can be removed, now that the version is good.
    Removal {
        /// The targets that do not run the version; at most [`MAX_NAMES`].
        targets: Vec<TargetName>,
    },
    /// Whether the rollout as a whole is healthy.
    Monitor {
        /// Present counts of its targets.
        counts: TargetCounts,
    },
}

impl HookQuestion {
    /// Purpose of the hook to call.
    #[must_use]
    pub const fn asked(&self) -> HookPurpose {
        match self {
            Self::Selection { .. } => HookPurpose::Selection,
            Self::Approval { .. } => HookPurpose::Approval,
            Self::Monitoring { .. } => HookPurpose::Monitoring,
            Self::Removal { .. } => HookPurpose::Removal,
            Self::Monitor { .. } => HookPurpose::Monitor,
        }
    }
}
