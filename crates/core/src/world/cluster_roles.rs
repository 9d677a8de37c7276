//! Roles in clusters: what each node is, which params and profiles it has by that, and when the roles are to be decided again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::cluster::{Cluster, ClusterRoles, RoleHolder};
use crate::records::node::PresenceState;
use crate::records::order::Hosting;
use crate::words::feature::Feature;
use crate::words::name::{ClusterName, NodeName, ProfileName};
use crate::words::role_params::{
    CLUSTER_FENCE, CLUSTER_LEADER, CLUSTER_MANAGER, CLUSTER_NAME, CLUSTER_PROFILE, CLUSTER_SLOT,
    CLUSTER_WORKER,
};
use crate::words::selector::Recorded;
use crate::words::time::{Span, Timestamp};
use crate::words::value::{Number, Value};

/// What a node is in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRole<'a> {
    /// It leads, in this slot.
    Leader(u32, &'a RoleHolder),
    /// It is the manager, which this node's agent hosts.
    Manager(Option<&'a RoleHolder>),
    /// Neither leader nor manager.
    Worker,
}

impl ClusterRole<'_> {
    /// Name of the role, as the API and the command line show it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Leader(_, _) => "leader",
            Self::Manager(_) => "manager",
            Self::Worker => "worker",
        }
    }
}

impl Fleet {
    /// The cluster of which a node is a member, or the manager.
    #[must_use]
    pub fn cluster_of(&self, node: &NodeName) -> Option<&Cluster> {
        let name = self.membership.of(node).or_else(|| self.managed_by(node))?;
        self.clusters.get(name).map(|kept| &*kept.value)
    }

    /// The cluster whose manager a node is.
    #[must_use]
    pub fn managed_by(&self, node: &NodeName) -> Option<&ClusterName> {
        self.nodes.get(node)?.value.logical.as_ref()
    }

    /// The node whose agent hosts a logical node.
    #[must_use]
    pub fn host_of(&self, logical: &NodeName) -> Option<&RoleHolder> {
        self.roles_of(self.managed_by(logical)?)?.host.as_ref()
    }

    /// The roles of a cluster; `None` before the first was given.
    #[must_use]
    pub fn roles_of(&self, cluster: &ClusterName) -> Option<&ClusterRoles> {
        self.cluster_roles.get(cluster).map(|kept| &*kept.value)
    }

