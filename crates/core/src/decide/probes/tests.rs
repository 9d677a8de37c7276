use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::records::event::{Event, EventDraft};
use crate::records::key::AnyRecord;
use crate::records::node::{Presence, PresenceState};
use crate::records::probes::{Amount, Shard, ShardRole, StoreFacts, StoreMember};
use crate::words::counter::Revision;
use crate::words::name::Namespace;
use crate::world::World;
use crate::world::past_view::{PastStore, PastView};

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn redis(role: ShardRole, offset: u64) -> DataStore {
    let shard = Shard {
        role,
        history: None,
        offset: Some(Amount { amount: offset, unit: "bytes".into() }),
        lag: None,
        upstream: None,
        streaming: None,
    };
    DataStore {
        state: StoreState::Up,
        since: Timestamp::from_millis(0),
        reason: String::new(),
        facts: StoreFacts {
            software: "redis".into(),
            version: Some("7.0.15".into()),
            shards: BTreeMap::from([("0".into(), shard)]),
            ..StoreFacts::default()
        },
    }
}

fn failing(state: StoreState, reason: &str) -> DataStore {
    let facts = StoreFacts { software: "redis".into(), ..StoreFacts::default() };
    DataStore { state, since: Timestamp::from_millis(0), reason: reason.into(), facts }
}

