//! What must hold of data stores, of the views of their clusters, and of the reactions to them.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::decide::views;
use bellwether_core::records::cluster_view::ClusterView;
use bellwether_core::records::event::Event;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::probes::{NodeProbes, StoreState};
use bellwether_core::records::reaction::{ConditionSubject, FiringResult, Reaction, ReactionFiring};
use bellwether_core::words::name::{ClusterName, NodeName, ReactionName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use crate::stores::{PROBE, TrueStores};
use crate::trace::Trace;

/// An episode of a condition, to which a reaction fires once.
type Episode = (ReactionName, String, ConditionSubject, Timestamp);

/// Whether the laws of data stores are about this record.
pub(crate) const fn is_of_stores(record: &Record) -> bool {
    matches!(record, Record::Probes(_) | Record::ClusterView(_) | Record::Reaction(_))
}

/// Checks every commit for what it says of data stores.
#[derive(Debug)]
pub(crate) struct ViewLaws {
    trace: Trace,
    stores: TrueStores,
    /// The states as events tell them.
    states: BTreeMap<String, String>,
    /// How often each store went from up to down, as events tell it.
    deaths: BTreeMap<NodeName, u64>,
    /// How far each store was when it was recorded as up last.
    steps: BTreeMap<NodeName, u64>,
    /// The true conditions of clusters as events tell them.
    conditions: BTreeMap<String, BTreeSet<String>>,
    numbers: BTreeMap<ClusterName, u64>,
    /// Clusters whose views are deleted by the commit that is looked at.
    deleted: Vec<ClusterName>,
    fired: BTreeMap<Episode, String>,
}

impl ViewLaws {
    /// No commit seen yet.
    pub(crate) fn new(trace: &Trace, stores: &TrueStores) -> Self {
        Self {
            trace: trace.clone(),
            stores: stores.clone(),
            states: BTreeMap::new(),
            deaths: BTreeMap::new(),
            steps: BTreeMap::new(),
            conditions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            deleted: Vec::new(),
            fired: BTreeMap::new(),
        }
    }

    /// Every event begins where the one before it about the same thing ended.
    pub(crate) fn event(&mut self, event: &Event) {
        match event.kind.as_str() {
            "store.up" | "store.down" | "store.unknown" => self.state(event),
            "cluster.condition_raised" | "cluster.condition_cleared" => self.condition(event),
            _ => {}
        }
    }

    fn state(&mut self, event: &Event) {
        let (before, after) = (event.before.clone(), event.after.clone().unwrap_or_default());
        let known = self.states.insert(event.subject.clone(), after.clone());
        if known != before || known.as_ref() == Some(&after) {
            let subject = &event.subject;
            self.trace.breaks(&format!("{subject} went from {before:?} to {after}, and was {known:?}"));
        }
        let node = event.subject.split('/').nth(1).and_then(|node| node.parse::<NodeName>().ok());
        let Some(node) = node.filter(|_| before.as_deref() == Some("up") && after == "down") else { return };
        let told = self.deaths.entry(node.clone()).or_default();
        *told += 1;
        if *told > self.stores.deaths(&node) {
            self.trace.breaks(&format!("the store of {node} is said to be down and never was"));
        }
    }

    fn condition(&mut self, event: &Event) {
        let known = self.conditions.entry(event.subject.clone()).or_default();
        let is_news = match (&event.before, &event.after) {
            (None, Some(raised)) => known.insert(raised.clone()),
            (Some(cleared), None) => known.remove(cleared),
            _ => false,
        };
        if !is_news {
            self.trace.breaks(&format!("{} of {} is no news: {known:?}", event.kind, event.subject));
        }
    }

    /// Checks one written record, after the events that were committed with it.
    pub(crate) fn record(&mut self, record: &Record) {
        if let Record::Probes(probes) = record {
            self.probes(probes);
        }
        if let Record::ClusterView(view) = record {
            self.view(view);
        }
        if let Record::Reaction(reaction) = record {
            self.reaction(reaction);
        }
    }

    /// What is deleted begins anew when it is made again, after what was committed with it.
    pub(crate) fn forget(&mut self, key: &Key) {
        if let Key::ClusterView(cluster) = key {
            self.deleted.push(cluster.clone());
        }
    }

    /// The commit is looked at.
    pub(crate) fn end_commit(&mut self) {
        for cluster in self.deleted.drain(..) {
            self.numbers.remove(&cluster);
            self.conditions.remove(&format!("cluster/{cluster}"));
        }
    }

    /// An older report never replaces a newer one.
    fn probes(&mut self, probes: &NodeProbes) {
        let up = probes.stores.values().filter(|store| store.state == StoreState::Up);
        let steps = up.filter_map(|store| Some(store.facts.shards.get("0")?.offset.as_ref()?.amount));
        for step in steps {
            let last = self.steps.entry(probes.node.clone()).or_default();
            if step < *last {
                let node = &probes.node;
                self.trace.breaks(&format!("the store of {node} is as it was at {step}, after {last}"));
            }
            *last = (*last).max(step);
        }
    }

    /// One change of a view follows the other, and its conditions are those that events told.
    fn view(&mut self, view: &ClusterView) {
        let before = self.numbers.insert(view.cluster.clone(), view.number).unwrap_or_default();
        if view.number != before + 1 {
            self.trace.breaks(&format!("view {} of {} follows {before}", view.number, view.cluster));
        }
        let recorded: BTreeSet<String> =
            view.conditions.keys().map(|id| id.kind.as_str().to_owned()).collect();
        let told = self.conditions.get(&format!("cluster/{}", view.cluster)).cloned().unwrap_or_default();
        if recorded != told {
            self.trace.breaks(&format!("{} has {recorded:?}, and events told {told:?}", view.cluster));
        }
    }

    fn reaction(&mut self, reaction: &Reaction) {
        let started = reaction.firings.iter().filter(|firing| firing.result == FiringResult::Started);
        started.for_each(|firing| self.fired(&reaction.name, firing));
    }

    /// Of one episode there is one run.
    fn fired(&mut self, reaction: &ReactionName, firing: &ReactionFiring) {
        let (condition, run) = (&firing.condition, &firing.text);
        let episode = (reaction.clone(), condition.clone(), firing.subject.clone(), firing.since);
        if let Some(other) = self.fired.insert(episode, run.clone()).filter(|other| other != run) {
            self.trace.breaks(&format!("{reaction} started {other} and {run} for one {condition}"));
        }
    }
}

/// What is recorded of data stores and is not so; empty when all is. A view that is decided once more is not written.
pub(crate) fn restless(fleet: &Fleet, stores: &TrueStores) -> String {
    for (node, kept) in &fleet.probes {
        let recorded = kept.value.stores.iter().find(|(probe, _)| probe.as_str() == PROBE);
        let recorded = recorded.map(|(_, store)| (store.state, store.facts.version.clone()));
        let is = stores.probe(node, None).map(|store| (store.state, store.facts.version));
        let is_known = match (&recorded, &is) {
            (Some((StoreState::Down, _)), Some((state, _))) => *state == StoreState::Down,
            (recorded, is) => recorded == is,
        };
        if !is_known {
            return format!("the store of {node} is recorded as {recorded:?} and is {is:?}");
        }
    }
    let now = Timestamp::from_millis(u64::MAX / 2);
    let open = fleet.clusters.keys().find(|name| !views::decide(fleet, name, now).changesets.is_empty());
    open.map_or_else(String::new, |name| format!("the view of {name} is not decided"))
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::cluster_view::{ClusterCondition, ConditionId, ConditionKind};

    use super::*;

    /// What is broken after these events and records of one commit each.
    fn broken(play: impl FnOnce(&mut ViewLaws, &TrueStores)) -> Vec<String> {
        let (trace, stores) = (Trace::default(), TrueStores::new(&["web-1".to_owned()]));
        play(&mut ViewLaws::new(&trace, &stores), &stores);
        trace.broken()
    }

    fn told(kind: &str, subject: &str, before: Option<&str>, after: Option<&str>) -> Event {
        Event {
            sequence: bellwether_core::words::counter::Sequence::new(1),
            time: Timestamp::EPOCH,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            cause: String::new(),
            actor: "test".parse().unwrap(),
            caused_by: None,
        }
    }

    #[test]
    fn a_store_that_never_died_is_not_down_and_states_follow_each_other() {
        let subject = "store/web-1/db";
        let down = told("store.down", subject, Some("up"), Some("down"));
        let up = told("store.up", subject, None, Some("up"));
        assert_eq!(broken(|laws, _| laws.event(&up)), Vec::<String>::new());
        let twice = broken(|laws, _| [&up, &up].into_iter().for_each(|event| laws.event(event)));
        assert_eq!(twice.len(), 1, "{twice:?}");
        let never = broken(|laws, _| [up, down].iter().for_each(|event| laws.event(event)));
        assert_eq!(never, ["the store of web-1 is said to be down and never was"]);
    }

    #[test]
    fn a_view_has_the_conditions_that_were_told_and_follows_the_one_before() {
        let cluster: ClusterName = "stores".parse().unwrap();
        let id = ConditionId { probe: PROBE.parse().unwrap(), kind: ConditionKind::NoPrimary };
        let condition = ClusterCondition { since: Timestamp::EPOCH, reason: "none".to_owned() };
        let view = |number| ClusterView {
            cluster: cluster.clone(),
            number,
            changed_at: Timestamp::EPOCH,
            conditions: BTreeMap::from([(id.clone(), condition.clone())]),
            primaries: BTreeMap::new(),
        };
        let raised = told("cluster.condition_raised", "cluster/stores", None, Some("no_primary"));
        let first = Record::ClusterView(view(1));
        let sound = broken(|laws, _| {
            laws.event(&raised);
            laws.record(&first);
        });
        assert!(sound.is_empty(), "{sound:?}");
        assert_eq!(broken(|laws, _| laws.record(&first)).len(), 1, "nobody told the condition");
        let twice = broken(|laws, _| {
            [&raised, &raised].into_iter().for_each(|event| laws.event(event));
            laws.record(&first);
            laws.record(&first);
        });
        assert_eq!(twice.len(), 2, "told twice and written twice: {twice:?}");
    }

    #[test]
    fn an_older_report_does_not_replace_a_newer_one() {
        let node: NodeName = "web-1".parse().unwrap();
        let report = |stores: &TrueStores| {
            let store = stores.probe(&node, None).unwrap();
            let stores = BTreeMap::from([(PROBE.parse().unwrap(), store)]);
            let received_at = Timestamp::EPOCH;
            Record::Probes(NodeProbes { node: node.clone(), received_at, sequence: 1, stores })
        };
        let back = broken(|laws, stores| {
            let old = report(stores);
            let mut chance = bellwether_core::words::random::RandomStream::for_one(1, "stores", 0);
            while stores.probe(&node, None).is_none_or(|store| store.state != StoreState::Up)
                || report(stores) == old
            {
                stores.upset(&mut chance);
            }
            laws.record(&report(stores));
            laws.record(&old);
        });
        assert_eq!(back.len(), 1, "{back:?}");
    }

    #[test]
    fn one_episode_has_one_run() {
        let firing = |since, run: &str| ReactionFiring {
            condition: "no_primary".to_owned(),
            subject: ConditionSubject::Cluster("stores".parse().unwrap(), PROBE.parse().unwrap()),
            since: Timestamp::from_millis(since),
            at: Timestamp::from_millis(9),
            result: FiringResult::Started,
            text: run.to_owned(),
        };
        let name: ReactionName = "mend-all".parse().unwrap();
        let all = |firings: &[ReactionFiring]| {
            broken(|laws, _| firings.iter().for_each(|firing| laws.fired(&name, firing)))
        };
        assert!(all(&[firing(1, "mend-1"), firing(1, "mend-1"), firing(2, "mend-2")]).is_empty());
        assert_eq!(all(&[firing(1, "mend-1"), firing(1, "mend-2")]).len(), 1);
    }
}
