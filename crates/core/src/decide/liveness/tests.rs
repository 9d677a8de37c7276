use proptest::collection::vec;
use proptest::prelude::*;

use super::context::PresenceLimits;
use super::*;
use crate::records::key::Record;
use crate::records::key::global::{GlobalKey, GlobalRecord};
use crate::records::node::Node;
use crate::records::server::Server;
use crate::words::counter::Revision;
use crate::words::label::Labels;
use crate::words::name::{Namespace, ServerName};
use crate::words::time::Span;
use crate::world::World;
use alloc::string::String;

const LIMITS: PresenceLimits = PresenceLimits {
    suspect: Span::from_millis(5),
    unreachable: Span::from_millis(15),
    reconnect: Span::from_millis(100),
};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn server(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

fn node() -> NodeName {
    NodeName::parse("web-1").unwrap()
}

/// One server's view of the one node.
struct Setup {
    world: World,
    contacts: Contacts,
    namespace: Namespace,
    me: ServerName,
    leads: bool,
}

impl Setup {
    /// Of one server, which leads.
    fn new() -> Self {
        let namespace = Namespace::parse("default").unwrap();
        let record = Record::Node(Node {
            name: node(),
            labels: Labels::default(),
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
        });
        let mut world = World::default();
        world.put(&namespace, record, Revision::new(1));
        let mut setup =
            Self { world, contacts: Contacts::new(at(0)), namespace, me: server("a"), leads: true };
        setup.begins("a");
        setup
    }

    /// The same world as another server sees it.
    fn beside(&self, me: &str, leads: bool) -> Self {
        Self {
            world: self.world.clone(),
            contacts: Contacts::new(at(0)),
            namespace: self.namespace.clone(),
            me: server(me),
            leads,
        }
    }

    fn begins(&mut self, name: &str) {
        let record = Server {
            name: server(name),
            address: String::new(),
            version: String::new(),
            secret_keys: Default::default(),
            since: at(0),
        };
        self.world.put_global(GlobalRecord::Server(record), Revision::new(1));
    }

    fn goes(&mut self, name: &str) {
        self.world.delete_global(&GlobalKey::Server(server(name)), Revision::new(1));
    }

    /// Decides, applies, and checks that deciding again writes nothing.
    fn decide(&mut self, now: u64) -> Option<PresenceState> {
        let run = |world: &World, contacts: &mut Contacts| {
            let watch =
                LivenessContext { me: &self.me, servers: &world.servers, leads: self.leads, limits: LIMITS };
            let fleet = world.fleets.get(&self.namespace).unwrap();
            contacts.settle(fleet, &watch, at(now));
            decide(fleet, contacts, &watch, at(now))
        };
        for changeset in run(&self.world, &mut self.contacts).changesets {
            for write in changeset.writes {
                write.apply_to(&mut self.world, &self.namespace, Revision::new(now + 2));
            }
        }
        assert!(run(&self.world, &mut self.contacts).changesets.is_empty(), "deciding again changes nothing");
        let fleet = self.world.fleets.get(&self.namespace)?;
        fleet.presences.get(&node()).map(|kept| kept.value.contact)
    }

    /// Who holds the node.
    fn holder(&self) -> Option<ServerName> {
        let fleet = self.world.fleets.get(&self.namespace)?;
        fleet.presences.get(&node()).and_then(|kept| kept.value.server.clone())
    }
}

#[test]
fn a_node_that_never_connected_is_not_declared_lost() {
    let mut setup = Setup::new();
    assert_eq!(setup.decide(1_000), None);
}

#[test]
fn a_silent_node_is_suspect_and_then_unreachable_and_up_when_it_returns() {
    let mut setup = Setup::new();
    setup.contacts.opened(&node());
    assert_eq!(setup.decide(1), Some(PresenceState::Up));
    setup.contacts.closed(&node(), at(10));
    assert_eq!(setup.decide(14), Some(PresenceState::Up));
    assert_eq!(setup.decide(15), Some(PresenceState::Suspect));
    assert_eq!(setup.decide(24), Some(PresenceState::Suspect));
    assert_eq!(setup.decide(25), Some(PresenceState::Unreachable));
    setup.contacts.opened(&node());
    assert_eq!(setup.decide(26), Some(PresenceState::Up));
}

#[test]
fn a_session_too_short_to_be_seen_open_still_counts() {
    let mut setup = Setup::new();
    setup.contacts.opened(&node());
    setup.contacts.closed(&node(), at(1));
    assert_eq!(setup.decide(2), Some(PresenceState::Up));
    assert_eq!(setup.decide(20), Some(PresenceState::Unreachable));
    setup.contacts.opened(&node());
    setup.contacts.closed(&node(), at(30));
    assert_eq!(setup.decide(31), Some(PresenceState::Up));
}

#[test]
fn a_restarted_server_gives_everybody_the_full_time_to_come_back() {
    let mut setup = Setup::new();
    setup.contacts.opened(&node());
    setup.decide(1);
    setup.contacts = Contacts::new(at(1_000));
    setup.contacts.begin(setup.world.fleets.get(&setup.namespace).unwrap(), &setup.me, at(1_000));
    assert_eq!(setup.decide(1_104), Some(PresenceState::Up));
    assert_eq!(setup.decide(1_105), Some(PresenceState::Suspect));
    assert_eq!(setup.decide(1_115), Some(PresenceState::Unreachable));
}

#[test]
fn the_server_that_was_called_last_holds_a_node() {
    let mut first = Setup::new();
    first.begins("b");
    first.contacts.opened(&node());
    assert_eq!(first.decide(1), Some(PresenceState::Up));
    let mut second = first.beside("b", false);
    second.contacts.opened(&node());
    assert_eq!(second.decide(2), Some(PresenceState::Up));
    assert_eq!(second.holder(), Some(server("b")));
    // The first still takes its session for open: it does not take the node back, nor call it silent when it ends.
    first.world = second.world.clone();
    assert_eq!(first.decide(3), Some(PresenceState::Up));
    first.contacts.closed(&node(), at(4));
    assert_eq!(first.decide(1_000), Some(PresenceState::Up));
    assert_eq!(first.holder(), Some(server("b")));
}

#[test]
fn changing_the_server_is_no_news_of_the_node() {
    let mut setup = Setup::new();
    setup.begins("b");
    setup.contacts.opened(&node());
    setup.decide(1);
    let mut second = setup.beside("b", false);
    second.contacts.opened(&node());
    let watch =
        LivenessContext { me: &second.me, servers: &second.world.servers, leads: false, limits: LIMITS };
    let fleet = second.world.fleets.get(&second.namespace).unwrap();
    let verdict = decide(fleet, &second.contacts, &watch, at(9));
    assert!(verdict.changesets.iter().all(|changeset| changeset.events.is_empty()));
    second.decide(9);
    let kept = second.world.fleets.get(&second.namespace).unwrap().presences.get(&node()).unwrap();
    assert_eq!(kept.value.since, at(1), "it is up since then");
}

#[test]
fn only_the_leader_finds_the_nodes_of_a_server_that_went_silent_after_time_to_come_back() {
    let mut gone = Setup::new();
    gone.begins("b");
    gone.contacts.opened(&node());
    gone.decide(1);
    gone.goes("a");
    let mut other = gone.beside("b", false);
    assert_eq!(other.decide(1_000), Some(PresenceState::Up), "it does not lead");
    other.leads = true;
    assert_eq!(other.decide(2_000), Some(PresenceState::Up));
    assert_eq!(other.decide(2_104), Some(PresenceState::Up));
    assert_eq!(other.decide(2_105), Some(PresenceState::Suspect));
    assert_eq!(other.decide(2_115), Some(PresenceState::Unreachable));
}

#[test]
fn an_orphan_that_calls_another_server_in_time_was_never_away() {
    let mut gone = Setup::new();
    gone.begins("b");
    gone.contacts.opened(&node());
    gone.decide(1);
    gone.goes("a");
    let mut leader = gone.beside("b", true);
    assert_eq!(leader.decide(1_000), Some(PresenceState::Up));
    leader.contacts.opened(&node());
    assert_eq!(leader.decide(1_050), Some(PresenceState::Up));
    assert_eq!(leader.holder(), Some(server("b")));
    assert_eq!(leader.decide(9_000), Some(PresenceState::Up));
}

#[test]
fn a_node_of_a_server_that_lives_is_not_the_leaders_to_judge() {
    let mut other = Setup::new();
    other.begins("b");
    other.contacts.opened(&node());
    other.decide(1);
    let mut leader = other.beside("b", true);
    leader.contacts.opened(&node());
    leader.contacts.closed(&node(), at(2));
    assert_eq!(leader.decide(9_000), Some(PresenceState::Up));
    assert_eq!(leader.holder(), Some(server("a")));
}

#[test]
fn a_second_session_keeps_a_node_up_when_the_first_ends() {
    let mut setup = Setup::new();
    assert!(setup.contacts.opened(&node()));
    assert!(!setup.contacts.opened(&node()));
    assert!(!setup.contacts.closed(&node(), at(1)));
    assert_eq!(setup.decide(100), Some(PresenceState::Up));
}

/// What can happen to one of a few nodes, or to the other server.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Opens(usize),
    Closes(usize),
    CallsTheOther(usize),
    OtherGoes,
    OtherBegins,
    Leads(bool),
    Passes(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..NODES).prop_map(Happening::Opens),
        (0..NODES).prop_map(Happening::Closes),
        (0..NODES).prop_map(Happening::CallsTheOther),
        Just(Happening::OtherGoes),
        Just(Happening::OtherBegins),
        any::<bool>().prop_map(Happening::Leads),
        (0_u64..20).prop_map(Happening::Passes),
    ]
}

