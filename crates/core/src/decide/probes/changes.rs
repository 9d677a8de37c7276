//! Events of data stores: what differs between two states of a node's stores. Offsets and lags are not list.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::probes::{DataStore, Shard, StoreFacts, StoreMember, StoreState};
use crate::words::name::{NodeName, ProbeName};

/// Cause of what the node's agent reported.
const REPORTED: &str = "reported by the node";

/// The events between two states of a node's data stores, in the order of the probes.
pub(super) fn events(
    node: &NodeName,
    before: &BTreeMap<ProbeName, DataStore>,
    after: &BTreeMap<ProbeName, DataStore>,
) -> Vec<EventDraft> {
    let mut list = StoreEvents { subject: String::new(), events: Vec::new() };
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        list.subject = subject(node, name);
        list.event(
            "store.removed",
            before.get(name).map(state),
            None,
            "its probe was removed from the agent's configuration",
        );
    }
    for (name, store) in after {
        list.subject = subject(node, name);
        list.store(before.get(name), store);
    }
    list.events
}

fn subject(node: &NodeName, probe: &ProbeName) -> String {
    format!("store/{node}/{probe}")
}

fn state(store: &DataStore) -> String {
    store.state.as_str().to_string()
}

struct StoreEvents {
    subject: String,
    events: Vec<EventDraft>,
}

impl StoreEvents {
    fn event(&mut self, kind: &'static str, before: Option<String>, after: Option<String>, cause: &str) {
        let subject = self.subject.clone();
        self.events.push(EventDraft { kind, subject, before, after, cause: cause.to_string() });
    }

    fn differs(&mut self, kind: &'static str, before: Option<String>, after: Option<String>) {
        if before != after {
            self.event(kind, before, after, REPORTED);
        }
    }

    fn store(&mut self, before: Option<&DataStore>, after: &DataStore) {
        if before.is_none_or(|before| before.state != after.state) {
            let kind = match after.state {
                StoreState::Up => "store.up",
                StoreState::Down => "store.down",
                StoreState::Unknown => "store.unknown",
            };
            let cause = if after.reason.is_empty() { REPORTED } else { &after.reason };
            self.event(kind, before.map(state), Some(state(after)), cause);
        }
        let none = StoreFacts::default();
        let facts = before.map_or(&none, |before| &before.facts);
        self.facts(facts, &after.facts);
    }

    fn facts(&mut self, before: &StoreFacts, after: &StoreFacts) {
        let software = StoreFacts::software_and_version;
        self.differs("store.version_changed", software(before), software(after));
        self.differs("store.cluster_id_changed", before.cluster_id.clone(), after.cluster_id.clone());
        self.differs("store.member_id_changed", before.member_id.clone(), after.member_id.clone());
        for (shard, part) in &before.shards {
            if !after.shards.contains_key(shard) {
                self.event("shard.removed", Some(role(shard, part)), None, REPORTED);
            }
        }
        for (shard, part) in &after.shards {
            self.shard(shard, before.shards.get(shard), part);
        }
        self.differs(
            "store.members_changed",
            before.members.as_ref().map(members),
            after.members.as_ref().map(members),
        );
    }

    fn shard(&mut self, shard: &str, before: Option<&Shard>, after: &Shard) {
        let Some(before) = before else {
            return self.event("shard.added", None, Some(role(shard, after)), REPORTED);
        };
        self.differs("shard.role_changed", Some(role(shard, before)), Some(role(shard, after)));
        self.differs("shard.replication_changed", replication(shard, before), replication(shard, after));
    }
}

fn role(shard: &str, part: &Shard) -> String {
    format!("shard={shard} role={}", part.role.as_str())
}

/// What a store replicates from; `None` if it does not replicate.
fn replication(shard: &str, part: &Shard) -> Option<String> {
    part.replicates().map(|from| format!("shard={shard} from={from}"))
}

/// The members in a store's own view, without whether they are connected: that is an opinion about another node.
fn members(members: &BTreeMap<String, StoreMember>) -> String {
    let one = |(id, member): (&String, &StoreMember)| {
        let name = member.name.as_deref().or(member.address.as_deref()).unwrap_or(id);
        if member.votes { name.to_string() } else { format!("{name}(learner)") }
    };
    let all: Vec<String> = members.iter().map(one).collect();
    if all.is_empty() { "none".to_string() } else { all.join(",") }
}
