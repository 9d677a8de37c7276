//! Folds clusters and their roles, and what changes who is a member.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::kept;
use crate::records::cluster::{Cluster, ClusterRoles};
use crate::records::cluster_view::ClusterView;
use crate::records::discovery::ClusterDiscovery;
use crate::words::counter::{ClusterNumber, Revision};
use crate::words::name::{ClusterName, NodeName};
use crate::words::selector::Recorded;
use crate::world::fleet::Fleet;

impl Fleet {
    pub(super) fn put_cluster(&mut self, cluster: Cluster, revision: Revision) {
        let name = cluster.name.clone();
        let is_same = self.clusters.get(&name).is_some_and(|before| {
            let is_listed = before.value.discovery.is_some();
            before.value.filter == cluster.filter && is_listed == cluster.discovery.is_some()
        });
        self.clusters.insert_mut(name.clone(), kept(cluster, revision));
        self.touched_views.touch(&name, revision);
        self.reactions_may_change();
        if is_same {
            self.refresh_roles(&name)
        } else {
            self.cluster_changed(&name, revision)
        }
        let host = self.roles_of(&name).and_then(|roles| roles.host.clone());
        if let Some(host) = host.filter(|_| !self.loading) {
            // How long it may be out of contact may be another time.
            self.refresh_node(&host.node);
        }
    }

    pub(super) fn delete_cluster(&mut self, name: &ClusterName, revision: Revision) {
        self.clusters.remove_mut(name);
        if self.cluster_views.contains_key(name) {
            self.touched_views.touch(name, revision);
        } else {
            self.touched_views.forget(name);
        }
        self.cluster_changed(name, revision);
    }

    pub(super) fn put_cluster_roles(&mut self, roles: ClusterRoles, revision: Revision) {
        let name = roles.cluster.clone();
        let before = self.roles_of(&name).and_then(|roles| roles.host.clone()).map(|host| host.node);
        let now = roles.host.as_ref().map(|host| host.node.clone());
        self.cluster_roles.insert_mut(name.clone(), kept(roles, revision));
        self.host_changed(&name, before.as_ref(), now.as_ref());
    }

    pub(super) fn delete_cluster_roles(&mut self, name: &ClusterName) {
        let before = self.roles_of(name).and_then(|roles| roles.host.clone()).map(|host| host.node);
        self.cluster_roles.remove_mut(name);
        self.host_changed(name, before.as_ref(), None);
    }

    pub(super) fn put_cluster_view(&mut self, view: ClusterView, revision: Revision) {
        let name = view.cluster.clone();
        let before = self.cluster_views.get(&name).map(|kept| kept.value.clone());
        self.note_view(before.as_deref(), Some(&view));
        self.cluster_views.insert_mut(name, kept(view, revision));
    }

    pub(super) fn delete_cluster_view(&mut self, name: &ClusterName) {
        let before = self.cluster_views.get(name).map(|kept| kept.value.clone());
        self.note_view(before.as_deref(), None);
        self.cluster_views.remove_mut(name);
        if !self.clusters.contains_key(name) {
            self.touched_views.forget(name);
        }
    }

    pub(super) fn put_cluster_discovery(&mut self, known: ClusterDiscovery, revision: Revision) {
        let name = known.cluster.clone();
        let before = self.cluster_discoveries.get(&name).map(|kept| kept.value.clone());
        let is_same = before.is_some_and(|before| before.members.keys().eq(known.members.keys()));
        self.cluster_discoveries.insert_mut(name.clone(), kept(known, revision));
        if !is_same {
            self.cluster_changed(&name, revision);
        }
    }

    pub(super) fn delete_cluster_discovery(&mut self, name: &ClusterName, revision: Revision) {
        if self.cluster_discoveries.remove_mut(name) {
            self.cluster_changed(name, revision);
        }
    }

    /// Another node, or none, hosts the manager of a cluster, or it does so with other limits.
    fn host_changed(&mut self, cluster: &ClusterName, before: Option<&NodeName>, now: Option<&NodeName>) {
        if self.loading {
            return;
        }
        self.membership.set_host(cluster, before, now);
        for node in before.into_iter().chain(now) {
            self.refresh_node(node);
        }
        self.refresh_roles(cluster);
    }

    /// Whether a node may host a manager may have changed. Costs time in proportion to the clusters if it has.
    pub(super) fn hosting_changed(&mut self, node: &NodeName) {
        if self.loading {
            return;
        }
        let may = self.may_host(node);
        // A host that is decommissioned may have been away before.
        let clusters: Vec<ClusterName> = match self.membership.set_may_host(node, may) {
            true => self.clusters.keys().cloned().collect(),
            false => self.membership.hosted_by(node).cloned().collect(),
        };
        for cluster in &clusters {
            self.refresh_roles(cluster);
        }
    }

