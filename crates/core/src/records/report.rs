//! Reports: what one node observed. Written only when the report of the node's own agent is absorbed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use super::status::{ORDERS, Status};
use crate::records::evidence::Evidence;
use crate::words::counter::{AssignmentNumber, Epoch, Generation};
use crate::words::feature::Features;
use crate::words::name::{Category, EntityName, LedgerId, NodeName, ServiceName};
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Most entities in one report.
pub const MAX_ENTITIES: usize = 1_024;

/// Most services that one entity, or one service instance, may wait for.
pub const MAX_WAITS_FOR: usize = 64;

/// Evidence of a run that may have begun under a ledger that was lost. Agents report it in these words, and the control plane knows by them
/// that no assignment has the run begin there.
pub const LOST: &str = "lost: it may have begun before, on a former host or with a ledger that is gone, and nobody knows how far it came; not run again";

/// What one node observed of its entities and statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the node.
    pub node: NodeName,
    /// Time it arrived, by the server's clock.
    pub received_at: Timestamp,
    /// Version of the agent's own program.
    pub agent_version: String,
    /// Generation of the order that the agent had accepted.
    pub generation: Generation,
    /// Features of the agent: what it does not have is not in its order.
    pub features: Features,
    /// The agent's ledger: another one means that it lost the one before.
    pub ledger: Option<LedgerId>,
    /// The epoch of the installation in which this ledger was reported first. What another one began before that may be unknown here: it
    /// may have been after the backup from which the control plane was restored.
    pub ledger_since: Epoch,
    /// Number of the report among those of this ledger; zero from an agent that does not number them.
    pub sequence: u64,
    /// Entities that the node has a recipe for, or was assigned a version of.
    pub entities: BTreeMap<EntityName, EntityReport>,
    /// One status per category.
    pub statuses: BTreeMap<Category, Status>,
    /// Statuses that were deleted at the control plane, with the update of the node's own program that is not to return.
    /// An entry lasts until the node reports another update, or none.
    pub deleted: BTreeMap<Category, u64>,
}

/// How an agent begins to say that it follows orders of a later term than that of what it was sent: the store of the control plane was set back.
pub const SET_BACK: &str = "accept an order of term ";

impl Report {
    /// Whether a report that came before this one was made after it.
    #[must_use]
    pub fn is_overtaken(&self, last: &Self) -> bool {
        self.is_numbered_like(last) && self.sequence < last.sequence
    }

    /// Whether there may be reports between the last one and this one that are yet to come: it is written although it says the same, so
    /// that they are known to be older.
    #[must_use]
    pub fn is_behind_a_gap(&self, last: &Self) -> bool {
        self.is_numbered_like(last) && self.sequence > last.sequence.saturating_add(1)
    }

    fn is_numbered_like(&self, last: &Self) -> bool {
        self.sequence > 0 && last.sequence > 0 && self.ledger == last.ledger
    }
}

/// The ledger that a node reports, and since when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedLedger<'a> {
    /// The ledger.
    pub id: &'a LedgerId,
    /// The epoch in which it was reported first.
    pub since: Epoch,
}

impl ReportedLedger<'_> {
    /// Whether the control plane has on record all that other ledgers of the node began of a run. Numbers of runs are above the epoch in
    /// which they were started: one of an earlier epoch may have begun after the backup, with a ledger that is gone.
    #[must_use]
    pub fn others_are_recorded(&self, version: &Version) -> bool {
        self.since == Epoch::ZERO
            || version.as_numbered().is_some_and(|(_, number)| number > self.since.get())
    }
}

/// What a node reports about one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityReport {
    /// The last version that passed validation on the node.
    pub running: Option<Version>,
    /// Number of the assignment that this answers; zero for none.
    pub answering: AssignmentNumber,
    /// Time at which the first report that answers this assignment arrived, by the server's clock.
    pub answered_at: Timestamp,
    /// What the node is doing about the assignment.
    pub activity: TargetActivity,
    /// Health of the entity on the node.
    pub health: TargetHealth,
    /// Start of the present uninterrupted healthy time, by the server's clock; `None` while not healthy.
    pub healthy_since: Option<Timestamp>,
    /// Healthy time on the assignment that the agent observed itself and then confirmed by asking every check again; `None`
    /// until it has.
    pub soaked: Option<Span>,
    /// Why its health was lost in the soak of the assignment, the first time; `None` if it was not.
    pub soak_failure: Option<Arc<str>>,
    /// Whether its agent has started again since it accepted the assignment: it may not have seen everything.
    pub agent_restarted: bool,
    /// Services that the node waits for before it applies the version.
    pub waits_for: BTreeSet<ServiceName>,
    /// The step that runs, as of the last report; `None` if none runs, or the agent is of a build that does not
    /// report it.
    pub step: Option<RunningStep>,
}

