use super::*;
use crate::records::node::Node;
use crate::words::counter::Revision;
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::world::World;

const LIMITS: Limits = Limits { suspect: Span::from_millis(5), unreachable: Span::from_millis(15) };

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

struct Scene {
    world: World,
    contacts: Contacts,
    namespace: Namespace,
    node: NodeName,
}

impl Scene {
    fn new() -> Self {
        let namespace = Namespace::parse("default").unwrap();
        let node = NodeName::parse("web-1").unwrap();
        let record = Record::Node(Node {
            name: node.clone(),
            labels: Labels::default(),
            joined_at: at(0),
            key_fingerprint: String::new(),
            pause: None,
            cordon: None,
            decommissioned: None,
        });
        let mut world = World::default();
        world.put(Some(&namespace), record, Revision::new(1));
        Self { world, contacts: Contacts::new(at(0)), namespace, node }
    }

    /// Decides, applies, and checks that deciding again writes nothing.
    fn decide(&mut self, now: u64) -> Option<Contact> {
        let run = |world: &World, contacts: &Contacts| {
            decide(world.fleets.get(&self.namespace).unwrap(), contacts, LIMITS, at(now))
        };
        for atom in run(&self.world, &self.contacts).atoms {
            assert_eq!(atom.events.len(), 1);
            for write in atom.writes {
                let Write::Put(record) = write else { panic!("liveness deletes nothing") };
                self.world.put(Some(&self.namespace), *record, Revision::new(now + 2));
            }
        }
        assert!(run(&self.world, &self.contacts).atoms.is_empty(), "deciding again changes nothing");
        let fleet = self.world.fleets.get(&self.namespace)?;
        self.contacts.settle(fleet, LIMITS.suspect, at(now));
        fleet.presences.get(&self.node).map(|kept| kept.value.contact)
    }
}

#[test]
fn a_node_that_never_connected_is_not_declared_lost() {
    let mut scene = Scene::new();
    assert_eq!(scene.decide(1_000), None);
}

#[test]
fn a_silent_node_is_suspect_and_then_unreachable_and_up_when_it_returns() {
    let mut scene = Scene::new();
    scene.contacts.opened(&scene.node.clone());
    assert_eq!(scene.decide(1), Some(Contact::Up));
    scene.contacts.closed(&scene.node.clone(), at(10));
    assert_eq!(scene.decide(14), Some(Contact::Up));
    assert_eq!(scene.decide(15), Some(Contact::Suspect));
    assert_eq!(scene.decide(24), Some(Contact::Suspect));
    assert_eq!(scene.decide(25), Some(Contact::Unreachable));
    scene.contacts.opened(&scene.node.clone());
    assert_eq!(scene.decide(26), Some(Contact::Up));
}

#[test]
fn a_session_too_short_to_be_seen_open_still_counts() {
    let mut scene = Scene::new();
    let node = scene.node.clone();
    scene.contacts.opened(&node);
    scene.contacts.closed(&node, at(1));
    assert_eq!(scene.decide(2), Some(Contact::Up));
    assert_eq!(scene.decide(20), Some(Contact::Unreachable));
    scene.contacts.opened(&node);
    scene.contacts.closed(&node, at(30));
    assert_eq!(scene.decide(31), Some(Contact::Up));
}

#[test]
fn a_restarted_server_gives_everybody_the_full_time_to_come_back() {
    let mut scene = Scene::new();
    scene.contacts.opened(&scene.node.clone());
    scene.decide(1);
    scene.contacts = Contacts::new(at(1_000));
    scene.contacts.expect_all(scene.world.fleets.get(&scene.namespace).unwrap());
    assert_eq!(scene.decide(1_004), Some(Contact::Up));
    assert_eq!(scene.decide(1_015), Some(Contact::Unreachable));
}

#[test]
fn a_second_session_keeps_a_node_up_when_the_first_ends() {
    let mut scene = Scene::new();
    let node = scene.node.clone();
    assert!(scene.contacts.opened(&node));
    assert!(!scene.contacts.opened(&node));
    assert!(!scene.contacts.closed(&node, at(1)));
    assert_eq!(scene.decide(100), Some(Contact::Up));
}
