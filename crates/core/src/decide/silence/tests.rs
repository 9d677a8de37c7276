use alloc::collections::BTreeMap;
use alloc::string::String;

use proptest::prelude::*;

use super::*;
use crate::decide::report::absorb;
use crate::records::node::Node;
use crate::records::status::{Lifetime, Status, StatusState};
use crate::words::counter::Revision;
use crate::words::name::{Category, Namespace, NodeName};
use crate::words::time::Span;
use crate::world::World;

/// A namespace with two nodes, everything that was told of it, and how often what was written.
struct Setup {
    world: World,
    events: Vec<EventDraft>,
    revision: u64,
}

fn ns() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn node(index: usize) -> NodeName {
    NodeName::parse(["db-1", "web-1"][index]).unwrap()
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

impl Setup {
    fn new() -> Self {
        let mut place = Self { world: World::default(), events: Vec::new(), revision: 0 };
        for index in 0..2 {
            let node = Node {
                name: node(index),
                labels: Default::default(),
                joined_at: at(0),
                key_fingerprint: String::new(),
                next_key_fingerprint: None,
                trust: None,
                pause: None,
                cordon: None,
                decommissioned: None,
                rescan: Default::default(),
                logical: None,
                services: alloc::vec![crate::access::NamePattern::Any],
            };
            place.write(Changeset { writes: vec![Write::put(Record::Node(node))], events: vec![] });
        }
        place
    }

    fn write(&mut self, changeset: Changeset) {
        self.revision += 1;
        for write in changeset.writes {
            write.apply_to(&mut self.world, &ns(), Revision::new(self.revision));
        }
        self.events.extend(changeset.events);
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&ns()).unwrap()
    }

    /// A node reports a state, for so long, beside all that it reported before.
    fn says(
        &mut self,
        index: usize,
        (category, state): (&str, StatusState),
        lasts: Option<u64>,
        (now, update): (u64, u64),
    ) {
        let lifetime = lasts.map(|secs| Lifetime { lasts: Span::from_secs(secs), refreshed: at(now) });
        let status = Status { lifetime, update, ..Status::new(state, at(now), String::new()) };
        let last = self.fleet().reports.get(&node(index)).map(|kept| (*kept.value).clone());
        let mut statuses = last.as_ref().map(|last| last.statuses.clone()).unwrap_or_default();
        statuses.values_mut().for_each(|status| status.silent = false);
        statuses.insert(Category::parse(category).unwrap(), status);
        let report = Report {
            node: node(index),
            received_at: at(now),
            agent_version: String::new(),
            generation: Default::default(),
            ledger: None,
            ledger_since: Default::default(),
            sequence: 0,
            entities: BTreeMap::new(),
            features: Default::default(),
            deleted: BTreeMap::new(),
            statuses,
        };
        if let Some(changeset) = absorb(last.as_ref(), report, at(now)) {
            self.write(changeset);
        }
    }

    /// Lets the decider look, and do what it wants.
    fn pass(&mut self, now: u64) -> Option<Timestamp> {
        let verdict = decide(self.fleet(), Timestamp::EPOCH, at(now));
        for changeset in verdict.changesets {
            self.write(changeset);
        }
        verdict.wake
    }

    fn shown(&self, index: usize, category: &str) -> &'static str {
        let kept = self.fleet().reports.get(&node(index)).unwrap();
        kept.value.statuses.get(&Category::parse(category).unwrap()).unwrap().shown()
    }

    /// What was told of a node's category, in order.
    fn story(&self, index: usize, category: &str) -> Vec<(Option<String>, Option<String>)> {
        let subject = alloc::format!("node/{}", node(index));
        let prefix = alloc::format!("{category}=");
        let mine = |text: &Option<String>| {
            text.as_ref().and_then(|text| text.strip_prefix(&prefix)).map(String::from)
        };
        let events =
            self.events.iter().filter(|event| event.subject == subject && mine(&event.after).is_some());
        events.map(|event| (mine(&event.before), mine(&event.after))).collect()
    }
}