/// Longest command line in the report of a step, in characters.
pub const MAX_STEP_COMMAND: usize = 120;

/// A step that runs on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningStep {
    /// The part, or the two that follow one another without a report in between: `static, then dynamic`.
    pub part: String,
    /// The command lines of the part, in order, at most [`MAX_STEP_COMMAND`] characters.
    pub command: String,
    /// Its start: by the agent's clock on a node, by the server's clock in a stored report.
    pub since: Timestamp,
    /// How long each part may take.
    pub limit: Span,
}

impl EntityReport {
    /// Whether it is a run that may have begun under a ledger that was lost, and that never begins there again.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match &self.activity {
            TargetActivity::Failed { evidence, .. } => evidence.summary.starts_with(LOST),
            TargetActivity::Nothing | TargetActivity::Applying { .. } | TargetActivity::Waiting { .. } => {
                false
            }
        }
    }
}

impl RunningStep {
    /// A step, with its command line shortened to what a report may contain.
    #[must_use]
    pub fn new(part: &str, command: &str, since: Timestamp, limit: Span) -> Self {
        let command: String = match command.char_indices().nth(MAX_STEP_COMMAND) {
            None => command.into(),
            Some(_) => command.chars().take(MAX_STEP_COMMAND - 1).chain(['…']).collect(),
        };
        Self { part: part.into(), command, since, limit }
    }

    /// Part, command, duration and limit, in one line.
    #[must_use]
    pub fn line(&self, now: Timestamp) -> String {
        let (lasts, limit) = (now.since(self.since).brief(), self.limit);
        alloc::format!("{}: `{}` for {lasts}, limit {limit}", self.part, self.command)
    }
}

impl Report {
    /// Time at which the next of its statuses becomes silent, by the server's clock.
    #[must_use]
    pub fn next_silence(&self) -> Option<Timestamp> {
        self.statuses.values().filter_map(Status::ends).min()
    }

    /// Why the node does not accept its orders; `None` if it does.
    #[must_use]
    pub fn order_refusal(&self) -> Option<&str> {
        let (_, status) = self.statuses.iter().find(|(category, _)| category.as_str() == ORDERS)?;
        status.is_failed().then_some(status.reason.as_str())
    }

    /// Why the node does not accept its orders, if it follows orders of a later term: those of a control plane of which this one has older data.
    #[must_use]
    pub fn set_back(&self) -> Option<&str> {
        let refusal = self.order_refusal()?;
        refusal.strip_prefix("cannot ").is_some_and(|reason| reason.starts_with(SET_BACK)).then_some(refusal)
    }
}

/// What a target is doing about its assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetActivity {
    /// Nothing: it has not started, or is done.
    Nothing,
    /// Applying the version.
    Applying {
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The check that has not passed since the start, with its first complaint, in one line.
        waiting_for: Option<Arc<str>>,
    },
    /// Waiting for something before it can start.
    Waiting {
        /// What it waits for, in one line.
        reason: Arc<str>,
    },
    /// Every permitted attempt failed.
    Failed {
        /// Number of failed attempts, from 1.
        attempts: u32,
        /// Evidence of the last failed attempt.
        evidence: Arc<Evidence>,
    },
}

/// Combined state of a target's checks, after their thresholds for consecutive results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetHealth {
    /// It has no checks: it is healthy while it runs its version and reports no error.
    NoChecks,
    /// No check fails. Checks without a result yet count too, with [`EntityReport::healthy_since`] still
    /// `None`.
    Healthy,
    /// At least one fails.
    Failing {
        /// Which checks fail, and their output.
        evidence: Arc<Evidence>,
    },
}
