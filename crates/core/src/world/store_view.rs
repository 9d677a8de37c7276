//! The view of a cluster's data stores: what the members' own agents report, put together. It is approximate, since every part was
//! observed at its own time; what a store says about others is compared, and never believed of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::node::PresenceState;
use crate::records::probes::{Amount, DataStore, NodeProbes, ShardRole, StoreState};
use crate::words::name::{ClusterName, NodeName, ProbeName};

/// Most members, shards or values that one line names.
pub(super) const NAMED: usize = 8;

/// The data stores of a cluster under one name of probe, put together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreSummary {
    /// Members whose store is up.
    pub up: u64,
    /// Members whose store is down.
    pub down: u64,
    /// Members of whose store nobody knows.
    pub unknown: u64,
    /// The first of the members whose store is down.
    pub some_down: Vec<NodeName>,
    /// The first of the members of whose store nobody knows.
    pub some_unknown: Vec<NodeName>,
    /// Members without this probe.
    pub missing: u64,
    /// The first of them.
    pub some_missing: Vec<NodeName>,
    /// By software and version: the stores that have it, as they said last.
    pub versions: BTreeMap<String, u64>,
    /// The first of the members of each of them.
    pub some_of_versions: BTreeMap<String, Vec<NodeName>>,
    /// By id of the cluster that they say they belong to: the stores that do.
    pub cluster_ids: BTreeMap<String, u64>,
    /// The first of the members of each of them.
    pub some_of_ids: BTreeMap<String, Vec<NodeName>>,
    /// By shard: who has which part in it.
    pub shards: BTreeMap<String, ShardSummary>,
    /// Whether the stores that are up agree on who is a member.
    pub agreement: Agreement,
    /// Of each view of who is a member: the number of stores that have it, and the first of their members; the most frequent view first.
    pub views: Vec<(u64, Vec<NodeName>)>,
}

/// A shard of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardSummary {
    /// Members whose store is up and the primary: more than one is a conflict.
    pub primaries: BTreeSet<NodeName>,
    /// Members whose store was the primary when it was up last, and of which nobody knows now, or whose agent fell silent.
    pub last_primaries: BTreeSet<NodeName>,
    /// Stores that are up and replicas.
    pub replicas: u64,
    /// Stores that are up and have no vote.
    pub learners: u64,
    /// Stores that are up and have no role at present.
    pub vacant: u64,
    /// The first of their members.
    pub some_vacant: Vec<NodeName>,
    /// Stores of which nobody knows.
    pub unknown: u64,
    /// Members whose store was up and the primary when their agent fell silent, not long ago.
    pub unheard_primaries: BTreeSet<NodeName>,
    /// Stores that were up when their agent fell silent, not long ago: each may be the primary by now.
    pub unheard: u64,
    /// By member: how far its store is behind; only where the store says so, or where it can be computed.
    pub lags: BTreeMap<NodeName, Amount>,
    /// By member whose store replicates from a replica: the address of that one, which the primary names among its own replicas.
    pub chained: BTreeMap<NodeName, String>,
}

/// Whether data stores agree on who is a member of their cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agreement {
    /// No store has a view of its own.
    #[default]
    None,
    /// All views are the same.
    Agreed,
    /// There are two views at least.
    Differs,
}

impl Agreement {
    /// Name of the agreement.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Agreed => "agreed",
            Self::Differs => "differs",
        }
    }
}

impl Fleet {
    /// The data stores of a cluster by name of probe, of those members that are to be seen.
    #[must_use]
    pub fn store_view(
        &self,
        cluster: &ClusterName,
        is_seen: impl Fn(&NodeName) -> bool,
    ) -> BTreeMap<ProbeName, StoreSummary> {
        let members: Vec<&NodeName> = self.membership.members(cluster).filter(|node| is_seen(node)).collect();
        let probes = |node: &NodeName| self.probes.get(node).map(|kept| &*kept.value);
        let names: BTreeSet<&ProbeName> =
            members.iter().filter_map(|node| probes(node)).flat_map(|probes| probes.stores.keys()).collect();
        let of = |name: &ProbeName| {
            let each = members.iter().map(|node| {
                (*node, probes(node).and_then(|probes| store(probes, name)), self.is_heard(node))
            });
            summary(each)
        };
        names.into_iter().map(|name| (name.clone(), of(name))).collect()
    }
}

impl Fleet {
    /// Whether the agent of a node has not fallen silent, as far as is known: what it reported last is how it is.
    fn is_heard(&self, node: &NodeName) -> bool {
        self.presences.get(node).is_none_or(|kept| kept.value.contact == PresenceState::Up)
    }
}

fn store<'a>(probes: &'a NodeProbes, name: &ProbeName) -> Option<&'a DataStore> {
    probes.stores.get(name)
}

/// Puts the stores of members together, each with whether its agent is heard.
fn summary<'a>(members: impl Iterator<Item = (&'a NodeName, Option<&'a DataStore>, bool)>) -> StoreSummary {
    let mut summary = StoreSummary::default();
    let mut up = Vec::new();
    for (node, store, is_heard) in members {
        let Some(store) = store else {
            summary.missing += 1;
            note(&mut summary.some_missing, node);
            continue;
        };
        match store.state {
            StoreState::Up => {
                summary.up += 1;
                up.push((node, store));
            }
            StoreState::Down => {
                summary.down += 1;
                note(&mut summary.some_down, node);
            }
            StoreState::Unknown => {
                summary.unknown += 1;
                note(&mut summary.some_unknown, node);
            }
        }
        summary.add_facts(node, store, is_heard);
    }
    summary.shards.values_mut().for_each(ShardSummary::settle_unheard);
    let mut views: BTreeMap<Vec<_>, (u64, Vec<NodeName>)> = BTreeMap::new();
    for (node, view) in up.iter().filter_map(|(node, store)| Some((*node, opinion(store)?))) {
        let (count, some) = views.entry(view).or_default();
        *count += 1;
        note(some, node);
    }
    summary.agreement = match views.len() {
        0 => Agreement::None,
        1 => Agreement::Agreed,
        _ => Agreement::Differs,
    };
    summary.views = views.into_values().collect();
    summary.views.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    summary.add_lags(&up);
    summary.add_chained(&up);
    summary
}