const NODES: usize = 4;

fn numbered(number: usize) -> NodeName {
    NodeName::parse(&alloc::format!("web-{number}")).unwrap()
}

proptest! {
    #[test]
    fn nobody_who_was_put_aside_has_anything_to_be_told(happenings in vec(happening(), 1..60)) {
        let mut setup = Setup::new();
        for number in 0..NODES {
            let mut record = setup.world.fleets.get(&setup.namespace).unwrap().nodes.get(&node()).unwrap().value.as_ref().clone();
            record.name = numbered(number);
            setup.world.put(&setup.namespace, Record::Node(record), Revision::new(1));
        }
        let mut now = 1;
        for happening in happenings {
            match happening {
                Happening::Opens(number) => drop(setup.contacts.opened(&numbered(number))),
                Happening::Closes(number) => drop(setup.contacts.closed(&numbered(number), at(now))),
                Happening::CallsTheOther(number) => {
                    let presence = Presence { contact: PresenceState::Up, since: at(now), server: Some(server("b")) };
                    let record = Record::Presence(numbered(number), presence);
                    setup.world.put(&setup.namespace, record, Revision::new(now));
                }
                Happening::OtherGoes => setup.goes("b"),
                Happening::OtherBegins => setup.begins("b"),
                Happening::Leads(leads) => setup.leads = leads,
                Happening::Passes(millis) => now += millis,
            }
            setup.decide(now);
            let fleet = setup.world.fleets.get(&setup.namespace).unwrap();
            let watch = LivenessContext { me: &setup.me, servers: &setup.world.servers, leads: setup.leads, limits: LIMITS };
            for number in (0..NODES).filter(|_| setup.leads) {
                let found = look(fleet, &setup.contacts, &numbered(number), &watch, at(now));
                prop_assert!(!matches!(found, PresenceFinding::Changes(..)), "{} at {now}", numbered(number));
                if let PresenceFinding::Waits(due) = found {
                    prop_assert!(setup.contacts.next_due().is_some_and(|next| next <= due), "{} waits", numbered(number));
                }
            }
            prop_assert_eq!(setup.contacts.unsettled().count(), 0, "nobody is looked at for nothing");
        }
    }
}
