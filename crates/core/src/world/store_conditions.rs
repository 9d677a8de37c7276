//! What is true of the data stores of a cluster and should not be. Owns the texts about it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::store_view::{Agreement, NAMED, ShardSummary, StoreSummary};
use crate::records::cluster_view::ConditionKind;
use crate::words::name::NodeName;
use crate::words::plural::Plural;

impl StoreSummary {
    /// The conditions that are true, each with what is seen in one line for people. Absence of an answer is no evidence: a shard of
    /// which a store is unknown has no primary that is known, which is not the same as none.
    #[must_use]
    pub fn conditions(&self) -> Vec<(ConditionKind, String)> {
        let of = |count: u64, named: &[NodeName], what: &str| {
            (count > 0).then(|| format!("{what} on {}", named_of(named.iter().map(NodeName::as_str), count)))
        };
        let mixed = (self.versions.len() > 1)
            .then(|| format!("versions are mixed: {}", counted(&self.versions, &self.some_of_versions)));
        let ids = (self.cluster_ids.len() > 1).then(|| {
            let counted = counted(&self.cluster_ids, &self.some_of_ids);
            format!("stores belong to {} clusters: {counted}", self.cluster_ids.len())
        });
        let differ = (self.agreement == Agreement::Differs)
            .then(|| format!("stores differ on who is a member: {}", views(&self.views)));
        let [none, unknown, several] = self.shards_without_one();
        let all = [
            (ConditionKind::StoreDown, of(self.down, &self.some_down, "down")),
            (ConditionKind::StoreUnknown, of(self.unknown, &self.some_unknown, "unknown")),
            (ConditionKind::MixedVersions, mixed),
            (ConditionKind::SeveralClusterIds, ids),
            (ConditionKind::MembersDiffer, differ),
            (ConditionKind::NoPrimary, none),
            (ConditionKind::PrimaryUnknown, unknown),
            (ConditionKind::SeveralPrimaries, several),
            (ConditionKind::UpstreamNotPrimary, self.chained_replicas()),
            (ConditionKind::ProbeMissing, of(self.missing, &self.some_missing, "no probe of this name")),
        ];
        all.into_iter().filter_map(|(kind, reason)| Some((kind, reason?))).collect()
    }

    /// The shards without a primary, those of which none is known, and those with several.
    fn shards_without_one(&self) -> [Option<String>; 3] {
        let (mut none, mut unknown, mut several) = (Vec::new(), Vec::new(), Vec::new());
        for (name, shard) in &self.shards {
            match (shard.primaries.len(), shard.unknown + shard.unheard) {
                (0, 0) => none.push(format!("shard {name} has no primary{}", without_role(shard))),
                (0, _) => unknown.push(unknown_primary(name, shard)),
                (1, _) => {}
                (count, _) => {
                    let nodes = shard.primaries.iter().map(NodeName::as_str);
                    several.push(format!(
                        "shard {name} has {count} primaries: {}",
                        named_of(nodes, count as u64)
                    ));
                }
            }
        }
        [none, unknown, several].map(|each| {
            let texts = each.iter().map(String::as_str);
            (!each.is_empty()).then(|| named_of(texts, each.len() as u64))
        })
    }

    /// The replicas of replicas.
    fn chained_replicas(&self) -> Option<String> {
        let of = |(name, shard): (&String, &ShardSummary)| {
            let shard_name = if self.shards.len() > 1 { format!("shard {name}: ") } else { String::new() };
            let primary = shard.primaries.first().map(ToString::to_string).unwrap_or_default();
            let each = shard.chained.iter().map(move |(node, upstream)| {
                format!("{shard_name}{node} replicates from {upstream}, a replica of the primary {primary}")
            });
            each.collect::<Vec<_>>()
        };
        let each: Vec<String> = self.shards.iter().flat_map(of).collect();
        (!each.is_empty()).then(|| named_of(each.iter().map(String::as_str), each.len() as u64))
    }

    /// What a person should know about these stores besides who is down, in one line each.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let is_shown_anyway = |kind| matches!(kind, ConditionKind::StoreDown | ConditionKind::StoreUnknown);
        self.conditions()
            .into_iter()
            .filter(|(kind, _)| !is_shown_anyway(*kind))
            .map(|(_, reason)| reason)
            .collect()
    }
}

fn unknown_primary(name: &str, shard: &ShardSummary) -> String {
    let last = shard.last_primaries.iter().map(NodeName::as_str);
    let last = match shard.last_primaries.len() {
        0 => String::new(),
        count => format!("; it was last {}", named_of(last, count as u64)),
    };
    format!("no primary of shard {name} is known{last}{}", without_role(shard))
}

/// The members whose store is up and has no role, as an etcd that has no leader.
fn without_role(shard: &ShardSummary) -> String {
    if shard.vacant == 0 {
        return String::new();
    }
    let named = named_of(shard.some_vacant.iter().map(NodeName::as_str), shard.vacant);
    format!("; up without a role: {named}")
}

/// Values with the number of stores that have each, and the members of those that are not the most frequent one.
fn counted(each: &BTreeMap<String, u64>, some: &BTreeMap<String, Vec<NodeName>>) -> String {
    let most = most_frequent(each.values().copied());
    let mut left = NAMED;
    let texts: Vec<String> = each
        .iter()
        .map(|(value, count)| {
            let nodes = some.get(value).filter(|_| Some(*count) != most);
            match nodes.and_then(|nodes| named_within(nodes, *count, &mut left)) {
                Some(named) => format!("{value} ({count}: {named})"),
                None => format!("{value} ({count})"),
            }
        })
        .collect();
    named_of(texts.iter().map(String::as_str), texts.len() as u64)
}

/// Views that differ, by the members that have them; of the most frequent one their number is enough.
fn views(views: &[(u64, Vec<NodeName>)]) -> String {
    let most = most_frequent(views.iter().map(|(count, _)| *count));
    let mut left = NAMED;
    let texts: Vec<String> = views
        .iter()
        .take(NAMED)
        .map(|(count, nodes)| {
            let named = (Some(*count) != most).then(|| named_within(nodes, *count, &mut left)).flatten();
            named.unwrap_or_else(|| Plural(*count, "store").to_string())
        })
        .collect();
    let more = views.len().saturating_sub(texts.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    texts.join(" unlike ") + &more
}

/// The largest number, if there is only one such.
fn most_frequent(counts: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    let most = counts.clone().max()?;
    (counts.filter(|count| *count == most).count() == 1).then_some(most)
}

/// The first of the members, of which so many are `left` to be named, and how many more there are.
fn named_within(nodes: &[NodeName], count: u64, left: &mut usize) -> Option<String> {
    let named = nodes.len().min(*left);
    *left -= named;
    let nodes = nodes.iter().take(named).map(NodeName::as_str);
    (named > 0).then(|| named_of(nodes, count))
}

/// The first of `count` names, and how many more there are.
fn named_of<'a>(names: impl Iterator<Item = &'a str>, count: u64) -> String {
    let named: Vec<&str> = names.take(NAMED).collect();
    let more = count.saturating_sub(named.len() as u64);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ").to_string() + &rest
}
