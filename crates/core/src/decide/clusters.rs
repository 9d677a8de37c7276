//! Roles in clusters: gives each slot a leader, keeps it there, and replaces it when it is no member any more or was unreachable for
//! longer than the cluster's grace.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::cluster::{Cluster, ClusterRoles, RoleHolder};
use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{ClusterName, NodeName};
use crate::words::random::RandomStream;
use crate::words::time::Timestamp;
use crate::words::value::Value;
use crate::world::fleet::Fleet;

/// Gives the roles of the clusters whose time has come. `settled` is the time from which silence is evidence: before it, no holder is
/// replaced for being unreachable.
///
/// Woken by: clusters, their members and their presence, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, settled: Timestamp, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for (due, name) in fleet.membership.due() {
        let at = if *due == Timestamp::EPOCH { *due } else { (*due).max(settled) };
        if at > now {
            verdict.wake = Some(verdict.wake.map_or(at, |wake| wake.min(at)));
            continue;
        }
        verdict.changesets.extend(roles(fleet, name, settled <= now, now));
    }
    verdict
}

/// The roles of a cluster as they are to be; `None` if they are so already.
fn roles(fleet: &Fleet, name: &ClusterName, is_settled: bool, now: Timestamp) -> Option<Changeset> {
    let before = fleet.roles_of(name);
    let Some(cluster) = fleet.clusters.get(name).map(|kept| &*kept.value) else {
        // The number stays: a cluster of this name that is created later goes on from it.
        let given = before.filter(|roles| !roles.is_none())?;
        let ended = ClusterRoles { fence: given.fence, ..ClusterRoles::none(name.clone()) };
        return Some(Changeset { writes: vec![Write::put(Record::ClusterRoles(ended))], events: Vec::new() });
    };
    let before = before.cloned().unwrap_or_else(|| ClusterRoles::none(name.clone()));
    let mut change = Change { fleet, cluster, roles: before.clone(), events: Vec::new(), now };
    let mut vacant = Vec::new();
    for (slot, holder) in &before.leaders {
        let is_surplus = *slot >= cluster.leaders;
        let at = fleet.replaceable_at(cluster, holder);
        let is_gone = at == Some(Timestamp::EPOCH);
        if is_surplus || is_gone {
            let cause = if is_surplus { surplus(cluster) } else { gone(fleet, &holder.node) };
            vacant.push((*slot, change.vacate(*slot, holder), cause));
        } else if is_settled && at.is_some_and(|at| at <= now) {
            let cause = format!("{} was unreachable for {}", holder.node, cluster.grace);
            change.replace(*slot, holder, cause);
        }
    }
    for slot in 0..cluster.leaders {
        if change.roles.leaders.contains_key(&slot) {
            continue;
        }
        let at = vacant.iter().position(|(of, _, _)| *of == slot);
        let (former, cause) = match at.map(|at| vacant.swap_remove(at)) {
            Some((_, former, cause)) => (Some(former), cause),
            None => (None, "the slot had no leader".to_string()),
        };
        change.fill(slot, former, cause);
    }
    for (slot, former, cause) in vacant {
        change.event(slot, Some(former), None, cause);
    }
    change.host(is_settled);
    let Change { roles, events, .. } = change;
    (roles != before).then(|| Changeset { writes: vec![Write::put(Record::ClusterRoles(roles))], events })
}

fn surplus(cluster: &Cluster) -> String {
    format!("the cluster has {} now", crate::words::plural::plural(cluster.leaders as usize, "leader"))
}

fn gone(fleet: &Fleet, node: &NodeName) -> String {
    match fleet.active_node(node) {
        Some(_) => format!("{node} is not a member any more"),
        None => format!("{node} was decommissioned or removed"),
    }
}

/// Roles that are being decided.
struct Change<'a> {
    fleet: &'a Fleet,
    cluster: &'a Cluster,
    roles: ClusterRoles,
    events: Vec<EventDraft>,
    now: Timestamp,
}