    /// What is recorded of a node changed, or it was added or removed: other clusters may match it. Costs time in proportion to the
    /// clusters.
    pub(super) fn cluster_membership_changed(&mut self, node: &NodeName, revision: Revision) {
        if self.loading {
            return;
        }
        let before = self.membership.matching(node);
        let now = self.matching_clusters(node);
        if before != now {
            self.set_matching(node, &now, revision);
        } else {
            self.eligibility_changed(node);
        }
    }

    /// Whether a node may be given a role in its cluster may have changed, or whether it lost one.
    pub(super) fn eligibility_changed(&mut self, node: &NodeName) {
        if self.loading {
            return;
        }
        self.hosting_changed(node);
        if let Some(cluster) = self.managed_by(node).cloned() {
            return self.refresh_roles(&cluster);
        }
        let Some(cluster) = self.membership.of(node).cloned() else { return };
        let is_eligible = self.may_lead(node);
        self.membership.set_eligible(&cluster, node, is_eligible);
        self.refresh_roles(&cluster);
    }

    /// Builds the indexes of clusters, once all records are present.
    pub(super) fn build_clusters(&mut self) {
        let clusters: BTreeSet<ClusterName> =
            self.clusters.keys().chain(self.cluster_roles.keys()).cloned().collect();
        let nodes: Vec<NodeName> = self.nodes.keys().cloned().collect();
        for node in &nodes {
            let may = self.may_host(node);
            self.membership.set_may_host(node, may);
            if clusters.is_empty() {
                continue;
            }
            let now = self.matching_clusters(node);
            self.set_matching(node, &now, Revision::ZERO);
        }
        for cluster in &clusters {
            let host = self.roles_of(cluster).and_then(|roles| roles.host.clone()).map(|host| host.node);
            self.membership.set_host(cluster, None, host.as_ref());
            self.refresh_roles(cluster);
        }
    }

    /// A cluster was added, removed, or has another filter. Costs time in proportion to the nodes.
    fn cluster_changed(&mut self, name: &ClusterName, revision: Revision) {
        if self.loading {
            return;
        }
        let mut nodes = self.membership.matched(name);
        if let Some(cluster) = self.clusters.get(name).map(|kept| kept.value.clone()) {
            let picks = |node: &&NodeName| self.recorded(node).is_some_and(|node| self.picks(&cluster, node));
            nodes.extend(self.nodes.keys().filter(picks).cloned());
        }
        for node in &nodes {
            let now = self.matching_clusters(node);
            self.set_matching(node, &now, revision);
        }
        self.refresh_roles(name);
    }

    fn set_matching(&mut self, node: &NodeName, now: &[(ClusterNumber, ClusterName)], revision: Revision) {
        let before = self.membership.of(node).cloned();
        self.membership.set_matching(node, now);
        let now = self.membership.of(node).cloned();
        if before != now {
            for cluster in before.iter().chain(&now) {
                self.touched_views.touch(cluster, revision);
            }
            self.reactions_may_change();
            self.touch_those_with_stores(revision);
            before.iter().for_each(|before| self.refresh_roles(before));
        }
        self.eligibility_changed(node);
    }

    /// The clusters that match a node, in order of precedence.
    fn matching_clusters(&self, node: &NodeName) -> Vec<(ClusterNumber, ClusterName)> {
        let Some(node) = self.recorded(node) else { return Vec::new() };
        let clusters = self.clusters.values().map(|kept| &kept.value);
        let matching = clusters.filter(|cluster| self.picks(cluster, node));
        let mut matching: Vec<_> = matching.map(|cluster| (cluster.number, cluster.name.clone())).collect();
        matching.sort_unstable();
        matching
    }

    /// Whether a node is for a cluster: the filter matches it, and the list has it if there is one.
    fn picks(&self, cluster: &Cluster, node: Recorded<'_>) -> bool {
        let is_listed = || {
            let known = self.cluster_discoveries.get(&cluster.name);
            known.is_some_and(|known| known.value.members.contains_key(node.name))
        };
        (cluster.discovery.is_none() || is_listed())
            && cluster.filter.picks(node.name, node.labels, node.data)
    }

    fn refresh_roles(&mut self, cluster: &ClusterName) {
        if self.loading {
            return;
        }
        let due = self.roles_due(cluster);
        self.membership.set_due(cluster, due);
    }
}
