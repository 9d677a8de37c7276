//! Roles in clusters: what each node is, which params and profiles it has by that, and when the roles are to be decided again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::cluster::{Cluster, ClusterRoles, RoleHolder};
use crate::records::node::PresenceState;
use crate::words::name::{ClusterName, NodeName, ProfileName};
use crate::words::role_params::{
    CLUSTER_FENCE, CLUSTER_LEADER, CLUSTER_MANAGER, CLUSTER_NAME, CLUSTER_SLOT, CLUSTER_WORKER,
};
use crate::words::selector::Recorded;
use crate::words::time::Timestamp;
use crate::words::value::{Number, Value};

/// What a node is in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRole<'a> {
    /// It leads, in this slot.
    Leader(u32, &'a RoleHolder),
    /// Neither leader nor manager.
    Worker,
}

impl ClusterRole<'_> {
    /// Name of the role, as the API and the command line show it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Leader(_, _) => "leader",
            Self::Worker => "worker",
        }
    }
}

impl Fleet {
    /// The cluster of which a node is a member.
    #[must_use]
    pub fn cluster_of(&self, node: &NodeName) -> Option<&Cluster> {
        self.clusters.get(self.membership.of(node)?).map(|kept| &*kept.value)
    }

    /// The roles of a cluster; `None` before the first was given.
    #[must_use]
    pub fn roles_of(&self, cluster: &ClusterName) -> Option<&ClusterRoles> {
        self.cluster_roles.get(cluster).map(|kept| &*kept.value)
    }

    /// What a node is in a cluster of which it is a member.
    #[must_use]
    pub fn role_in(&self, cluster: &ClusterName, node: &NodeName) -> ClusterRole<'_> {
        let leads = self.roles_of(cluster).and_then(|roles| roles.slot_of(node));
        leads.map_or(ClusterRole::Worker, |(slot, holder)| ClusterRole::Leader(slot, holder))
    }

    /// The params that a node has by its role in its cluster; empty for one that is in none.
    #[must_use]
    pub fn role_params(&self, node: &NodeName) -> BTreeMap<&'static str, Value> {
        let mut params = BTreeMap::new();
        let Some(cluster) = self.membership.of(node) else { return params };
        params.insert(CLUSTER_NAME, Value::Text(cluster.as_str().into()));
        params.insert(CLUSTER_MANAGER, Value::Bool(false));
        let role = self.role_in(cluster, node);
        if let ClusterRole::Leader(slot, holder) = &role {
            params.insert(CLUSTER_SLOT, Value::Number(Number::integer(*slot)));
            params.insert(CLUSTER_FENCE, Value::Number(Number::integer(holder.fence.get())));
        }
        params.insert(CLUSTER_LEADER, Value::Bool(matches!(role, ClusterRole::Leader(_, _))));
        params.insert(CLUSTER_WORKER, Value::Bool(matches!(role, ClusterRole::Worker)));
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

    /// What is recorded of a node that is not decommissioned.
    pub(crate) fn recorded<'a>(&'a self, name: &'a NodeName) -> Option<Recorded<'a>> {
        let node = &self.active_node(name)?.value;
        Some(Recorded { name: name.as_str(), labels: &node.labels, data: self.data_of(name) })
    }

    /// Whether a member may be given a role: it is up and not cordoned.
    pub(super) fn may_lead(&self, name: &NodeName) -> bool {
        let is_up = self.presences.get(name).is_some_and(|kept| kept.value.contact == PresenceState::Up);
        is_up && self.active_node(name).is_some_and(|node| node.value.cordon.is_none())
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
            return roles.map(|_| Timestamp::EPOCH);
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
        lost.chain(vacant).min()
    }
}
