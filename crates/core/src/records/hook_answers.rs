//! What the controllers that a policy asks have answered: remembered, so that every server decides on the same. Written
//! only by whoever asks them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::words::counter::{AssignmentNumber, RolloutNumber};
use crate::words::name::TargetName;
use crate::words::time::Timestamp;

/// What the controllers of one entity have answered about one rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookAnswers {
    /// Which rollout; answers about another one count for nothing.
    pub rollout: RolloutNumber,
    /// Who is next.
    pub selection: Option<HookSelection>,
    /// Whether they may be told.
    pub approval: Option<HookApproval>,
    /// By target: how it does.
    pub words: BTreeMap<TargetName, MonitorReport>,
    /// How the rollout does as a whole.
    pub monitor: Option<RolloutJudgement>,
    /// By hook: since when it has not answered as it should, and how.
    pub troubles: BTreeMap<HookPurpose, HookError>,
}

/// Who is asked.
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
    /// What judges the rollout as a whole.
    Monitor,
}

/// Who is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSelection {
    /// How many had had their turn when it was asked; once another has, it is asked again.
    pub turned: u64,
    /// Those who were chosen, in this order.
    pub targets: Vec<TargetName>,
    /// When it was answered.
    pub at: Timestamp,
}

/// Whether those who were chosen may be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookApproval {
    /// As in [`HookSelection::turned`].
    pub turned: u64,
    /// Those it was asked about.
    pub targets: Vec<TargetName>,
    /// Whether they may.
    pub approved: bool,
    /// One line: why, as the hook put it; may be empty.
    pub reason: String,
    /// When it was answered.
    pub at: Timestamp,
}

/// How a rollout does as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutJudgement {
    /// Failing answers in a row; zero when the last one was good.
    pub failing: u32,
    /// One line: why, as the monitor put it; may be empty.
    pub reason: String,
    /// When it was last answered.
    pub at: Timestamp,
}

/// A hook that does not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError {
    /// Since when, without a break.
    pub since: Timestamp,
    /// One line: what happens instead.
    pub reason: String,
}

impl HookPurpose {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Selection, Self::Approval, Self::Monitoring, Self::Removal, Self::Monitor];

    /// The word for it in texts.
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

/// What the monitoring hook said of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorReport {
    /// The assignment it judges; words on older ones do not count.
    pub assignment: AssignmentNumber,
    /// Whether the target does well.
    pub well: bool,
    /// One line: why, as the hook put it; may be empty.
    pub reason: Arc<str>,
}
