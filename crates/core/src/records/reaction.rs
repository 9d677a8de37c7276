//! Reactions: workflows that are run when a condition has been true for some time. What a reaction is, is written by operations; what
//! it did, also by the leader, in the transaction that starts the run.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::records::annotation::Annotation;
use crate::records::policy::Policy;
use crate::words::counter::ReactionRevision;
use crate::words::filter::Filter;
use crate::words::label::Labels;
use crate::words::name::{ClusterName, NodeName, ProbeName, ReactionName, WorkflowName};
use crate::words::time::{Span, Timestamp};

/// Most reactions of a namespace: each is looked at when a condition changes.
pub const MAX_REACTIONS: usize = 200;

/// Default time between two firings for the same subject.
pub const COOLDOWN: Span = Span::from_secs(600);

/// Shortest time after which a run that could not be started is tried again.
pub const RETRY_FAILED: Span = Span::from_secs(60);

/// Longest such time.
pub const MAX_COOLDOWN: Span = Span::from_secs(24 * 60 * 60);

/// Longest time for which a condition may have to be true.
pub const MAX_HOLD: Span = Span::from_secs(24 * 60 * 60);

/// Default number of firings within an hour.
pub const FIRINGS_PER_HOUR: u32 = 6;

/// Largest such number: the record has each firing of an hour.
pub const MAX_FIRINGS_PER_HOUR: u32 = 60;

/// The time in which firings are counted.
pub const RATE_WINDOW: Span = Span::from_secs(60 * 60);

/// Longest text of what became of a firing, in bytes.
pub const MAX_OUTCOME_BYTES: usize = 1_024;

/// A workflow that is run when a condition has been true for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    /// Its name.
    pub name: ReactionName,
    /// Number of the last change of what it is, from 1.
    pub revision: ReactionRevision,
    /// The conditions that it is about.
    pub on: Filter,
    /// How long one must have been true.
    pub hold: Span,
    /// How long after a firing there is no other for the same subject.
    pub cooldown: Span,
    /// Most runs that it starts within an hour, for all subjects.
    pub max_per_hour: u32,
    /// The workflow that it runs.
    pub workflow: WorkflowName,
    /// The nodes that run it.
    pub nodes: ReactionNodes,
    /// Whether it starts nothing.
    pub suspended: bool,
    /// The policy of its runs.
    pub policy: Policy,
    /// Labels given to it by `apply`, for pruning by them.
    pub labels: Labels,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
    /// What it did, the newest last: what is needed to know what it may do now.
    pub firings: Vec<ReactionFiring>,
    /// Since when it has fired as often as it may within an hour; `None` while it may fire.
    pub limited_since: Option<Timestamp>,
}

/// The nodes that run the workflow of a reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReactionNodes {
    /// The node of which the condition is true.
    Subject,
    /// The manager of the cluster.
    Manager,
    /// All members of the cluster.
    Members,
    /// Those that a filter of nodes matches then, as a text; it was valid when it was written.
    Filter(String),
}

/// What a condition is true of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionSubject {
    /// A node.
    Node(NodeName),
    /// A data store of a node.
    Store(NodeName, ProbeName),
    /// The data stores of a cluster.
    Cluster(ClusterName, ProbeName),
}

/// One firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReactionFiring {
    /// Name of the condition.
    pub condition: String,
    /// What it was true of.
    pub subject: ConditionSubject,
    /// Since when it was true: of one episode there is one run.
    pub since: Timestamp,
    /// When the reaction fired, by the server's clock.
    pub at: Timestamp,
    /// What became of it.
    pub result: FiringResult,
    /// The run, or the reason for none.
    pub text: String,
}

/// What became of a firing, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FiringResult {
    /// A run was started.
    Started,
    /// No run could be started; it is tried again after the cooldown, or after [`RETRY_FAILED`] if that is longer.
    Failed,
}

impl FiringResult {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Failed => "failed",
        }
    }
}

impl ReactionNodes {
    /// Reads `subject`, `manager`, `members`, or a filter of nodes, which the caller checks.
    #[must_use]
    pub fn read(text: &str) -> Self {
        match text.trim() {
            "subject" => Self::Subject,
            "manager" => Self::Manager,
            "members" => Self::Members,
            filter => Self::Filter(filter.into()),
        }
    }
}

impl fmt::Display for ReactionNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subject => "subject",
            Self::Manager => "manager",
            Self::Members => "members",
            Self::Filter(filter) => filter,
        })
    }
}

impl ConditionSubject {
    /// The node that it is, or is on.
    #[must_use]
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Node(node) | Self::Store(node, _) => Some(node),
            Self::Cluster(..) => None,
        }
    }

    /// The probe of its data stores.
    #[must_use]
    pub const fn probe(&self) -> Option<&ProbeName> {
        match self {
            Self::Node(_) => None,
            Self::Store(_, probe) | Self::Cluster(_, probe) => Some(probe),
        }
    }
}

impl ConditionSubject {
    /// How subjects of its kind are written.
    #[must_use]
    pub const fn form(&self) -> &'static str {
        match self {
            Self::Node(_) => "node/NODE",
            Self::Store(..) => "store/NODE/PROBE",
            Self::Cluster(..) => "cluster/CLUSTER/PROBE",
        }
    }
}

impl fmt::Display for ConditionSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "node/{node}"),
            Self::Store(node, probe) => write!(f, "store/{node}/{probe}"),
            Self::Cluster(cluster, probe) => write!(f, "cluster/{cluster}/{probe}"),
        }
    }
}

impl core::str::FromStr for ConditionSubject {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        use alloc::format;
        let wrong =
            || format!("{text:?} is no subject; write node/NODE, store/NODE/PROBE or cluster/CLUSTER/PROBE");
        let parts: Vec<&str> = text.split('/').collect();
        let read = match parts.as_slice() {
            ["node", node] => node.parse().ok().map(Self::Node),
            ["store", node, probe] => {
                node.parse().ok().zip(probe.parse().ok()).map(|(node, probe)| Self::Store(node, probe))
            }
            ["cluster", cluster, probe] => cluster
                .parse()
                .ok()
                .zip(probe.parse().ok())
                .map(|(cluster, probe)| Self::Cluster(cluster, probe)),
            _ => None,
        };
        read.ok_or_else(wrong)
    }
}