/// Who is a member in a store's own view, without whether it is connected to it.
fn opinion(store: &DataStore) -> Option<Vec<(&str, Option<&str>, bool)>> {
    let members = store.facts.members.as_ref()?;
    Some(members.iter().map(|(id, member)| (id.as_str(), member.address.as_deref(), member.votes)).collect())
}

/// Addresses of the other members in a store's own view. One that does not say which of them it is may be any.
fn followers(store: &DataStore) -> impl Iterator<Item = &str> {
    let own = store.facts.member_id.as_ref();
    let others =
        store.facts.members.iter().flatten().filter(move |(id, _)| own.is_some_and(|own| own != *id));
    others.filter_map(|(_, member)| member.address.as_deref())
}

impl StoreSummary {
    fn add_facts(&mut self, node: &NodeName, store: &DataStore, is_heard: bool) {
        let facts = &store.facts;
        // A store that never answered has no version that could differ.
        if !facts.software.is_empty() && (facts.version.is_some() || store.state == StoreState::Up) {
            let version = facts.version.as_deref().unwrap_or("unknown");
            let version = format!("{} {version}", facts.software);
            note(self.some_of_versions.entry(version.clone()).or_default(), node);
            *self.versions.entry(version).or_default() += 1;
        }
        if let Some(id) = &facts.cluster_id {
            note(self.some_of_ids.entry(id.clone()).or_default(), node);
            *self.cluster_ids.entry(id.clone()).or_default() += 1;
        }
        for (name, part) in &facts.shards {
            let shard = self.shards.entry(name.clone()).or_default();
            match (store.state, part.role) {
                (StoreState::Up, ShardRole::Primary) if is_heard => {
                    shard.primaries.insert(node.clone());
                }
                (StoreState::Up, ShardRole::Replica) => shard.replicas += 1,
                (StoreState::Up, ShardRole::Learner) => shard.learners += 1,
                (StoreState::Up, ShardRole::Vacant) => {
                    shard.vacant += 1;
                    note(&mut shard.some_vacant, node);
                }
                (StoreState::Up, ShardRole::Primary) => {
                    shard.unheard_primaries.insert(node.clone());
                }
                (StoreState::Unknown, ShardRole::Primary) => {
                    shard.last_primaries.insert(node.clone());
                }
                (StoreState::Down | StoreState::Unknown, _) => {}
            }
            if store.state == StoreState::Unknown {
                shard.unknown += 1;
            }
            shard.unheard += u64::from(store.state == StoreState::Up && !is_heard);
        }
    }

    /// Lags as the stores report them; where they do not, from the offset of the only primary, if both are positions in one history.
    fn add_lags(&mut self, up: &[(&NodeName, &DataStore)]) {
        for (name, shard) in &mut self.shards {
            let parts = || up.iter().filter_map(|(node, store)| Some((*node, store.facts.shards.get(name)?)));
            let primary = match shard.primaries.len() {
                1 => parts().find(|(_, part)| part.role == ShardRole::Primary).map(|(_, part)| part),
                _ => None,
            };
            for (node, part) in parts().filter(|(_, part)| part.role != ShardRole::Primary) {
                let computed = || {
                    let primary = primary.filter(|primary| primary.history == part.history)?;
                    let (ahead, own) = (primary.offset.as_ref()?, part.offset.as_ref()?);
                    let amount = ahead.amount.saturating_sub(own.amount);
                    (ahead.unit == own.unit).then(|| Amount { amount, unit: own.unit.clone() })
                };
                if let Some(lag) = part.lag.clone().or_else(computed) {
                    shard.lags.insert(node.clone(), lag);
                }
            }
        }
    }

    /// Stores that replicate from what the only primary names as one of its replicas: two stores say it together. An address under another
    /// name is no evidence of anything.
    fn add_chained(&mut self, up: &[(&NodeName, &DataStore)]) {
        for (name, shard) in self.shards.iter_mut().filter(|(_, shard)| shard.primaries.len() == 1) {
            let parts =
                || up.iter().filter_map(|(node, store)| Some((*node, *store, store.facts.shards.get(name)?)));
            let followers: BTreeSet<&str> = parts()
                .filter(|(_, _, part)| part.role == ShardRole::Primary)
                .flat_map(|(_, store, _)| followers(store))
                .collect();
            let others = parts().filter(|(_, _, part)| part.role != ShardRole::Primary);
            let chained = others.filter_map(|(node, _, part)| Some((node.clone(), part.upstream.clone()?)));
            shard.chained = chained.filter(|(_, upstream)| followers.contains(upstream.as_str())).collect();
        }
    }
}

impl ShardSummary {
    /// A primary whose agent fell silent only just now is taken for the primary while no other store says that it is: a short interruption
    /// changes nothing. Of several such nobody knows which one is.
    fn settle_unheard(&mut self) {
        match (self.primaries.len(), self.unheard_primaries.len()) {
            (0, 1) => self.primaries.clone_from(&self.unheard_primaries),
            _ => self.last_primaries.extend(self.unheard_primaries.iter().cloned()),
        }
    }
}

/// Notes a member among the few that are named.
fn note(named: &mut Vec<NodeName>, node: &NodeName) {
    if named.len() < NAMED {
        named.push(node.clone());
    }
}

#[cfg(test)]
mod tests;
