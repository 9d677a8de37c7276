use super::*;
use crate::catalogue::instance::Addresses;
use crate::records::node::Node;
use crate::records::offers::{Offer, Offers, Serving};
use crate::records::report::{EntityReport, Report};
use crate::rollout::sighting::{Doing, Health};
use crate::words::counter::{AssignmentNumber, Generation};
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::world::World;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

struct Play(World);

impl Play {
    fn put(&mut self, record: Record) {
        let revision = self.0.revision.next();
        self.0.put(Some(&namespace()), record, revision);
    }

    /// A node that runs `entity`, offers the service of the same name, and lacks these.
    fn node(&mut self, node: &str, entity: &str, serves: bool, lacks: &[&str]) {
        self.put(Record::Node(Node {
            name: node.parse().unwrap(),
            labels: Labels::default(),
            joined_at: Timestamp::EPOCH,
            key_fingerprint: Default::default(),
            pause: None,
            cordon: None,
            decommissioned: None,
        }));
        let serving = if serves { Serving::Passing } else { Serving::Failing { reason: "new".into() } };
        let offer = Offer {
            addresses: None,
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            entity: entity.parse().ok(),
            serving,
            since: Timestamp::EPOCH,
        };
        let key = (entity.parse().unwrap(), entity.parse().unwrap());
        self.put(Record::Offers(Offers {
            node: node.parse().unwrap(),
            addresses: Addresses::default(),
            instances: BTreeMap::from([(key, offer)]),
        }));
        let report = EntityReport {
            running: None,
            answering: AssignmentNumber::ZERO,
            doing: Doing::Nothing,
            health: Health::NoChecks,
            healthy_since: None,
            lacks: lacks.iter().map(|service| service.parse().unwrap()).collect(),
        };
        self.put(Record::Report(Report {
            node: node.parse().unwrap(),
            received_at: Timestamp::EPOCH,
            agent_version: Default::default(),
            generation: Generation::ZERO,
            entities: BTreeMap::from([(entity.parse().unwrap(), report)]),
            statuses: BTreeMap::new(),
        }));
    }

    /// Decides, takes it in, and makes sure that deciding again writes nothing; answers what was told.
    fn step(&mut self) -> Vec<(&'static str, alloc::string::String)> {
        let verdict = decide(self.0.fleets.get(&namespace()).unwrap(), Timestamp::EPOCH);
        let told = verdict.atoms.iter().flat_map(|atom| &atom.events);
        let told = told.map(|event| (event.kind, event.after.clone().unwrap_or_default())).collect();
        for write in verdict.atoms.into_iter().flat_map(|atom| atom.writes) {
            let Write::Put(record) = write else { panic!("nothing is deleted") };
            self.put(*record);
        }
        let again = decide(self.0.fleets.get(&namespace()).unwrap(), Timestamp::EPOCH);
        assert!(again.atoms.is_empty(), "deciding again wrote {:?}", again.atoms);
        told
    }
}

#[test]
fn two_that_wait_for_each_other_are_told_once_and_once_again_when_it_is_over() {
    let mut play = Play(World::default());
    play.node("web-1", "app", false, &["db"]);
    assert_eq!(play.step(), []);
    play.node("db-1", "db", false, &["app"]);
    let circle = "app (on web-1) waits for db, db (on db-1) waits for app";
    assert_eq!(play.step(), [("wait.circular", circle.into())]);
    play.node("web-2", "app", false, &["db"]);
    assert_eq!(play.step(), [], "one more in the same circle is no news");
    play.node("db-1", "db", false, &[]);
    assert_eq!(play.step(), [("wait.circle_ended", circle.into())]);
}

#[test]
fn a_longer_circle_is_found_once_and_a_chain_is_none() {
    let mut play = Play(World::default());
    play.node("a", "a", false, &["b"]);
    play.node("b", "b", false, &["c"]);
    play.node("c", "c", false, &["d"]);
    assert_eq!(play.step(), []);
    play.node("c", "c", false, &["a", "d"]);
    let told = play.step();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.starts_with("a (on a) waits for b, b (on b) waits for c, c (on c) waits for a"));
}

#[test]
fn while_somebody_else_may_come_to_serve_nobody_is_stuck() {
    let mut play = Play(World::default());
    play.node("web-1", "app", false, &["db"]);
    play.node("db-1", "db", false, &["app"]);
    play.node("db-2", "db", false, &[]);
    assert_eq!(play.step(), [], "db-2 waits for nothing");
    play.node("db-2", "db", false, &["app"]);
    assert_eq!(play.step().len(), 1);
}

#[test]
fn one_that_waits_for_itself_is_a_circle_too() {
    let mut play = Play(World::default());
    play.node("db-1", "db", false, &["db"]);
    assert_eq!(play.step(), [("wait.circular", "db (on db-1) waits for db".into())]);
}
