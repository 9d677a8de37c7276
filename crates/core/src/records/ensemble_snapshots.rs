//! Snapshots of the data of an ensemble, which lie on the nodes of its members. Part of the record of its members: the decider of ensembles
//! orders them, one at a time; an operation records that somebody asked for one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::records::annotation::Annotation;
use crate::words::counter::{MemberNumber, SnapshotNumber};
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};

/// Default number of snapshots that are kept: a week of daily ones.
pub const SNAPSHOTS_KEPT: u32 = 7;

/// Most snapshots that are kept of an ensemble. Each is as large as its data.
pub const MAX_SNAPSHOTS: u32 = 100;

/// Shortest time between two scheduled snapshots: each reads all data of a member.
pub const MIN_SNAPSHOT_INTERVAL: Span = Span::from_secs(60);

/// Longest such time.
pub const MAX_SNAPSHOT_INTERVAL: Span = Span::from_secs(365 * 24 * 60 * 60);

/// When snapshots of an ensemble are taken without anybody asking, and how many are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Time between two; `None` if they are taken only when somebody asks.
    pub every: Option<Span>,
    /// How many are kept on all nodes together, the latest.
    pub keep: u32,
}

/// Identifies a snapshot among all of an ensemble, also after the control plane was restored from an older backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId {
    /// Its number, from 1.
    pub number: SnapshotNumber,
    /// When it was ordered.
    pub at: Timestamp,
}

/// The snapshots of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnsembleSnapshots {
    /// Number of the one that was ordered last.
    pub last: SnapshotNumber,
    /// Who asked for one that is not ordered yet.
    pub requested: Option<Annotation>,
    /// The one that is being taken.
    pub ordered: Option<OrderedSnapshot>,
    /// Those that were taken and are kept, the latest at the end.
    pub taken: Vec<TakenSnapshot>,
    /// The last one, if it failed.
    pub failure: Option<SnapshotFailure>,
}

/// A snapshot that is being taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedSnapshot {
    /// Which one it is.
    pub id: SnapshotId,
    /// The member that takes it.
    pub by: MemberNumber,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenSnapshot {
    /// Which one it is.
    pub id: SnapshotId,
    /// The node that it lies on.
    pub node: NodeName,
    /// What is in it.
    pub content: SnapshotContent,
}

/// What is in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotContent {
    /// Its size.
    pub bytes: u64,
    /// The store's revision before it was taken: it has all that was written until then.
    pub revision: u64,
    /// Its SHA-256 in hexadecimal, which was compared with that of the store.
    pub sha256: String,
}

/// A snapshot that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFailure {
    /// Which one it is.
    pub id: SnapshotId,
    /// The node that was to take it.
    pub node: NodeName,
    /// Why it was not.
    pub reason: String,
    /// When that was known.
    pub at: Timestamp,
}

/// What a node is to do about snapshots of the ensemble of its member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotOrder {
    /// The one that it is to take; `None` if none.
    pub take: Option<SnapshotId>,
    /// Those on it that are kept, the latest at the end.
    pub kept: Vec<SnapshotId>,
    /// The latest that is kept on any node; `None` if none is. The node removes older ones that are not kept on it, and no others.
    pub latest: Option<SnapshotId>,
}

/// What became of a snapshot that a node was to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Which one it is.
    pub id: SnapshotId,
    /// What is in it, or why it was not taken.
    pub outcome: Result<SnapshotContent, String>,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self { every: None, keep: SNAPSHOTS_KEPT }
    }
}

impl EnsembleSnapshots {
    /// What the node of a member is to do about snapshots.
    #[must_use]
    pub fn order(&self, number: MemberNumber, node: &NodeName) -> SnapshotOrder {
        let ordered = self.ordered.as_ref().filter(|ordered| ordered.by == number);
        let kept = self.taken.iter().filter(|taken| taken.node == *node).map(|taken| taken.id);
        let latest = self.taken.iter().map(|taken| taken.id).max();
        SnapshotOrder { take: ordered.map(|ordered| ordered.id), kept: kept.collect(), latest }
    }

    /// When the last one was taken, or failed.
    #[must_use]
    pub fn last_attempt(&self) -> Option<Timestamp> {
        let failed = self.failure.as_ref().map(|failure| failure.at);
        failed.into_iter().chain(self.taken.last().map(|taken| taken.id.at)).max()
    }
}

impl SnapshotOrder {
    /// Whether a snapshot that lies on the node is to be removed.
    #[must_use]
    pub fn drops(&self, id: SnapshotId) -> bool {
        self.latest.is_some_and(|latest| id < latest) && !self.kept.contains(&id) && self.take != Some(id)
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{}-{:x}", self.number, self.at.as_millis()))
    }
}
