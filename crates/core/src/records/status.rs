//! Statuses: one state per category and node, since when and why. Written by the node's own reports.

use alloc::string::String;

use crate::words::time::Timestamp;

/// Longest reason, in bytes: one readable line.
pub const MAX_REASON_BYTES: usize = 512;

/// Most categories one node may use: built in ones and a few of the user's.
pub const MAX_CATEGORIES: usize = 64;

/// A node's one state in a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Done, and well.
    Success,
    /// Done, and not well.
    Failed,
    /// Being worked on.
    Running,
    /// Waiting for something outside.
    Pending,
}

/// A state with its history's last step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The state.
    pub state: State,
    /// When the node entered it, by the server's clock.
    pub since: Timestamp,
    /// One line for a person; may be empty.
    pub reason: String,
}

impl State {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Success, Self::Failed, Self::Running, Self::Pending];

    /// The word shown for it everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Pending => "pending",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}
