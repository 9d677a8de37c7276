//! Statuses: one state per category and node, since when and why. Written by the node's own reports; one that is not
//! refreshed in time falls silent.

use alloc::string::String;

use crate::words::name::{Category, EntityName};
use crate::words::time::{Span, Timestamp};

/// Longest reason, in bytes: one readable line.
pub const MAX_REASON_BYTES: usize = 512;

/// Most categories one node may use: built in ones and a few of the user's.
pub const MAX_CATEGORIES: usize = 64;

/// Shortest lifetime: whatever refreshes it has to start a program and be heard.
pub const SHORTEST_LIFETIME: Span = Span::from_secs(1);

/// Longest lifetime, a year: what is refreshed more rarely needs none.
pub const LONGEST_LIFETIME: Span = Span::from_secs(366 * 24 * 3_600);

/// The category of the files that a node makes of the catalogue. Each report of a node that makes any has it.
pub const FILES: &str = "files";

/// Categories that only a node's own agent sets, of what it does itself.
pub const BUILT_IN: [&str; 4] = ["provision", "configure", "validate", FILES];

/// The word shown for a status that was not refreshed within its lifetime.
pub const UNKNOWN: &str = "unknown";

/// A state that somebody says a node is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusState {
    /// Done, and well.
    Success,
    /// Done, and not well.
    Failed,
    /// Being worked on.
    Running,
    /// Waiting for something outside.
    Pending,
}

/// A node's one state in a category, with its history's last step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The state, as it was last said.
    pub state: StatusState,
    /// It was not refreshed within its lifetime: what is true now is unknown. Silent is not failed.
    pub silent: bool,
    /// When the node entered what is shown, by the server's clock.
    pub since: Timestamp,
    /// One line for a person; may be empty.
    pub reason: String,
    /// Which attempt it is about, from 1; zero where nothing is attempted.
    pub attempt: u32,
    /// Where what the failing run said is kept.
    pub log: Option<LogRef>,
    /// How long it holds without being refreshed; for ever if there is none.
    pub lifetime: Option<Lifetime>,
    /// Which saying of the node this is: a report that repeats it is no news. Zero for what is not numbered.
    pub update: u64,
}

/// How long a status holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// For so long after it was last said.
    pub lasts: Span,
    /// When it was last said, by the server's clock.
    pub refreshed: Timestamp,
}

/// A kept log of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRef {
    /// Of which entity; of the status's own category.
    pub entity: EntityName,
    /// Which run.
    pub run: String,
}

impl Status {
    /// A state said now, that holds for ever.
    #[must_use]
    pub const fn new(state: StatusState, since: Timestamp, reason: String) -> Self {
        Self { state, silent: false, since, reason, attempt: 0, log: None, lifetime: None, update: 0 }
    }

    /// The word that is shown for it.
    #[must_use]
    pub const fn shown(&self) -> &'static str {
        if self.silent { UNKNOWN } else { self.state.as_str() }
    }

    /// Whether it is failed, as far as anybody knows.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.state == StatusState::Failed && !self.silent
    }

    /// When it falls silent; `None` if it never does, or has.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        let lifetime = self.lifetime.filter(|_| !self.silent)?;
        Some(lifetime.refreshed.plus(lifetime.lasts))
    }
}

/// Whether only a node's own agent sets this category.
#[must_use]
pub fn is_built_in(category: &Category) -> bool {
    BUILT_IN.contains(&category.as_str())
}

impl StatusState {
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
