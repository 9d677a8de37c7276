use alloc::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::cluster::{Cluster, manager_of};
use crate::records::key::AnyRecord;
use crate::records::node::Node;
use crate::records::probes::{DataStore, NodeProbes, Shard, ShardRole, StoreFacts, StoreState};
use crate::words::counter::{ClusterNumber, ClusterRevision, Revision};
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::words::time::Span;
use crate::world::World;

fn at(second: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(second))
}

fn namespace() -> Namespace {
    "default".parse().unwrap()
}

fn annotation() -> Annotation {
    Annotation::of("kim".parse().unwrap(), at(0))
}

/// A namespace in which the clusters that were touched are decided on after each change.
struct Play {
    world: World,
    viewed: Revision,
    second: u64,
}

impl Play {
    fn new() -> Self {
        let mut play = Self { world: World::default(), viewed: Revision::ZERO, second: 0 };
        play.cluster("db", "role = db", ClusterMode::Active);
        play
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    fn write(&mut self, write: Write) {
        let revision = self.world.revision.next();
        write.apply_to(&mut self.world, &namespace(), revision);
    }

    fn put(&mut self, record: Record) {
        self.write(Write::put(AnyRecord::from(record)));
    }

    fn cluster(&mut self, name: &str, filter: &str, mode: ClusterMode) {
        self.put(Record::Cluster(Cluster {
            name: name.parse().unwrap(),
            manager: manager_of(&name.parse().unwrap()).unwrap(),
            number: ClusterNumber::new(1),
            revision: ClusterRevision::new(1),
            filter: filter.parse().unwrap(),
            discovery: None,
            leaders: 0,
            prefer: None,
            grace: Span::from_secs(60),
            profile: name.parse().unwrap(),
            workflow: None,
            mode,
            labels: Labels::default(),
            annotation: annotation(),
        }));
    }

    fn node(&mut self, name: &str, role: &str) {
        let mut labels = Labels::default();
        labels.set(format!("role={role}").parse().unwrap()).unwrap();
        self.put(Record::Node(Node {
            name: name.parse().unwrap(),
            labels,
            joined_at: at(0),
            key_fingerprint: String::new(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon: None,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: Vec::new(),
        }));
    }

    fn store(&mut self, node: &str, state: StoreState, role: ShardRole, version: &str) {
        let shard = Shard { role, history: None, offset: None, lag: None, upstream: None, streaming: None };
        let facts = StoreFacts {
            software: "redis".into(),
            version: Some(version.into()),
            shards: BTreeMap::from([("0".into(), shard)]),
            ..StoreFacts::default()
        };
        let store = DataStore { state, since: at(0), reason: String::new(), facts };
        let stores = BTreeMap::from([("db".parse().unwrap(), store)]);
        let (node, received_at) = (node.parse().unwrap(), at(self.second));
        self.put(Record::Probes(NodeProbes { node, received_at, sequence: 0, stores }));
    }

    /// Decides on what was touched, as the leader does; what was told, in order.
    fn decide(&mut self) -> Vec<String> {
        self.second += 1;
        let due: BTreeSet<ClusterName> = self.fleet().touched_views.after(self.viewed).cloned().collect();
        self.viewed = self.world.revision;
        let mut told = Vec::new();
        for name in due {
            for changeset in decide(self.fleet(), &name, at(self.second)).changesets {
                told.extend(changeset.events.iter().map(line));
                changeset.writes.into_iter().for_each(|write| self.write(write));
            }
        }
        told
    }
}

fn line(event: &EventDraft) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    format!("{} {} > {}: {}", event.kind, part(&event.before), part(&event.after), event.cause)
}

#[test]
fn what_begins_and_ends_in_a_failover_is_told_once_in_order() {
    let mut play = Play::new();
    for node in ["db-1", "db-2", "db-3"] {
        play.node(node, "db");
        let role = if node == "db-1" { ShardRole::Primary } else { ShardRole::Replica };
        play.store(node, StoreState::Up, role, "7.0");
    }
    assert_eq!(play.decide(), ["cluster.primary_changed - > db-1: db, shard 0"]);
    assert_eq!(play.decide(), [""; 0], "a second pass writes nothing");
    play.store("db-1", StoreState::Down, ShardRole::Primary, "7.0");
    assert_eq!(
        play.decide(),
        [
            "cluster.condition_raised - > store_down: db: down on db-1",
            "cluster.condition_raised - > no_primary: db: shard 0 has no primary",
        ]
    );
    play.store("db-2", StoreState::Up, ShardRole::Primary, "7.0");
    assert_eq!(
        play.decide(),
        [
            "cluster.primary_changed db-1 > db-2: db, shard 0",
            "cluster.condition_cleared no_primary > -: db: shard 0 has no primary",
        ]
    );
    play.store("db-1", StoreState::Up, ShardRole::Primary, "7.2");
    assert_eq!(
        play.decide(),
        [
            "cluster.condition_cleared store_down > -: db: down on db-1",
            "cluster.condition_raised - > several_primaries: db: shard 0 has 2 primaries: db-1, db-2",
            "cluster.condition_raised - > mixed_versions: db: versions are mixed: redis 7.0 (2), redis 7.2 (1: db-1)",
        ]
    );
    let view = play.fleet().cluster_views.get(&"db".parse().unwrap()).unwrap().value.clone();
    assert_eq!((view.number, view.primaries.len()), (4, 1), "a conflict is no change of the primary");
}

#[test]
fn an_unknown_store_may_be_the_primary() {
    let mut play = Play::new();
    play.node("db-1", "db");
    play.node("db-2", "db");
    play.store("db-1", StoreState::Up, ShardRole::Primary, "7.0");
    play.store("db-2", StoreState::Up, ShardRole::Replica, "7.0");
    play.decide();
    play.store("db-1", StoreState::Unknown, ShardRole::Primary, "7.0");
    assert_eq!(
        play.decide(),
        [
            "cluster.condition_raised - > store_unknown: db: unknown on db-1",
            "cluster.condition_raised - > primary_unknown: db: no primary of shard 0 is known; it was last db-1",
        ]
    );
}

#[test]
fn a_disabled_cluster_is_left_alone_and_a_deleted_one_forgotten() {
    let mut play = Play::new();
    play.node("db-1", "db");
    play.store("db-1", StoreState::Up, ShardRole::Primary, "7.0");
    play.decide();
    play.cluster("db", "role = db", ClusterMode::Disabled);
    play.store("db-1", StoreState::Down, ShardRole::Primary, "7.0");
    assert_eq!(play.decide(), [""; 0]);
    play.cluster("db", "role = db", ClusterMode::Observe);
    assert_eq!(play.decide().len(), 2, "what happened meanwhile is seen now");
    play.write(Write::delete(Key::Cluster("db".parse().unwrap())));
    assert_eq!(play.decide(), [""; 0]);
    assert_eq!(play.fleet().cluster_views.size(), 0);
    assert_eq!(play.fleet().touched_views.get(&"db".parse().unwrap()), None);
}

#[derive(Debug, Clone)]
enum Act {
    Node(u8, bool),
    Store(u8, u8, u8, u8),
    NoStore(u8),
    Cluster(u8),
    NoCluster,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0..4_u8, any::<bool>()).prop_map(|(node, is)| Act::Node(node, is)),
        6 => (0..4_u8, 0..3_u8, 0..3_u8, 0..2_u8).prop_map(|(node, a, b, c)| Act::Store(node, a, b, c)),
        1 => (0..4_u8).prop_map(Act::NoStore),
        1 => (0..4_u8).prop_map(Act::Cluster),
        1 => Just(Act::NoCluster),
    ]
}

