//! The answers of the controllers that a policy names as hooks, stored so that every server decides on the
//! same ones. Written only by the server task that calls the hooks.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::words::counter::{AssignmentNumber, RolloutNumber};
use crate::words::name::TargetName;
use crate::words::time::Timestamp;

/// The hook answers about one rollout of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookAnswers {
    /// Number of the rollout; answers about any other rollout are ignored.
    pub rollout: RolloutNumber,
    /// The last answer of the selection hook.
    pub selection: Option<HookSelection>,
    /// The last answer of the approval hook.
    pub approval: Option<HookApproval>,
    /// The last answer of the monitoring hook, by target.
    pub words: BTreeMap<TargetName, MonitorReport>,
    /// The last answer of the monitor that judges the rollout as a whole.
    pub monitor: Option<RolloutJudgement>,
    /// Hooks that fail to answer at present, with the error.
    pub troubles: BTreeMap<HookPurpose, HookError>,
}

/// Purpose of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookPurpose {
    /// The selection hook.
    Selection,
    /// The approval hook.
    Approval,
    /// The monitoring hook.
    Monitoring,
    /// The removal hook.
    Removal,
    /// The monitor that judges the rollout as a whole.
    Monitor,
}

/// The targets that the selection hook chose to update next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSelection {
    /// How many targets had started when the hook was called; it is called again once another has.
    pub turned: u64,
    /// The chosen targets, in the order of their update.
    pub targets: Vec<TargetName>,
    /// Time of the answer, by the server's clock.
    pub at: Timestamp,
}

/// Whether the approval hook lets the chosen targets start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookApproval {
    /// As in [`HookSelection::turned`].
    pub turned: u64,
    /// Targets that the question named.
    pub targets: Vec<TargetName>,
    /// Whether they may start.
    pub approved: bool,
    /// The hook's reason, one line; may be empty.
    pub reason: String,
    /// Time of the answer, by the server's clock.
    pub at: Timestamp,
}

/// The monitor's judgement of a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutJudgement {
    /// Consecutive failing answers; zero when the last answer was good.
    pub failing: u32,
    /// The monitor's reason, one line; may be empty.
    pub reason: String,
    /// Time of the last answer, by the server's clock.
    pub at: Timestamp,
}

/// A hook that fails to answer, or whose answer is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError {
    /// Start of the present uninterrupted failure, by the server's clock.
    pub since: Timestamp,
    /// What happens meanwhile, in one line.
    pub reason: String,
}

impl HookPurpose {
    /// Every purpose, in the order of the enum.
    pub const ALL: [Self; 5] =
        [Self::Selection, Self::Approval, Self::Monitoring, Self::Removal, Self::Monitor];

    /// Name used in texts and as a key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Selection => "selection",
            Self::Approval => "approval",
            Self::Monitoring => "monitoring",
            Self::Removal => "removal",
            Self::Monitor => "monitor",
        }
    }
}

impl fmt::Display for HookPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The monitoring hook's answer about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorReport {
    /// The assignment it judges; answers about older assignments are ignored.
    pub assignment: AssignmentNumber,
    /// Whether the target is healthy.
    pub well: bool,
    /// The hook's reason, one line; may be empty.
    pub reason: Arc<str>,
}
