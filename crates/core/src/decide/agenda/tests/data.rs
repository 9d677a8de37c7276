//! Facts, params and profiles of nodes, which selectors read as they read labels.

use alloc::format;
use alloc::string::{String, ToString};

use super::*;
use crate::records::facts::NodeFacts;
use crate::records::node_params::NodeParams;
use crate::words::counter::{NodeParamsRevision, RescanNumber};
use crate::words::facts::Facts;
use crate::words::value::Value;

impl Play {
    /// A node reports disks, each of which is empty or not.
    pub(super) fn disks(&mut self, which: usize, empty: &[bool]) {
        let disk = |empty: &bool| Value::Object(BTreeMap::from([("empty".into(), Value::Bool(*empty))]));
        let disks = Value::List(empty.iter().map(disk).collect());
        self.put(Record::Facts(NodeFacts {
            node: NODES[which].parse().unwrap(),
            received_at: self.now,
            rescan: RescanNumber::ZERO,
            facts: Facts::new(BTreeMap::from([("disks".into(), disks)])).unwrap(),
        }));
    }

    /// A node has this param `role`, and reads these profiles.
    pub(super) fn params(&mut self, which: usize, role: Option<&str>, profiles: &[&str]) {
        let values = role.map(|role| ("role".into(), Value::Text(role.into())));
        self.put(Record::NodeParams(NodeParams {
            secrets: Default::default(),
            node: NODES[which].parse().unwrap(),
            revision: NodeParamsRevision::ZERO.next(),
            params: role.map_or_else(|| "{}".into(), |role| format!("{{\"role\":\"{role}\"}}")),
            values: Arc::new(values.into_iter().collect()),
            profiles: profiles.iter().map(|profile| profile.parse().unwrap()).collect(),
            annotation: annotation(self.now),
        }));
    }
}

#[test]
fn facts_params_and_profiles_make_a_node_a_target_and_no_longer() {
    let mut play = Play::new();
    for node in 0..2 {
        play.node(node, true);
        play.presence(node, PresenceState::Up);
    }
    for (which, selector) in
        ["fact.disks.empty = true", "param[\"role\"] = \"db\"", "profile = k3s", "role=db"].iter().enumerate()
    {
        play.entity(which, 0);
        let entity = play.fleet_entity(&name(ENTITIES[which])).unwrap();
        let source = TargetSource::Nodes(Selector::parse(selector).unwrap());
        play.put(Record::Entity(Entity { source, ..entity }));
    }
    let targets = |play: &Play| -> Vec<String> {
        let of = |node: &&str| {
            play.fleet().entities_of_node.get(&node.parse().unwrap()).cloned().collect::<Vec<_>>()
        };
        NODES[..2]
            .iter()
            .map(|node| of(node).iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .collect()
    };
    play.settle();
    assert_eq!(targets(&play), ["", ""]);
    play.disks(0, &[true]);
    assert_eq!(play.settled(), [name("app")], "only what matches it now is decided");
    play.params(1, Some("db"), &[]);
    assert_eq!(play.settled(), [name("db")]);
    play.params(0, None, &["k3s"]);
    assert_eq!(play.settled(), ["app", "edge"].map(name), "it is a target of app already");
    assert_eq!(targets(&play), ["app edge", "db"]);
    play.disks(0, &[false, false]);
    play.params(0, None, &[]);
    play.delete(Key::NodeParams(NODES[1].parse().unwrap()));
    assert_eq!(play.settled(), ["app", "db", "edge"].map(name));
    assert_eq!(targets(&play), ["", ""]);
    play.disks(1, &[false, true]);
    play.delete(Key::Facts(NODES[1].parse().unwrap()));
    play.settle();
    assert_eq!(targets(&play), ["", ""]);
}
