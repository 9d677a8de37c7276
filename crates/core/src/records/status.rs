//! Statuses: one state per category and node, with its start and reason. Written by the node's own reports; a
//! status that is not refreshed within its lifetime becomes silent.

use alloc::string::String;

use crate::words::name::{Category, EntityName};
use crate::words::time::{Span, Timestamp};

/// Longest reason, in bytes: one readable line.
pub const MAX_REASON_BYTES: usize = 512;

/// Most categories one node may use: the built-in ones and a few of the user's.
pub const MAX_CATEGORIES: usize = 64;

/// Shortest lifetime: refreshing a status takes a program start and a report.
pub const SHORTEST_LIFETIME: Span = Span::from_secs(1);

/// Longest lifetime, a year: a status that is refreshed less often needs none.
pub const LONGEST_LIFETIME: Span = Span::from_secs(366 * 24 * 3_600);

/// The category of the files that a node renders from the catalogue. Every report of a node that renders any
/// contains it.
pub const FILES: &str = "files";

/// The category of whether the node accepts its orders: `failed`, with the reason, while it does not; absent while it does.
pub const ORDERS: &str = "orders";

/// The categories of assigned versions. A node without any has none of them.
pub const OF_ASSIGNMENTS: [&str; 2] = ["configure", "validate"];

/// Categories that only a node's own agent sets, about its own work.
pub const BUILT_IN: [&str; 5] = ["provision", "configure", "validate", FILES, ORDERS];

/// Name shown for a status that was not refreshed within its lifetime.
pub const UNKNOWN: &str = "unknown";

/// State of a node in a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusState {
    /// Done, successfully.
    Success,
    /// Done, with a failure.
    Failed,
    /// In progress.
    Running,
    /// Waiting for something outside of the node's control.
    Pending,
}

/// A node's state in one category, and when it entered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The last reported state.
    pub state: StatusState,
    /// Not refreshed within its lifetime: the present state is unknown. Silent is not failed.
    pub silent: bool,
    /// Time the shown state began, by the server's clock.
    pub since: Timestamp,
    /// One line for a person; may be empty.
    pub reason: String,
    /// Number of the attempt, from 1; zero if nothing is attempted.
    pub attempt: u32,
    /// The stored log of the failing run.
    pub log: Option<LogRef>,
    /// How long it is valid without being refreshed; `None` for ever.
    pub lifetime: Option<Lifetime>,
    /// Number of this update on the node: a report that repeats it does not change the status. Zero if not
    /// numbered.
    pub update: u64,
}

/// Lifetime of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Duration after the last refresh.
    pub lasts: Span,
    /// Time of the last refresh, by the server's clock.
    pub refreshed: Timestamp,
}

/// Reference to a stored log of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRef {
    /// The entity of the log; its category is the status's own.
    pub entity: EntityName,
    /// The agent's name for the run.
    pub run: String,
}

impl Status {
    /// A state that never becomes silent, without log or attempt.
    #[must_use]
    pub const fn new(state: StatusState, since: Timestamp, reason: String) -> Self {
        Self { state, silent: false, since, reason, attempt: 0, log: None, lifetime: None, update: 0 }
    }

    /// Name of the shown state: [`UNKNOWN`] if silent.
    #[must_use]
    pub const fn shown(&self) -> &'static str {
        if self.silent { UNKNOWN } else { self.state.as_str() }
    }

    /// Whether it is failed and not silent.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.state == StatusState::Failed && !self.silent
    }

    /// Time at which it becomes silent; `None` if it never does, or already is.
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
    /// All states, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Success, Self::Failed, Self::Running, Self::Pending];

    /// Name shown in the API, the CLI and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Pending => "pending",
        }
    }

    /// Reads the name of a state.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}
