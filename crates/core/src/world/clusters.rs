//! Index of clusters: which nodes are members of which, who may lead, and when the roles of each are to be decided again.

use alloc::vec::Vec;

use crate::words::counter::ClusterNumber;
use crate::words::map::{Map, MultiMap, Set};
use crate::words::name::{ClusterName, NodeName};
use crate::words::time::Timestamp;

/// Indexes of the clusters of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterIndex {
    /// By node: the clusters that match it. It is a member of the first.
    matching: MultiMap<NodeName, (ClusterNumber, ClusterName)>,
    /// By cluster: its members.
    members: Map<ClusterName, Set<NodeName>>,
    /// By cluster: nodes that it matches and that are members of another one.
    claimed: Map<ClusterName, Set<NodeName>>,
    /// By cluster: the members that may be given a role: up and not cordoned.
    eligible: Map<ClusterName, Set<NodeName>>,
    /// The nodes that may host a manager: they offer to, are up and not cordoned.
    hosts: Set<NodeName>,
    /// By node: the clusters whose manager it hosts.
    hosted: MultiMap<NodeName, ClusterName>,
    /// By cluster: time at which its roles are to be decided.
    due: Map<ClusterName, Timestamp>,
    by_time: Set<(Timestamp, ClusterName)>,
}

impl ClusterIndex {
    /// The cluster of which a node is a member.
    #[must_use]
    pub fn of(&self, node: &NodeName) -> Option<&ClusterName> {
        self.matching.get(node).next().map(|(_, cluster)| cluster)
    }

    /// The members of a cluster, by name.
    pub fn members<'a>(&'a self, cluster: &ClusterName) -> impl Iterator<Item = &'a NodeName> + use<'a> {
        names(&self.members, cluster)
    }

    /// The members of a cluster after this one, by name; all of them after none.
    pub fn members_after<'a>(
        &'a self,
        cluster: &ClusterName,
        after: Option<&NodeName>,
    ) -> impl Iterator<Item = &'a NodeName> + use<'a> {
        use core::ops::Bound;
        let from = after.cloned().map_or(Bound::Unbounded, Bound::Excluded);
        let members = self.members.get(cluster).into_iter();
        members.flat_map(move |members| members.range((from.clone(), Bound::Unbounded)))
    }

    /// Number of members of a cluster.
    #[must_use]
    pub fn size(&self, cluster: &ClusterName) -> usize {
        self.members.get(cluster).map_or(0, Set::size)
    }

    /// The nodes that a cluster matches and that are members of another one.
    pub fn claimed<'a>(&'a self, cluster: &ClusterName) -> impl Iterator<Item = &'a NodeName> + use<'a> {
        names(&self.claimed, cluster)
    }

    /// The members that may be given a role.
    pub fn eligible<'a>(&'a self, cluster: &ClusterName) -> impl Iterator<Item = &'a NodeName> + use<'a> {
        names(&self.eligible, cluster)
    }

    /// Whether a member may be given a role.
    #[must_use]
    pub fn is_eligible(&self, cluster: &ClusterName, node: &NodeName) -> bool {
        self.eligible.get(cluster).is_some_and(|nodes| nodes.contains(node))
    }

    /// The nodes that may host a manager.
    pub fn hosts(&self) -> impl Iterator<Item = &NodeName> {
        self.hosts.iter()
    }

    /// The clusters whose manager a node hosts.
    pub fn hosted_by<'a>(&'a self, node: &NodeName) -> impl Iterator<Item = &'a ClusterName> + use<'a> {
        self.hosted.get(node)
    }

    /// The clusters whose roles are to be decided, each with the time, the earliest first.
    pub fn due(&self) -> impl Iterator<Item = &(Timestamp, ClusterName)> {
        self.by_time.iter()
    }

    /// Every cluster that matches a node, in order of precedence.
    pub(super) fn matching(&self, node: &NodeName) -> Vec<(ClusterNumber, ClusterName)> {
        self.matching.get(node).cloned().collect()
    }

    /// Every node that a cluster matches.
    pub(super) fn matched(&self, cluster: &ClusterName) -> Vec<NodeName> {
        self.members(cluster).chain(self.claimed(cluster)).cloned().collect()
    }

    /// Sets which clusters match a node.
    pub(super) fn set_matching(&mut self, node: &NodeName, now: &[(ClusterNumber, ClusterName)]) {
        for before in self.matching(node) {
            self.matching.remove(node, &before);
            take(&mut self.members, &before.1, node);
            take(&mut self.claimed, &before.1, node);
            take(&mut self.eligible, &before.1, node);
        }
        for cluster in now {
            self.matching.insert(node.clone(), cluster);
        }
        for (index, (_, cluster)) in now.iter().enumerate() {
            give(if index == 0 { &mut self.members } else { &mut self.claimed }, cluster, node);
        }
    }

    /// Sets whether a member may be given a role.
    pub(super) fn set_eligible(&mut self, cluster: &ClusterName, node: &NodeName, is: bool) {
        if is {
            give(&mut self.eligible, cluster, node);
        } else {
            take(&mut self.eligible, cluster, node);
        }
    }

    /// Sets whether a node may host a manager; answers whether that changed.
    pub(super) fn set_may_host(&mut self, node: &NodeName, may: bool) -> bool {
        if may == self.hosts.contains(node) {
            return false;
        }
        if may {
            self.hosts.insert_mut(node.clone());
        } else {
            self.hosts.remove_mut(node);
        }
        true
    }

    /// Sets which node hosts the manager of a cluster.
    pub(super) fn set_host(
        &mut self,
        cluster: &ClusterName,
        before: Option<&NodeName>,
        now: Option<&NodeName>,
    ) {
        if let Some(before) = before {
            self.hosted.remove(before, cluster);
        }
        if let Some(now) = now {
            self.hosted.insert(now.clone(), cluster);
        }
    }

    /// Sets when the roles of a cluster are to be decided; `None` for never without a change.
    pub(super) fn set_due(&mut self, cluster: &ClusterName, at: Option<Timestamp>) {
        if let Some(before) = self.due.get(cluster).copied() {
            self.by_time.remove_mut(&(before, cluster.clone()));
            self.due.remove_mut(cluster);
        }
        if let Some(at) = at {
            self.by_time.insert_mut((at, cluster.clone()));
            self.due.insert_mut(cluster.clone(), at);
        }
    }
}

fn names<'a>(
    index: &'a Map<ClusterName, Set<NodeName>>,
    cluster: &ClusterName,
) -> impl Iterator<Item = &'a NodeName> + use<'a> {
    index.get(cluster).into_iter().flat_map(|nodes| nodes.iter())
}

fn give(index: &mut Map<ClusterName, Set<NodeName>>, cluster: &ClusterName, node: &NodeName) {
    if let Some(nodes) = index.get_mut(cluster) {
        nodes.insert_mut(node.clone());
    } else {
        index.insert_mut(cluster.clone(), core::iter::once(node.clone()).collect());
    }
}

fn take(index: &mut Map<ClusterName, Set<NodeName>>, cluster: &ClusterName, node: &NodeName) {
    let Some(nodes) = index.get_mut(cluster) else { return };
    nodes.remove_mut(node);
    if nodes.is_empty() {
        index.remove_mut(cluster);
    }
}
