use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::key::{Key, LocatedRecord};
use crate::records::node::{Cordon, Node, Presence, PresenceState};
use crate::words::counter::{ClusterNumber, ClusterRevision, FenceNumber};
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::words::node_order::NodeOrder;
use crate::words::selector::Selector;
use crate::words::time::Span;
use crate::world::World;

mod hosts;

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(seconds))
}

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn annotation() -> Annotation {
    Annotation::of("kim".parse().unwrap(), at(0))
}

/// A namespace of nodes and clusters, whose roles are decided after each change.
struct Setup {
    world: World,
    kept: BTreeMap<Key, Record>,
    now: Timestamp,
    settled: Timestamp,
    events: Vec<String>,
    last_fence: BTreeMap<ClusterName, FenceNumber>,
}

impl Setup {
    fn new() -> Self {
        let (now, settled) = (at(1_000), at(0));
        let (kept, last_fence) = (BTreeMap::new(), BTreeMap::new());
        Self { world: World::default(), kept, now, settled, events: Vec::new(), last_fence }
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    fn write(&mut self, write: Write) {
        let revision = self.world.revision.next();
        match &write {
            Write::Put(record) => {
                if let crate::records::key::AnyRecord::Namespaced(record) = &**record {
                    self.kept.insert(record.key(), record.clone());
                }
            }
            Write::Delete(crate::records::key::AnyKey::Namespaced(key)) => drop(self.kept.remove(key)),
            Write::Delete(crate::records::key::AnyKey::Global(_)) => {}
        }
        write.apply_to(&mut self.world, &namespace(), revision);
    }

    fn put(&mut self, record: Record) {
        self.write(Write::put(record));
    }

    fn node(&mut self, name: &str, role: &str, cordoned: bool, decommissioned: bool) {
        let mut labels = Labels::default();
        labels.set(alloc::format!("role={role}").parse().unwrap()).unwrap();
        self.put(Record::Node(Node {
            name: name.parse().unwrap(),
            labels,
            joined_at: at(0),
            key_fingerprint: String::new(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon: cordoned.then(|| Cordon { annotation: annotation(), drain: None }),
            decommissioned: decommissioned.then(annotation),
            rescan: Default::default(),
            logical: None,
            services: vec![crate::access::NamePattern::Any],
        }));
    }

    fn presence(&mut self, name: &str, contact: PresenceState) {
        let presence = Presence { contact, since: self.now, server: None };
        self.put(Record::Presence(name.parse().unwrap(), presence));
    }

    fn cluster(&mut self, name: &str, number: u64, filter: &str, leaders: u32) {
        self.put(Record::Cluster(Cluster {
            name: name.parse().unwrap(),
            manager: crate::records::cluster::manager_of(&name.parse().unwrap()).unwrap(),
            number: ClusterNumber::new(number),
            revision: ClusterRevision::new(1),
            filter: Selector::parse(filter).unwrap(),
            discovery: None,
            leaders,
            prefer: None,
            grace: Span::from_secs(60),
            profile: name.parse().unwrap(),
            workflow: None,
            mode: Default::default(),
            labels: Default::default(),
            annotation: annotation(),
        }));
    }

    /// The manager of a cluster, as `cluster create` makes it.
    fn manager(&mut self, cluster: &str) {
        let cluster: ClusterName = cluster.parse().unwrap();
        let name = crate::records::cluster::manager_of(&cluster).unwrap();
        self.node(name.as_str(), "manager", false, false);
        let node = self.fleet().nodes.get(&name).unwrap().value.clone();
        self.put(Record::Node(Node { logical: Some(cluster), ..(*node).clone() }));
    }

    /// The last report of a node, which offers to host managers or not.
    fn offers(&mut self, name: &str, offers: bool) {
        let features = crate::words::feature::Feature::ALL.into_iter();
        let features =
            features.filter(|feature| offers || *feature != crate::words::feature::Feature::LogicalNodes);
        self.put(Record::Report(crate::records::report::Report {
            node: name.parse().unwrap(),
            received_at: self.now,
            agent_version: "1".into(),
            generation: Default::default(),
            ledger: None,
            ledger_since: Default::default(),
            sequence: 0,
            entities: BTreeMap::new(),
            features: features.collect(),
            deleted: BTreeMap::new(),
            statuses: BTreeMap::new(),
        }));
    }

    fn host(&self, cluster: &str) -> Option<&str> {
        let roles = self.fleet().roles_of(&cluster.parse().unwrap())?;
        roles.host.as_ref().map(|host| host.node.as_str())
    }

    /// Decides until nothing is left to write, and checks what must hold after it.
    fn settle(&mut self) {
        for _ in 0..8 {
            let verdict = decide(self.fleet(), self.settled, self.now);
            if verdict.changesets.is_empty() {
                assert!(verdict.wake.is_none_or(|wake| wake > self.now), "no wake in the past");
                return self.check();
            }
            for changeset in verdict.changesets {
                let line = |event: &EventDraft| {
                    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".into());
                    alloc::format!("{} > {}: {}", name(&event.before), name(&event.after), event.cause)
                };
                self.events.extend(changeset.events.iter().map(line));
                changeset.writes.into_iter().for_each(|write| self.write(write));
            }
        }
        panic!("deciding never ends: {:?}", self.events);
    }

    fn check(&mut self) {
        let fleet = self.world.fleets.get(&namespace()).unwrap();
        for (name, kept) in fleet.cluster_roles.iter() {
            let roles = &kept.value;
            let Some(cluster) = fleet.clusters.get(name).map(|kept| &kept.value) else {
                assert!(roles.is_none(), "roles end with their cluster");
                assert_eq!(self.last_fence.get(name), Some(&roles.fence), "and the number stays");
                continue;
            };
            let nodes: alloc::collections::BTreeSet<_> =
                roles.leaders.values().map(|holder| &holder.node).collect();
            assert_eq!(nodes.len(), roles.leaders.len(), "nobody leads twice");
            assert!(roles.leaders.keys().all(|slot| *slot < cluster.leaders));
            let fences = roles.leaders.values().map(|holder| holder.fence);
            assert!(fences.max().unwrap_or_default() <= roles.fence);
            let last = self.last_fence.insert(name.clone(), roles.fence).unwrap_or_default();
            assert!(last <= roles.fence, "fencing numbers grow");
            for node in nodes {
                assert_eq!(fleet.membership.of(node), Some(name), "a leader is a member");
            }
        }
        for (name, kept) in fleet.clusters.iter() {
            let leaders = fleet.roles_of(name).map_or(0, |roles| roles.leaders.len());
            let leads = |node: &&NodeName| fleet.roles_of(name).is_some_and(|it| it.slot_of(node).is_some());
            let free = fleet.membership.eligible(name).filter(|node| !leads(node)).count();
            assert!(
                leaders == kept.value.leaders as usize || free == 0,
                "a slot is vacant only without a member for it"
            );
        }
        for (node, content) in fleet.contents.iter() {
            for (manager, hosting) in &content.hosts {
                let host = fleet.host_of(manager).expect("only managers are hosted");
                assert_eq!((&host.node, host.fence), (node, hosting.fence), "one node hosts a manager");
            }
        }
        let records = self.kept.values().cloned();
        let records =
            records.map(|record| (LocatedRecord::Namespaced(namespace(), record), self.world.revision));
        let loaded = World::load(records, self.world.revision);
        let loaded =
            loaded.fleets.get(&namespace()).map(|fleet| fleet.membership.clone()).unwrap_or_default();
        assert_eq!(loaded, fleet.membership, "an index that grew is one that was built");
    }

    fn leaders(&self, cluster: &str) -> Vec<&str> {
        let roles = self.fleet().roles_of(&cluster.parse().unwrap());
        roles.into_iter().flat_map(|roles| roles.leaders.values()).map(|it| it.node.as_str()).collect()
    }

    fn three_nodes() -> Self {
        let mut setup = Self::new();
        for name in ["db-1", "db-2", "db-3"] {
            setup.node(name, "db", false, false);
            setup.presence(name, PresenceState::Up);
        }
        setup
    }
}

#[test]
fn a_leader_stays_until_it_was_unreachable_for_the_grace_and_another_member_is_there() {
    let mut setup = Setup::three_nodes();
    setup.cluster("db", 1, "role=db", 1);
    setup.settle();
    let first = String::from(setup.leaders("db")[0]);
    setup.presence(&first, PresenceState::Suspect);
    setup.settle();
    setup.presence(&first, PresenceState::Unreachable);
    setup.settle();
    assert_eq!(setup.leaders("db"), [first.as_str()]);
    let wake = decide(setup.fleet(), setup.settled, setup.now).wake;
    assert_eq!(wake, Some(at(1_060)), "the decider comes back when the grace is over");
    setup.now = at(1_059);
    setup.settle();
    assert_eq!(setup.leaders("db"), [first.as_str()]);
    setup.now = at(1_060);
    setup.settled = at(1_090);
    setup.settle();
    assert_eq!(setup.leaders("db"), [first.as_str()], "a new leader among servers has to hear them first");
    setup.now = at(1_090);
    setup.settle();
    let second = String::from(setup.leaders("db")[0]);
    assert_ne!(second, first);
    assert_eq!(
        setup.events[1],
        alloc::format!("{first} > {second}: fencing number 2: {first} was unreachable for 1m")
    );
    setup.presence(&first, PresenceState::Up);
    setup.settle();
    assert_eq!(setup.leaders("db"), [second.as_str()], "who was replaced does not take the role back");
}

#[test]
fn a_leader_without_a_successor_keeps_its_role_while_it_is_silent_and_loses_it_when_it_leaves() {
    let mut setup = Setup::new();
    setup.node("db-1", "db", false, false);
    setup.presence("db-1", PresenceState::Up);
    setup.cluster("db", 1, "role=db", 1);
    setup.settle();
    setup.presence("db-1", PresenceState::Unreachable);
    setup.now = at(9_000);
    setup.settle();
    assert_eq!(setup.leaders("db"), ["db-1"]);
    setup.node("db-1", "web", false, false);
    setup.settle();
    assert_eq!(setup.leaders("db"), Vec::<&str>::new());
    assert_eq!(setup.events[1], "db-1 > -: db-1 is not a member any more");
    setup.node("db-1", "db", false, false);
    setup.presence("db-1", PresenceState::Up);
    setup.settle();
    assert_eq!(setup.events[2], "- > db-1: fencing number 2: the slot had no leader");
}

#[test]
fn the_preferred_member_leads_and_a_node_is_a_member_of_the_older_cluster() {
    let mut setup = Setup::three_nodes();
    setup.cluster("db", 1, "role=db", 2);
    let name = "db".parse().unwrap();
    let mut cluster = (*setup.fleet().clusters.get(&name).unwrap().value).clone();
    cluster.prefer = Some(NodeOrder::parse("-name").unwrap());
    setup.put(Record::Cluster(cluster));
    setup.settle();
    assert_eq!(setup.leaders("db"), ["db-3", "db-2"]);
    setup.cluster("all", 2, "all", 1);
    setup.settle();
    assert_eq!(setup.leaders("all"), Vec::<&str>::new());
    let claimed = setup.fleet().membership.claimed(&"all".parse().unwrap()).count();
    assert_eq!(claimed, 3);
    setup.write(Write::delete(Key::Cluster(name)));
    setup.settle();
    assert_eq!((setup.leaders("db").len(), setup.leaders("all").len()), (0, 1));
    let roles = setup.fleet().roles_of(&"db".parse().unwrap()).unwrap();
    assert!(roles.is_none() && roles.fence == FenceNumber::new(2), "the number goes on");
}

#[test]
fn an_order_names_what_is_recorded() {
    assert!(NodeOrder::parse("-fact.cores").is_ok());
    assert!(NodeOrder::parse("presence").unwrap_err().reason.contains("changes by itself"));
    assert!(NodeOrder::parse("param.cluster/leader").is_err());
    assert!(Selector::parse("param[\"cluster/leader\"] = true").is_err());
}

proptest! {
    #[test]
    fn after_any_history_each_slot_has_one_leader_that_is_a_member(
        changes in prop::collection::vec((0..7_u8, 0..4_usize, 0..8_u8, 0..90_u64), 1..50),
    ) {
        let mut setup = Setup::new();
        for (kind, which, how, later) in changes {
            setup.now = setup.now.plus(Span::from_secs(later));
            let name = ["n-1", "n-2", "n-3", "n-4"][which];
            let is = |bit: u8| how & bit != 0;
            let states = [
                PresenceState::Up, PresenceState::Suspect, PresenceState::Unreachable, PresenceState::Never,
            ];
            match kind {
                0 => setup.node(name, if is(1) { "db" } else { "web" }, is(2), is(4) && is(2)),
                1 => setup.presence(name, states[usize::from(how % 4)]),
                2 if is(4) => setup.write(Write::delete(Key::Cluster(["a", "b"][which % 2].parse().unwrap()))),
                2 => {
                    let filter = ["role=db", "all", "name in (n-1,n-2)"][usize::from(how % 3)];
                    setup.cluster(["a", "b"][which % 2], which as u64 % 2 + 1, filter, u32::from(how % 4));
                    setup.manager(["a", "b"][which % 2]);
                }
                4 => setup.offers(name, is(1)),
                5 => setup.presence("a-manager", states[usize::from(how % 4)]),
                3 => setup.write(Write::delete(Key::Node(name.parse().unwrap()))),
                _ => setup.settled = setup.now.plus(Span::from_secs(u64::from(how))),
            }
            if setup.world.fleets.contains_key(&namespace()) {
                setup.settle();
            }
        }
    }
}
