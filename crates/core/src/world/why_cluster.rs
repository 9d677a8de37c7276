//! Why a cluster has the members and leaders that it has.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::cluster::{Cluster, ClusterMode, RoleHolder};
use crate::records::cluster_view::ConditionId;
use crate::records::discovery::{ClusterDiscovery, Discovery};
use crate::records::node::PresenceState;
use crate::words::name::{ClusterName, NodeName};
use crate::words::plural::plural;
use crate::words::selector::Selector;
use crate::words::time::Timestamp;

/// Most nodes that one line names.
const NAMED: usize = 8;

/// Why a cluster is as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyCluster {
    /// Whether it waits for something.
    pub is_waiting: bool,
    /// What there is to say, one sentence each.
    pub lines: Vec<String>,
}

impl Fleet {
    /// Why a cluster has the members and leaders that it has, and what it waits for.
    #[must_use]
    pub fn why_cluster(&self, cluster: &Cluster, now: Timestamp) -> WhyCluster {
        let name = &cluster.name;
        let members = self.membership.size(name);
        let (mut lines, mut is_waiting) = match (&cluster.discovery, members) {
            (Some(discovery), _) => self.why_listed(cluster, discovery, now),
            (None, 0) => (
                Vec::from([format!("no node is a member: none matches its filter {}", cluster.filter)]),
                false,
            ),
            (None, count) => {
                (Vec::from([format!("{} by its filter {}", plural(count, "member"), cluster.filter)]), false)
            }
        };
        lines.extend(mode(cluster));
        let roles = self.roles_of(name);
        for slot in 0..cluster.leaders {
            let slot_name = if cluster.leaders > 1 { format!("slot {slot}: ") } else { String::new() };
            let holder = roles.and_then(|roles| roles.leaders.get(&slot));
            let (line, waits) = match holder {
                Some(holder) => self.why_leader(cluster, holder, now),
                None => (self.why_vacant(cluster), true),
            };
            is_waiting |= waits;
            lines.push(format!("{slot_name}{line}"));
        }
        let (line, waits) = self.why_manager(cluster, roles.and_then(|roles| roles.host.as_ref()), now);
        is_waiting |= waits;
        lines.push(line);
        let claimed: Vec<&NodeName> = self.membership.claimed(name).collect();
        if !claimed.is_empty() {
            lines.push(self.why_claimed(&claimed));
        }
        lines.extend(self.why_stores(name, now));
        WhyCluster { is_waiting, lines }
    }

    /// Members that are listed outside, and whether that waits for something.
    fn why_listed(&self, cluster: &Cluster, discovery: &Discovery, now: Timestamp) -> (Vec<String>, bool) {
        let (name, source) = (&cluster.name, &discovery.source);
        let members = plural(self.membership.size(name), "member");
        let mut by = format!("{members} by the list {source}, read every {}", discovery.interval);
        if cluster.filter != Selector::all() {
            by.push_str(&format!(", and its filter {}", cluster.filter));
        }
        let Some(known) = self.cluster_discoveries.get(name).map(|kept| &*kept.value) else {
            return (Vec::from([by, "the list was not read yet".into()]), true);
        };
        let mut lines = Vec::from([by]);
        if let Some(failure) = &known.failure {
            let since = now.since(failure.since).brief();
            let kept = if known.members.is_empty() { "" } else { "; the last one is kept" };
            lines.push(format!("the list cannot be read for {since}{kept}: {}", failure.reason));
        }
        if let Some(held) = &known.held {
            let (count, since) = (plural(held.hosts.len(), "member"), now.since(held.since).brief());
            lines.push(format!(
                "{count} missing from the list for {since}, more than half: they stay until somebody accepts it by cluster members {name} --accept: {}",
                some_of(held.hosts.iter().map(String::as_str))
            ));
        }
        let unknown: Vec<&str> = self.unknown_members(known).collect();
        if !unknown.is_empty() {
            lines.push(format!("listed, and no nodes: {}", some_of(unknown.into_iter())));
        }
        (lines, known.failure.is_some() || known.held.is_some())
    }

    /// Listed members that are no nodes, by the host of their targets.
    pub fn unknown_members<'a>(&'a self, known: &'a ClusterDiscovery) -> impl Iterator<Item = &'a str> {
        let hosts = known.members.keys().map(String::as_str);
        hosts.filter(|host| NodeName::parse(host).map_or(true, |name| self.active_node(&name).is_none()))
    }

    /// The conditions of the data stores, those of single stores too, with since when they are recorded.
    fn why_stores(&self, cluster: &ClusterName, now: Timestamp) -> Vec<String> {
        let decided = self.cluster_views.get(cluster).map(|kept| &*kept.value);
        let mut lines = Vec::new();
        for (probe, stores) in self.store_view(cluster, |_| true) {
            for (kind, reason) in stores.conditions() {
                let id = ConditionId { probe: probe.clone(), kind };
                let since = decided.and_then(|view| view.conditions.get(&id)).map(|known| known.since);
                let since =
                    since.map_or_else(String::new, |since| format!(", for {}", now.since(since).brief()));
                lines.push(format!("data stores {probe}: {reason} ({}{since})", kind.as_str()));
            }
        }
        lines
    }

