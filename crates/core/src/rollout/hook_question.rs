//! Questions: what a decision would ask the policy's controllers, so that a later one can go on. Asking them, and
//! remembering what they answer, is elsewhere.

use alloc::vec::Vec;

use crate::records::hook_answers::HookPurpose;
use crate::records::rollout::TargetCounts;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;

/// Most names in one question: a hook chooses among the next ones, not among the fleet.
pub const MAX_NAMES: usize = 1_000;

/// What would be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookQuestion {
    /// Who is next.
    Selection {
        /// How many had their turn; goes back with the answer.
        turned: u64,
        /// How many may be chosen.
        room: u64,
        /// Among whom, in line, at most [`MAX_NAMES`].
        candidates: Vec<TargetName>,
    },
    /// Whether these may be told.
    Approval {
        /// How many had their turn; goes back with the answer.
        turned: u64,
        /// Who would be told.
        targets: Vec<TargetName>,
    },
    /// How these do on the version.
    Monitoring {
        /// Who, with the assignment that is judged; at most [`MAX_NAMES`].
        targets: Vec<(TargetName, AssignmentNumber)>,
    },
    /// Which of these may go, now that the version is good.
    Removal {
        /// Who does not run the version; at most [`MAX_NAMES`].
        targets: Vec<TargetName>,
    },
    /// How the rollout does as a whole.
    Monitor {
        /// How its targets stand.
        counts: TargetCounts,
    },
}

impl HookQuestion {
    /// Who is asked.
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