fn of(stores: impl IntoIterator<Item = (&'static str, DataStore)>) -> NodeProbes {
    let stores = stores.into_iter().map(|(name, store)| (name.parse().unwrap(), store)).collect();
    NodeProbes { node: "db-1".parse().unwrap(), received_at: Timestamp::from_millis(0), sequence: 0, stores }
}

/// The world after reports, each with the kinds of the events it told.
#[derive(Default)]
struct Play {
    world: World,
    revision: u64,
}

impl Play {
    fn namespace() -> Namespace {
        "default".parse().unwrap()
    }

    fn write(&mut self, changeset: Changeset) -> Vec<String> {
        self.revision += 1;
        for write in changeset.writes {
            write.apply_to(&mut self.world, &Self::namespace(), Revision::new(self.revision));
        }
        changeset.events.iter().map(|event| event.kind.to_string()).collect()
    }

    fn report(&mut self, second: u64, probes: NodeProbes) -> Vec<String> {
        let last = self.recorded();
        absorb(last.as_ref(), probes, at(second)).map(|changeset| self.write(changeset)).unwrap_or_default()
    }

    fn recorded(&self) -> Option<NodeProbes> {
        let fleet = self.world.fleets.get(&Self::namespace())?;
        fleet.probes.get(&"db-1".parse().unwrap()).map(|kept| (*kept.value).clone())
    }

    fn presence(&mut self, second: u64, contact: PresenceState) {
        let presence = Presence { contact, since: at(second), server: None };
        let record = AnyRecord::from(Record::Presence("db-1".parse().unwrap(), presence));
        self.write(Changeset { writes: Vec::from([Write::put(record)]), events: Vec::new() });
    }

    fn decide(&mut self) -> Vec<String> {
        let verdict = self.world.fleets.get(&Self::namespace()).map(decide).unwrap_or_default();
        verdict.changesets.into_iter().flat_map(|changeset| self.write(changeset)).collect()
    }

    fn state(&self) -> StoreState {
        self.recorded().unwrap().stores.values().next().unwrap().state
    }
}

#[test]
fn every_change_of_a_store_is_told_once_and_a_repeated_report_is_silent() {
    let mut play = Play::default();
    let first = play.report(1, of([("db", redis(ShardRole::Replica, 1))]));
    assert_eq!(first, ["store.up", "store.version_changed", "shard.added"]);
    assert_eq!(play.report(2, of([("db", redis(ShardRole::Replica, 1))])), [""; 0]);
    assert_eq!(play.report(3, of([("db", redis(ShardRole::Primary, 1))])), ["shard.role_changed"]);
    let down = play.report(4, of([("db", failing(StoreState::Down, "connection refused"))]));
    assert_eq!(down, ["store.down"]);
    let kept = play.recorded().unwrap();
    let store = kept.stores.values().next().unwrap();
    assert_eq!(
        (store.since, store.facts.version.as_deref()),
        (at(4), Some("7.0.15")),
        "what it said last is kept"
    );
    // Another wording of the reason is recorded from time to time, and not told.
    for (second, reason) in [(5, "connection refused"), (34, "loading")] {
        assert_eq!(play.report(second, of([("db", failing(StoreState::Down, "loading"))])), [""; 0]);
        assert_eq!(play.recorded().unwrap().stores.values().next().unwrap().reason, reason);
    }
    assert_eq!(play.report(35, of([("db", redis(ShardRole::Primary, 9))])), ["store.up"]);
    assert_eq!(play.report(36, of([])), ["store.removed"]);
    assert_eq!(play.recorded(), None);
    assert_eq!(play.report(37, of([])), [""; 0]);
}

#[test]
fn the_three_states_of_agent_and_store_have_an_event_for_each_transition() {
    let mut play = Play::default();
    play.report(1, of([("db", redis(ShardRole::Primary, 1))]));
    play.presence(2, PresenceState::Up);
    assert_eq!(play.decide(), [""; 0]);
    // Both up, agent unreachable, both up.
    play.presence(10, PresenceState::Unreachable);
    assert_eq!(play.decide(), ["store.unknown"]);
    assert_eq!(play.decide(), [""; 0], "a second pass writes nothing");
    play.presence(20, PresenceState::Up);
    assert_eq!(play.decide(), [""; 0], "contact with the agent says nothing of the store");
    assert_eq!(play.report(21, of([("db", redis(ShardRole::Primary, 1))])), ["store.up"]);
    // Agent unreachable, store down, agent unreachable.
    play.presence(30, PresenceState::Unreachable);
    play.decide();
    play.presence(40, PresenceState::Up);
    assert_eq!(play.report(41, of([("db", failing(StoreState::Down, "refused"))])), ["store.down"]);
    play.presence(50, PresenceState::Unreachable);
    assert_eq!(play.decide(), ["store.unknown"]);
    // Store down, both up.
    play.presence(60, PresenceState::Up);
    play.report(61, of([("db", failing(StoreState::Down, "refused"))]));
    assert_eq!(play.report(62, of([("db", redis(ShardRole::Primary, 1))])), ["store.up"]);
    assert_eq!(play.report(63, of([("db", failing(StoreState::Down, "refused"))])), ["store.down"]);
}

#[test]
fn a_report_that_arrives_before_the_presence_is_written_is_believed() {
    let mut play = Play::default();
    play.report(1, of([("db", redis(ShardRole::Primary, 1))]));
    play.presence(10, PresenceState::Unreachable);
    play.decide();
    assert_eq!(play.report(11, of([("db", redis(ShardRole::Primary, 1))])), ["store.up"]);
    assert_eq!(play.decide(), [""; 0]);
    assert_eq!(play.state(), StoreState::Up);
}

#[test]
fn offsets_alone_are_written_seldom_and_never_told() {
    let mut play = Play::default();
    play.report(0, of([("db", redis(ShardRole::Primary, 0))]));
    let mut writes = 0;
    for second in 1..=300 {
        let before = play.revision;
        assert_eq!(play.report(second, of([("db", redis(ShardRole::Primary, second))])), [""; 0]);
        writes += play.revision - before;
    }
    assert_eq!(writes, 10);
}

#[test]
fn a_report_that_was_overtaken_is_known_and_one_behind_a_gap_is_written() {
    let mut play = Play::default();
    let numbered = |sequence, role| NodeProbes { sequence, ..of([("db", redis(role, 1))]) };
    play.report(1, numbered(7, ShardRole::Primary));
    let last = play.recorded().unwrap();
    assert!(numbered(6, ShardRole::Replica).is_overtaken(&last));
    assert!(!numbered(7, ShardRole::Replica).is_overtaken(&last) && !of([]).is_overtaken(&last));
    let (before, told) = (play.revision, play.report(2, numbered(8, ShardRole::Primary)));
    assert_eq!((told.len(), play.revision), (0, before), "it says the same");
    assert_eq!(play.report(3, numbered(10, ShardRole::Primary)), [""; 0]);
    assert_eq!(play.recorded().unwrap().sequence, 10, "what is between them is known to be older");
}

#[test]
fn limits_are_named_with_their_place() {
    let mut store = redis(ShardRole::Primary, 1);
    store.facts.cluster_id = Some("x".repeat(257));
    let said = of([("db", store.clone())]).check().unwrap_err().to_string();
    assert_eq!(said, "stores.db.cluster_id: a text has more than 256 bytes");
    store.facts.cluster_id = None;
    let shard = store.facts.shards["0"].clone();
    store.facts.shards = (0..1_025).map(|index| (index.to_string(), shard.clone())).collect();
    let said = of([("db", store)]).check().unwrap_err().to_string();
    assert_eq!(said, "stores.db.shards: there are more than 1024");
}

prop_compose! {
    fn any_store()(
        state in prop_oneof![Just(StoreState::Up), Just(StoreState::Down), Just(StoreState::Unknown)],
        roles in proptest::collection::btree_map("[01]", 0..4_usize, 0..3),
        offset in 0..3_u64,
        members in proptest::option::of(proptest::collection::btree_map("[ab]", any::<bool>(), 0..3)),
    ) -> DataStore {
        let role = |index: usize| {
            [ShardRole::Primary, ShardRole::Replica, ShardRole::Learner, ShardRole::Vacant][index]
        };
        let shard = |index| Shard { role: role(index), ..redis(ShardRole::Primary, offset).facts.shards["0"].clone() };
        let member = |votes| StoreMember { votes, ..StoreMember::default() };
        let members = members.map(|members| members.into_iter().map(|(id, votes)| (id, member(votes))).collect());
        let shards = roles.into_iter().map(|(name, index)| (name, shard(index))).collect();
        let facts = StoreFacts { shards, members, ..redis(ShardRole::Primary, 0).facts };
        let reason = if state == StoreState::Up { String::new() } else { "a reason".to_string() };
        DataStore { state, since: Timestamp::from_millis(0), reason, facts }
    }
}

proptest! {
    /// After each report the record says what the report said, nothing is told twice, and contact that is lost and found again
    /// ends where it began.
    #[test]
    fn the_record_follows_the_reports(
        reports in proptest::collection::vec((any_store(), proptest::option::of(0..2_usize)), 1..20)
    ) {
        let mut play = Play::default();
        for (index, (store, contact)) in reports.into_iter().enumerate() {
            let second = 100 * (index as u64 + 1);
            play.report(second, of([("db", store.clone())]));
            prop_assert_eq!(play.state(), store.state);
            prop_assert!(play.report(second + 1, of([("db", store.clone())])).is_empty());
            if let Some(contact) = contact {
                let contact = [PresenceState::Unreachable, PresenceState::Suspect][contact];
                play.presence(second + 2, contact);
                let told = play.decide();
                let lost = contact == PresenceState::Unreachable && store.state != StoreState::Unknown;
                prop_assert_eq!(told.len(), usize::from(lost));
                prop_assert!(play.decide().is_empty());
            }
        }
    }

    /// The events tell enough to find every state that was.
    #[test]
    fn what_was_is_found_by_undoing_what_was_told(stores in proptest::collection::vec(any_store(), 1..12)) {
        let (cluster, node) = ("shop".parse().unwrap(), "db-1".parse().unwrap());
        let (mut before, mut was, mut told) = (BTreeMap::new(), Vec::new(), Vec::new());
        let view = |stores: &BTreeMap<ProbeName, DataStore>| PastView {
            stores: stores.iter().map(|(probe, store)| ((NodeName::clone(&node), probe.clone()), PastStore::now(store))).collect(),
            ..PastView::default()
        };
        for mut store in stores {
            for shard in store.facts.shards.values_mut().filter(|shard| shard.role == ShardRole::Replica) {
                shard.upstream = Some("db-2:6379".to_string());
                shard.streaming = shard.offset.as_ref().map(|offset| offset.amount > 1);
            }
            let after = BTreeMap::from([("db".parse().unwrap(), store)]);
            was.push(view(&before));
            told.push(changes::events(&node, &before, &after));
            before = after;
        }
        let mut now = view(&before);
        for (was, told) in was.into_iter().zip(told).rev() {
            told.into_iter().rev().for_each(|draft| now.undo(&cluster, &event(draft)));
            // Of a shard that comes or goes only its role is told.
            for (now, was) in now.stores.values_mut().zip(was.stores.values()) {
                prop_assert!(now.replication.iter().all(|(shard, from)| was.replication.get(shard) == Some(from)));
                now.replication.clone_from(&was.replication);
            }
            prop_assert_eq!(&now, &was);
        }
    }
}

fn event(draft: EventDraft) -> Event {
    let EventDraft { kind, subject, before, after, cause } = draft;
    let actor = "bellwether".parse().unwrap();
    let (sequence, time) = (crate::words::counter::Sequence::new(1), at(1));
    Event { sequence, time, actor, kind: kind.to_string(), subject, before, after, cause, caused_by: None }
}

#[test]
fn conditions_are_undone_too_and_a_store_that_was_removed_is_there_again_with_its_state() {
    let cluster = "shop".parse().unwrap();
    let mut view = PastView::default();
    let told = |kind, subject: &str, before: Option<&str>, after: Option<&str>, cause: &str| {
        let part = |text: Option<&str>| text.map(str::to_string);
        event(EventDraft {
            kind,
            subject: subject.into(),
            before: part(before),
            after: part(after),
            cause: cause.into(),
        })
    };
    let reason = "db: shard 0 has no primary";
    view.undo(&cluster, &told("cluster.condition_cleared", "cluster/shop", Some("no_primary"), None, reason));
    assert_eq!(view.conditions[&("db".to_string(), "no_primary".to_string())], "shard 0 has no primary");
    view.undo(&cluster, &told("cluster.condition_raised", "cluster/other", None, Some("no_primary"), reason));
    assert_eq!(view.conditions.len(), 1, "that of another cluster");
    view.undo(&cluster, &told("cluster.condition_raised", "cluster/shop", None, Some("no_primary"), reason));
    assert!(view.conditions.is_empty());
    view.undo(&cluster, &told("store.removed", "store/db-1/db", Some("down"), None, ""));
    let id = ("db-1".parse().unwrap(), "db".parse().unwrap());
    assert_eq!(view.stores[&id].state, "down");
    view.undo(&cluster, &told("store.down", "store/db-1/db", None, Some("down"), ""));
    assert!(view.stores.is_empty());
}
