//! Decides on the data stores of a cluster together: compares what its members' own agents report with what was decided last, and
//! tells what began, what ended and which primary is another.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::cluster::ClusterMode;
use crate::records::cluster_view::{ClusterCondition, ClusterView, ConditionId, MAX_PRIMARIES};
use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{ClusterName, NodeName, ProbeName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;
use crate::world::store_view::StoreSummary;

/// The view of a cluster as it is to be. One in which nothing changed is not written.
///
/// Woken by: clusters, their members and the data stores of these.
#[must_use]
pub fn decide(fleet: &Fleet, name: &ClusterName, now: Timestamp) -> Verdict {
    let changesets = view(fleet, name, now).into_iter().collect();
    Verdict { changesets, wake: None }
}

fn view(fleet: &Fleet, name: &ClusterName, now: Timestamp) -> Option<Changeset> {
    let before = fleet.cluster_views.get(name).map(|kept| &*kept.value);
    let key = Key::ClusterView(name.clone());
    let Some(cluster) = fleet.clusters.get(name).map(|kept| &*kept.value) else {
        return before.map(|_| Changeset { writes: vec![Write::delete(key)], events: Vec::new() });
    };
    if cluster.mode == ClusterMode::Disabled {
        return None;
    }
    let stores = fleet.store_view(name, |_| true);
    if before.is_none() && stores.is_empty() {
        return None;
    }
    let none = ClusterView {
        cluster: name.clone(),
        number: 0,
        changed_at: now,
        conditions: BTreeMap::new(),
        primaries: BTreeMap::new(),
    };
    let before = before.unwrap_or(&none);
    let conditions = conditions(&stores, before, now);
    let primaries = primaries(&stores, before);
    let is_same = conditions == before.conditions && primaries == before.primaries;
    if is_same && before.number > 0 {
        return None;
    }
    let cluster = name.clone();
    let view = ClusterView { cluster, number: before.number + 1, changed_at: now, conditions, primaries };
    let events = events(before, &view);
    if stores.is_empty() {
        return Some(Changeset { writes: vec![Write::delete(key)], events });
    }
    Some(Changeset { writes: vec![Write::put(Record::ClusterView(view))], events })
}

/// The conditions that are true; each has begun when it was seen first.
fn conditions(
    stores: &BTreeMap<ProbeName, StoreSummary>,
    before: &ClusterView,
    now: Timestamp,
) -> BTreeMap<ConditionId, ClusterCondition> {
    let of = |(probe, summary): (&ProbeName, &StoreSummary)| {
        let probe = probe.clone();
        summary.conditions().into_iter().map(move |(kind, reason)| {
            let id = ConditionId { probe: probe.clone(), kind };
            let since = before.conditions.get(&id).map_or(now, |before| before.since);
            (id, ClusterCondition { since, reason })
        })
    };
    stores.iter().flat_map(of).collect()
}

/// The primaries: of a shard that has none or several just now, the one that it had last.
fn primaries(
    stores: &BTreeMap<ProbeName, StoreSummary>,
    before: &ClusterView,
) -> BTreeMap<(ProbeName, String), NodeName> {
    let shards = stores.iter().flat_map(|(probe, summary)| {
        summary.shards.iter().map(move |(shard, of)| ((probe.clone(), shard.clone()), of))
    });
    let primary = |(id, shard): ((ProbeName, String), &crate::world::store_view::ShardSummary)| {
        let only = shard.primaries.first().filter(|_| shard.primaries.len() == 1);
        let primary = only.or_else(|| before.primaries.get(&id))?.clone();
        Some((id, primary))
    };
    shards.filter_map(primary).take(MAX_PRIMARIES).collect()
}

fn events(before: &ClusterView, after: &ClusterView) -> Vec<EventDraft> {
    let subject = format!("cluster/{}", after.cluster);
    let event = |kind, states: (Option<String>, Option<String>), cause: String| {
        let (before, after) = states;
        EventDraft { kind, subject: subject.clone(), before, after, cause }
    };
    let mut events = Vec::new();
    for ((probe, shard), primary) in &after.primaries {
        let former = before.primaries.get(&(probe.clone(), shard.clone()));
        if former != Some(primary) {
            let states = (former.map(ToString::to_string), Some(primary.to_string()));
            events.push(event("cluster.primary_changed", states, format!("{probe}, shard {shard}")));
        }
    }
    let told = |id: &ConditionId, of: &ClusterCondition| format!("{}: {}", id.probe, of.reason);
    for (id, ended) in &before.conditions {
        if !after.conditions.contains_key(id) {
            let states = (Some(id.kind.as_str().to_string()), None);
            events.push(event("cluster.condition_cleared", states, told(id, ended)));
        }
    }
    for (id, began) in &after.conditions {
        if !before.conditions.contains_key(id) {
            let states = (None, Some(id.kind.as_str().to_string()));
            events.push(event("cluster.condition_raised", states, told(id, began)));
        }
    }
    events
}

#[cfg(test)]
mod tests;