impl Change<'_> {
    /// Takes a role from its holder; answers who it was.
    fn vacate(&mut self, slot: u32, holder: &RoleHolder) -> NodeName {
        self.roles.leaders.remove(&slot);
        holder.node.clone()
    }

    /// Gives a slot to another member, if there is one.
    fn replace(&mut self, slot: u32, holder: &RoleHolder, cause: String) {
        if let Some(node) = self.choose() {
            self.give(slot, Some(holder.node.clone()), node, cause);
        }
    }

    /// Gives a slot that nobody has to a member; notes that it is vacant if it had somebody and there is no other.
    fn fill(&mut self, slot: u32, former: Option<NodeName>, cause: String) {
        match (self.choose(), former) {
            (Some(node), former) => self.give(slot, former, node, cause),
            (None, Some(former)) => self.event(slot, Some(former), None, cause),
            (None, None) => {}
        }
    }

    /// Gives the manager a host if it has none, or another one if it is lost.
    fn host(&mut self, is_settled: bool) {
        let former = self.roles.host.clone();
        if let Some(host) = former.as_ref().filter(|host| self.fleet.is_gone(host))
            && self.roles.host_until.is_none()
        {
            return self.end_host(host);
        }
        let cause = match &former {
            None => "it had no host".to_string(),
            Some(host) => {
                let at = self.fleet.host_replaceable_at(self.cluster, host);
                if !is_settled || at.is_none_or(|at| at > self.now) {
                    return;
                }
                let grace = self.roles.lease.max(self.cluster.grace);
                match self.roles.host_until {
                    Some(_) => format!("{} was decommissioned or removed", host.node),
                    None => format!("the manager was unreachable on {} for {grace}", host.node),
                }
            }
        };
        let index = &self.fleet.membership;
        let count = self.roles.fence.get();
        let order = |node: &&NodeName| {
            let draw = RandomStream::for_one(self.cluster.number.get(), node.as_str(), count).draw();
            (index.hosted_by(node).count(), draw)
        };
        let others = self.fleet.other_hosts(Some(&self.roles));
        let Some(node) = others.min_by_key(order).cloned() else { return };
        self.roles.fence = self.roles.fence.next_in(self.fleet.epoch);
        let fence = self.roles.fence;
        self.roles.host = Some(RoleHolder { node: node.clone(), fence, since: self.now });
        (self.roles.lease, self.roles.host_until) = (self.cluster.grace, None);
        self.events.push(EventDraft {
            kind: "cluster.manager_moved",
            subject: format!("cluster/{}", self.cluster.name),
            before: former.map(|host| host.node.to_string()),
            after: Some(node.to_string()),
            cause: format!("fencing number {fence}: {cause}"),
        });
    }

    /// Notes when the lease of a host that was decommissioned is over at the latest. No server renews it from the commit of that on, and
    /// whoever decides this has seen the commit: its whole length from now on is later than its end.
    fn end_host(&mut self, host: &RoleHolder) {
        let over = self.now.plus(self.roles.lease);
        let lost = self.fleet.host_replaceable_at(self.cluster, host);
        self.roles.host_until = Some(lost.map_or(over, |lost| lost.min(over)));
    }

    fn give(&mut self, slot: u32, former: Option<NodeName>, node: NodeName, cause: String) {
        self.roles.fence = self.roles.fence.next_in(self.fleet.epoch);
        let holder = RoleHolder { node: node.clone(), fence: self.roles.fence, since: self.now };
        self.roles.leaders.insert(slot, holder);
        let cause = format!("fencing number {}: {cause}", self.roles.fence);
        self.event(slot, former, Some(node), cause);
    }

    fn event(&mut self, slot: u32, before: Option<NodeName>, after: Option<NodeName>, cause: String) {
        let cause = if self.cluster.leaders > 1 { format!("slot {slot}, {cause}") } else { cause };
        self.events.push(EventDraft {
            kind: "cluster.leader_changed",
            subject: format!("cluster/{}", self.cluster.name),
            before: before.map(|node| node.to_string()),
            after: after.map(|node| node.to_string()),
            cause,
        });
    }

    /// The member that is to have a role next: the first by the cluster's order, else a random one. Those that have a role have it
    /// already, and nobody has two.
    fn choose(&self) -> Option<NodeName> {
        let is_free = |node: &&NodeName| self.roles.slot_of(node).is_none();
        let free = self.fleet.membership.eligible(&self.cluster.name).filter(is_free);
        let Some(order) = &self.cluster.prefer else {
            let count = self.roles.fence.get();
            let seed = self.cluster.number.get();
            return free.min_by_key(|node| RandomStream::for_one(seed, node.as_str(), count).draw()).cloned();
        };
        let value = |node: &NodeName| -> Option<Value> { order.value(&self.fleet.recorded(node)?) };
        let mut best: Option<(Option<Value>, &NodeName)> = None;
        for node in free {
            let own = value(node);
            let is_better =
                best.as_ref().is_none_or(|(value, _)| order.compare(own.as_ref(), value.as_ref()).is_lt());
            if is_better {
                best = Some((own, node));
            }
        }
        best.map(|(_, node)| node.clone())
    }
}

#[cfg(test)]
mod tests;