    /// What a node is in a cluster of which it is a member, or the manager.
    #[must_use]
    pub fn role_in(&self, cluster: &ClusterName, node: &NodeName) -> ClusterRole<'_> {
        if self.managed_by(node) == Some(cluster) {
            return ClusterRole::Manager(self.host_of(node));
        }
        let leads = self.roles_of(cluster).and_then(|roles| roles.slot_of(node));
        leads.map_or(ClusterRole::Worker, |(slot, holder)| ClusterRole::Leader(slot, holder))
    }

    /// The params that a node has by its role in its cluster; empty for one that is in none.
    #[must_use]
    pub fn role_params(&self, node: &NodeName) -> BTreeMap<&'static str, Value> {
        let mut params = BTreeMap::new();
        let Some(Cluster { name: cluster, profile, .. }) = self.cluster_of(node) else { return params };
        let role = self.role_in(cluster, node);
        let (slot, fence) = match &role {
            ClusterRole::Leader(slot, holder) => (Some(*slot), Some(holder.fence)),
            ClusterRole::Manager(host) => (None, host.map(|host| host.fence)),
            ClusterRole::Worker => (None, None),
        };
        let is = |word: &str| Value::Bool(role.as_str() == word);
        params.insert(CLUSTER_NAME, Value::Text(cluster.as_str().into()));
        params.insert(CLUSTER_PROFILE, Value::Text(profile.as_str().into()));
        params.insert(CLUSTER_MANAGER, is("manager"));
        params.insert(CLUSTER_LEADER, is("leader"));
        params.insert(CLUSTER_WORKER, is("worker"));
        if let Some(slot) = slot {
            params.insert(CLUSTER_SLOT, Value::Number(Number::integer(slot)));
        }
        if let Some(fence) = fence {
            params.insert(CLUSTER_FENCE, Value::Number(Number::integer(fence.get())));
        }
        params
    }

    /// The profiles that a node reads, the one that takes precedence first: those that are set on it, and that of its cluster.
    #[must_use]
    pub fn profiles_read_by(&self, node: &NodeName) -> Vec<ProfileName> {
        let mut profiles =
            self.node_params.get(node).map(|kept| kept.value.profiles.clone()).unwrap_or_default();
        let shared = self.cluster_of(node).map(|cluster| &cluster.profile);
        if let Some(shared) = shared.filter(|shared| !profiles.contains(shared)) {
            profiles.push(shared.clone());
        }
        profiles
    }

    /// What is recorded of a machine that is not decommissioned.
    pub(crate) fn recorded<'a>(&'a self, name: &'a NodeName) -> Option<Recorded<'a>> {
        let node = &self.active_node(name).filter(|node| node.value.logical.is_none())?.value;
        Some(Recorded { name: name.as_str(), labels: &node.labels, data: self.data_of(name) })
    }

    /// Whether a member may be given a role: it is up and not cordoned.
    pub(super) fn may_lead(&self, name: &NodeName) -> bool {
        let is_up = self.presences.get(name).is_some_and(|kept| kept.value.contact == PresenceState::Up);
        is_up && self.active_node(name).is_some_and(|node| node.value.cordon.is_none())
    }

    /// Whether a node hosts a logical node now. A node that joined under the name of a host that was decommissioned does not.
    #[must_use]
    pub fn is_hosted_by(&self, logical: &NodeName, node: &NodeName) -> bool {
        let roles = self.managed_by(logical).and_then(|cluster| self.roles_of(cluster));
        roles.is_some_and(|roles| {
            roles.host_until.is_none() && roles.host.as_ref().is_some_and(|host| host.node == *node)
        })
    }

    /// The cluster whose manager a node hosts that was decommissioned, while its roles do not say yet until when.
    #[must_use]
    pub fn hosts_still(&self, node: &NodeName) -> Option<&ClusterName> {
        let is_gone = |name: &&ClusterName| {
            self.roles_of(name).is_some_and(|roles| {
                roles.host_until.is_none() && roles.host.as_ref().is_some_and(|host| self.is_gone(host))
            })
        };
        self.membership.hosted_by(node).find(is_gone)
    }

    /// Whether the node that has a role was decommissioned or removed.
    pub(crate) fn is_gone(&self, holder: &RoleHolder) -> bool {
        self.active_node(&holder.node).is_none()
    }

    /// The nodes that may host the manager of a cluster in the place of its host.
    pub(crate) fn other_hosts(&self, roles: Option<&ClusterRoles>) -> impl Iterator<Item = &NodeName> {
        let host = roles.filter(|roles| roles.host_until.is_none()).and_then(|roles| roles.host.clone());
        self.membership.hosts().filter(move |node| host.as_ref().is_none_or(|host| host.node != **node))
    }

    /// The logical nodes that a node hosts.
    pub(super) fn hostings(&self, node: &NodeName) -> BTreeMap<NodeName, Hosting> {
        let clusters = self.membership.hosted_by(node).filter_map(|name| self.clusters.get(name));
        let hosting = |cluster: &Cluster| {
            let roles = self.roles_of(&cluster.name)?;
            let host = roles.host.as_ref().filter(|_| roles.host_until.is_none())?;
            Some((cluster.manager.clone(), Hosting { fence: host.fence, lease: roles.lease }))
        };
        clusters.filter_map(|kept| hosting(&kept.value)).collect()
    }

    /// Whether a node may host a manager: it offers to, is up and not cordoned.
    pub(super) fn may_host(&self, name: &NodeName) -> bool {
        let is_machine = self.nodes.get(name).is_some_and(|node| node.value.logical.is_none());
        is_machine && self.may_lead(name) && self.features(name).has(Feature::LogicalNodes)
    }

    /// Time from which another node may host the manager of a cluster: the grace after the manager was declared unreachable, and not
    /// before its host had that long to begin, nor before the lease of the host is over. When its lease is over if it was decommissioned.
    /// `None` while the manager is there, or only silent.
    #[must_use]
    pub fn host_replaceable_at(&self, cluster: &Cluster, host: &RoleHolder) -> Option<Timestamp> {
        if let Some(until) = self.roles_of(&cluster.name).and_then(|roles| roles.host_until) {
            return Some(until);
        }
        let presence = self.presences.get(&cluster.manager);
        let lost = match presence.map(|kept| (kept.value.contact, kept.value.since)) {
            Some((PresenceState::Up | PresenceState::Suspect, _)) => return None,
            Some((PresenceState::Unreachable, since)) => since,
            Some((PresenceState::Never, _)) | None => host.since,
        };
        let lease = self.roles_of(&cluster.name).map_or(Span::ZERO, |roles| roles.lease);
        Some(lost.max(host.since).plus(cluster.grace.max(lease)))
    }

    /// Time from which another member may have the role of this one: the grace after it was declared unreachable, or the beginning of
    /// time if it is no member any more. `None` while it keeps the role.
    #[must_use]
    pub fn replaceable_at(&self, cluster: &Cluster, holder: &RoleHolder) -> Option<Timestamp> {
        if self.membership.of(&holder.node) != Some(&cluster.name) {
            return Some(Timestamp::EPOCH);
        }
        let presence = self.presences.get(&holder.node);
        let gone = presence.filter(|kept| kept.value.contact == PresenceState::Unreachable);
        gone.map(|kept| kept.value.since.plus(cluster.grace))
    }

    /// Time at which the roles of a cluster are to be decided: the beginning of time if at once. Costs time in proportion to its
    /// leaders.
    pub(super) fn roles_due(&self, name: &ClusterName) -> Option<Timestamp> {
        let roles = self.roles_of(name);
        let Some(cluster) = self.clusters.get(name).map(|kept| &kept.value) else {
            return roles.filter(|roles| !roles.is_none()).map(|_| Timestamp::EPOCH);
        };
        let holders = || roles.into_iter().flat_map(|roles| &roles.leaders);
        if holders().any(|(slot, _)| *slot >= cluster.leaders) {
            return Some(Timestamp::EPOCH);
        }
        let taken = |node: &NodeName| holders().any(|(_, holder)| holder.node == *node);
        let has_other = self.membership.eligible(name).any(|node| !taken(node));
        let lost = holders().filter_map(|(_, holder)| {
            let at = self.replaceable_at(cluster, holder)?;
            // One that is only silent keeps its role while there is nobody else to have it.
            (at == Timestamp::EPOCH || has_other).then_some(at)
        });
        let is_short = holders().count() < usize::try_from(cluster.leaders).unwrap_or(usize::MAX);
        let vacant = (is_short && has_other).then_some(Timestamp::EPOCH);
        lost.chain(vacant).chain(self.host_due(cluster, roles)).min()
    }

    /// Time at which the host of a cluster's manager is to be decided.
    fn host_due(&self, cluster: &Cluster, roles: Option<&ClusterRoles>) -> Option<Timestamp> {
        let has_other = self.other_hosts(roles).next().is_some();
        match roles.and_then(|roles| Some((roles.host.as_ref()?, roles.host_until))) {
            None => has_other.then_some(Timestamp::EPOCH),
            Some((host, None)) if self.is_gone(host) => Some(Timestamp::EPOCH),
            Some((host, _)) => self.host_replaceable_at(cluster, host).filter(|_| has_other),
        }
    }
}