impl Play {
    fn act(&mut self, act: &Act) {
        let name = |node: u8| format!("db-{node}");
        match act {
            Act::Node(node, is) => self.node(&name(*node), if *is { "db" } else { "web" }),
            Act::Store(node, state, role, version) => {
                let state = [StoreState::Up, StoreState::Down, StoreState::Unknown][usize::from(*state)];
                let role = [ShardRole::Primary, ShardRole::Replica, ShardRole::Vacant][usize::from(*role)];
                self.store(&name(*node), state, role, ["7.0", "7.2"][usize::from(*version)]);
            }
            Act::NoStore(node) => self.write(Write::delete(Key::Probes(name(*node).parse().unwrap()))),
            Act::Cluster(mode) => {
                let modes = [ClusterMode::Active, ClusterMode::Observe, ClusterMode::Disabled];
                let filter = if *mode == 3 { "role = web" } else { "role = db" };
                self.cluster("db", filter, modes[usize::from(*mode) % 3]);
            }
            Act::NoCluster => self.write(Write::delete(Key::Cluster("db".parse().unwrap()))),
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_overlooked_and_every_condition_is_raised_and_cleared_in_turn(
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut play = Play::new();
        let mut raised = BTreeSet::new();
        for act in &acts {
            play.act(act);
            let gone = !play.fleet().clusters.contains_key(&"db".parse().unwrap());
            for told in play.decide() {
                let words: Vec<&str> = told.split(' ').collect();
                match words[0] {
                    "cluster.condition_raised" => prop_assert!(raised.insert(words[3].trim_end_matches(':').to_string()), "{told}"),
                    "cluster.condition_cleared" => prop_assert!(raised.remove(words[1]), "{told}"),
                    _ => {}
                }
            }
            if gone {
                raised.clear();
            }
            let again = decide(play.fleet(), &"db".parse().unwrap(), at(play.second));
            prop_assert!(again.changesets.is_empty(), "after {act:?}");
        }
    }
}