#[test]
fn a_status_falls_silent_once_and_a_refresh_brings_it_back() {
    let mut place = Setup::new();
    place.says(0, ("backup", StatusState::Success), Some(600), (10, 1));
    assert_eq!(place.pass(10), Some(at(610)), "it looks again when the time is over");
    assert_eq!(place.shown(0, "backup"), "success");
    place.pass(610);
    place.pass(700);
    assert_eq!(place.shown(0, "backup"), "unknown");
    // The same saying again, with some other news, is no refresh.
    place.says(0, ("backup", StatusState::Success), Some(600), (701, 1));
    assert_eq!(place.shown(0, "backup"), "unknown");
    place.says(0, ("backup", StatusState::Success), Some(600), (702, 2));
    assert_eq!(place.shown(0, "backup"), "success");
    let word = |text: &str| Some(String::from(text));
    let story =
        [(None, word("success")), (word("success"), word("unknown")), (word("unknown"), word("success"))];
    assert_eq!(place.story(0, "backup"), story);
    let cause = &place.events.get(1).unwrap().cause;
    assert_eq!(cause, "not renewed within 10m");
}

#[test]
fn a_status_without_a_lifetime_never_falls_silent() {
    let mut place = Setup::new();
    place.says(0, ("backup", StatusState::Failed), None, (10, 1));
    assert_eq!(place.pass(1_000_000), None);
    assert_eq!(place.shown(0, "backup"), "failed");
}

proptest! {
    #[test]
    fn deciding_again_changes_nothing_and_every_change_is_told_once(
        acts in prop::collection::vec((0_usize..2, 0_usize..2, 0_usize..4, prop::option::of(1_u64..40), 0_u64..30, any::<bool>()), 1..40)
    ) {
        let mut place = Setup::new();
        let mut now = 0;
        for (update, (index, category, state, lasts, pause, look)) in (1_u64..).zip(acts) {
            now += pause;
            let category = ["backup", "scrub"][category];
            place.says(index, (category, StatusState::ALL[state]), lasts, (now, update));
            if look {
                place.pass(now);
                let again = decide(place.fleet(), Timestamp::EPOCH, at(now));
                prop_assert!(again.changesets.is_empty(), "{:?}", again.changesets);
            }
        }
        now += 100;
        place.pass(now);
        prop_assert_eq!(decide(place.fleet(), Timestamp::EPOCH, at(now)), Verdict::default());
        prop_assert!(place.fleet().silences.is_empty());
        for (index, category) in [(0, "backup"), (0, "scrub"), (1, "backup"), (1, "scrub")] {
            let story = place.story(index, category);
            // Each event begins where the one before ended: one state at any time, no change untold, none told twice.
            let mut last = None;
            for (before, after) in story {
                prop_assert_eq!(&before, &last);
                prop_assert_ne!(&before, &after);
                last = after;
            }
            if let Some(last) = last {
                prop_assert_eq!(last.as_str(), place.shown(index, category));
            }
        }
    }
}

#[test]
fn after_an_outage_no_status_falls_silent_before_its_node_could_refresh_it() {
    let state = ("backup", StatusState::Success);
    let mut place = Setup::new();
    place.says(0, state, Some(600), (10, 1));
    place.says(1, state, Some(600), (10, 1));
    // Nobody could refresh it for an hour; from 5,000 s on everybody had the time.
    let early = decide(place.fleet(), at(5_000), at(4_999));
    assert!(early.changesets.is_empty(), "{early:?}");
    assert_eq!(early.wake, Some(at(5_000)));
    place.says(0, state, Some(600), (4_999, 2));
    let verdict = decide(place.fleet(), at(5_000), at(5_000));
    let subjects: Vec<_> = verdict
        .changesets
        .iter()
        .flat_map(|changeset| &changeset.events)
        .map(|event| &*event.subject)
        .collect();
    assert_eq!(subjects, ["node/web-1"], "only who had the time and did not");
}
