//! Clusters: nodes that match a filter, share a live profile and have roles. The cluster is written by operations, its roles by the
//! decider of clusters alone.

use alloc::collections::BTreeMap;
use alloc::format;

use crate::records::annotation::Annotation;
use crate::records::discovery::Discovery;
use crate::words::counter::{ClusterNumber, ClusterRevision, FenceNumber};
use crate::words::label::Labels;
use crate::words::name::{ClusterName, NodeName, ProfileName, WorkflowName};
use crate::words::node_order::NodeOrder;
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};

/// Default number of leaders.
pub const LEADERS: u32 = 1;

/// Most leaders of a cluster: the record of its roles stays small.
pub const MAX_LEADERS: u32 = 64;

/// Default time for which a leader may be unreachable before another member takes its place: longer than a machine takes to reboot
/// once it was declared unreachable.
pub const GRACE: Span = Span::from_secs(60);

/// Shortest such time: a host has to be heard several times within it.
pub const MIN_GRACE: Span = Span::from_secs(2);

/// Longest such time.
pub const MAX_GRACE: Span = Span::from_secs(24 * 60 * 60);

/// What the control plane does by itself about the data stores of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterMode {
    /// It has a view and events, and starts reactions.
    #[default]
    Active,
    /// It has a view and events, and starts nothing.
    Observe,
    /// Its view is left as it is, without events.
    Disabled,
}

impl ClusterMode {
    /// Name of the mode.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Observe => "observe",
            Self::Disabled => "disabled",
        }
    }
}

/// Nodes that share a profile and have roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Name of the cluster, unique in its namespace.
    pub name: ClusterName,
    /// The logical node that is its manager.
    pub manager: NodeName,
    /// Its position among the clusters of the namespace: a node that several match is a member of the one with the lowest.
    pub number: ClusterNumber,
    /// Number of the last change, from 1.
    pub revision: ClusterRevision,
    /// Which nodes are its members; if they are listed outside, which of those that are listed.
    pub filter: Selector,
    /// Where its members are listed; `None` if the filter alone says who they are.
    pub discovery: Option<Discovery>,
    /// Number of leaders, 0 to [`MAX_LEADERS`].
    pub leaders: u32,
    /// In which order members become leaders; `None` for a random choice.
    pub prefer: Option<NodeOrder>,
    /// How long a leader may be unreachable before another member takes its place.
    pub grace: Span,
    /// The live profile that its members share.
    pub profile: ProfileName,
    /// The workflow that its manager runs, if it has one.
    pub workflow: Option<WorkflowName>,
    /// What is done by itself about its data stores.
    pub mode: ClusterMode,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
}

/// The roles of a cluster's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRoles {
    /// Name of the cluster.
    pub cluster: ClusterName,
    /// Fencing number of the role that was given last; it only grows.
    pub fence: FenceNumber,
    /// The leaders by slot, from 0.
    pub leaders: BTreeMap<u32, RoleHolder>,
    /// The node whose agent hosts the manager; `None` while no node offers to.
    pub host: Option<RoleHolder>,
    /// How long its host goes on without an answer of a server, at most: as the host was told when it became one. It may not have heard
    /// of a change since then, so that a shorter one is for the next host.
    pub lease: Span,
    /// When its lease is over at the latest, by the server's clock, once it was decommissioned: no server answers it any more, and
    /// until then no other node hosts the manager. `None` while the host is a node.
    pub host_until: Option<Timestamp>,
}

/// The node that has a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleHolder {
    /// Name of the node.
    pub node: NodeName,
    /// Fencing number: larger than those of all roles of the cluster that were given before.
    pub fence: FenceNumber,
    /// Since when, by the server's clock.
    pub since: Timestamp,
}

/// Name of the logical node that is the manager of a cluster of this name; `None` if it would be too long for a node.
#[must_use]
pub fn manager_of(cluster: &ClusterName) -> Option<NodeName> {
    NodeName::parse(&format!("{cluster}-manager")).ok()
}

impl ClusterRoles {
    /// The roles of a cluster before the first was given.
    #[must_use]
    pub const fn none(cluster: ClusterName) -> Self {
        Self {
            cluster,
            fence: FenceNumber::ZERO,
            leaders: BTreeMap::new(),
            host: None,
            lease: Span::ZERO,
            host_until: None,
        }
    }

    /// Whether nobody has a role.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.leaders.is_empty() && self.host.is_none()
    }

    /// The slot in which a node leads.
    #[must_use]
    pub fn slot_of(&self, node: &NodeName) -> Option<(u32, &RoleHolder)> {
        let found = self.leaders.iter().find(|(_, holder)| holder.node == *node);
        found.map(|(slot, holder)| (*slot, holder))
    }
}