    fn why_leader(&self, cluster: &Cluster, holder: &RoleHolder, now: Timestamp) -> (String, bool) {
        let RoleHolder { node, fence, since } = holder;
        let leads = format!("{node} has led for {}, with fencing number {fence}", now.since(*since).brief());
        let Some(at) = self.replaceable_at(cluster, holder) else { return (leads, false) };
        let others = self.membership.eligible(&cluster.name).any(|other| other != node);
        let next = match (others, at > now) {
            (true, true) => format!("another member takes its place in {}", at.since(now).brief()),
            (true, false) => {
                "the leader among the servers is about to give its place to another member".into()
            }
            (false, _) => "no other member is up and not cordoned, so that it keeps its place".into(),
        };
        let state = if at == Timestamp::EPOCH { "is no member any more" } else { "is unreachable" };
        (format!("{leads}; it {state}, and {next}"), true)
    }

    fn why_manager(&self, cluster: &Cluster, host: Option<&RoleHolder>, now: Timestamp) -> (String, bool) {
        let manager = &cluster.manager;
        let Some(host) = host else {
            let why = "no node that is up and not cordoned offers to host it: set hosts_logical = true in [agent] of an agent.toml";
            return (format!("manager {manager} has no host: {why}"), cluster.workflow.is_some());
        };
        let RoleHolder { node, fence, since } = host;
        let hosted = format!(
            "manager {manager} is hosted by {node} since {} ago, with fencing number {fence}",
            now.since(*since).brief()
        );
        if let Some(mark) = self.not_runnable.get(manager) {
            return (format!("{hosted}; it is {}", mark.value.line()), true);
        }
        let Some(at) = self.host_replaceable_at(cluster, host) else { return (hosted, false) };
        let roles = self.roles_of(&cluster.name);
        let others = self.other_hosts(roles).next().is_some();
        let next = match (others, at > now) {
            (true, true) => format!("another node hosts it in {}", at.since(now).brief()),
            (true, false) => "the leader among the servers is about to give it to another node".into(),
            (false, _) => "no other node offers to host it".into(),
        };
        let state = match roles.and_then(|roles| roles.host_until) {
            Some(_) => "its host was decommissioned",
            None => "it is not connected",
        };
        (format!("{hosted}; {state}, and {next}"), true)
    }

    fn why_vacant(&self, cluster: &Cluster) -> String {
        let members = self.membership.members(&cluster.name);
        let leads =
            |node: &NodeName| self.roles_of(&cluster.name).is_some_and(|it| it.slot_of(node).is_some());
        let (mut down, mut cordoned, mut leading) = (0_usize, 0_usize, 0_usize);
        for node in members {
            let is_up = self.presences.get(node).is_some_and(|it| it.value.contact == PresenceState::Up);
            match (leads(node), is_up) {
                (true, _) => leading += 1,
                (false, false) => down += 1,
                (false, true) => cordoned += usize::from(!self.membership.is_eligible(&cluster.name, node)),
            }
        }
        let counted = [(leading, "leading another slot"), (down, "not up"), (cordoned, "cordoned")];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted.map(|(count, what)| format!("{count} {what}")).collect();
        let of = plural(self.membership.size(&cluster.name), "member");
        match counted.as_slice() {
            [] if self.membership.size(&cluster.name) == 0 => "no leader: there is no member".into(),
            [] => "no leader yet: the leader among the servers is about to choose one".into(),
            counted => format!("no leader: no member may lead (of {of}: {})", counted.join(", ")),
        }
    }

    fn why_claimed(&self, claimed: &[&NodeName]) -> String {
        let named = claimed.iter().take(NAMED).map(|node| {
            let of = self.membership.of(node).map_or("another cluster", |cluster| cluster.as_str());
            format!("{node} ({of})")
        });
        let named: Vec<String> = named.collect();
        let more = claimed.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("matched, and members of older clusters: {}{more}", named.join(", "))
    }
}

/// The first names, and how many more there are.
fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = names.get(..NAMED.min(names.len())).unwrap_or_default();
    format!("{}{more}", named.join(", "))
}

/// What the mode of a cluster keeps it from.
fn mode(cluster: &Cluster) -> Option<String> {
    let kept_from = match cluster.mode {
        ClusterMode::Active => return None,
        ClusterMode::Observe => "conditions of its data stores are told, and no reaction starts anything",
        ClusterMode::Disabled => {
            "its data stores have no new conditions and no events, and no reaction starts anything"
        }
    };
    let (name, mode) = (&cluster.name, cluster.mode.as_str());
    Some(format!("its mode is {mode}: {kept_from}; bellwether cluster set {name} --mode active"))
}
