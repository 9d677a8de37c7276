//! The one-screen overview. Counting nodes goes over all of them, so it is done once for each picture, however many look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use bellwether_api::v1::overview::{EntityLine, Overview};
use bellwether_api::v1::server::Leader;
use bellwether_core::records::node::Contact;
use bellwether_core::records::status::Status;
use bellwether_core::rollout::board::Board;
use bellwether_core::rollout::why::why_rollout;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::version::Version;
use bellwether_core::world::fleet::Fleet;

use super::App;
use super::input::{Answer, Ns};
use super::servers::store;

/// How many nodes of a fleet are how.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    contacts: BTreeMap<&'static str, u64>,
    paused: u64,
    failing: u64,
}

/// The last tally of each namespace, and the revision that it was taken at.
#[derive(Debug, Default)]
pub struct Tallies(Mutex<BTreeMap<Namespace, (Revision, Arc<Tally>)>>);

impl Tally {
    fn of(fleet: &Fleet) -> Self {
        let mut tally = Self::default();
        for (name, kept) in fleet.nodes.iter().filter(|(_, kept)| kept.value.decommissioned.is_none()) {
            let contact = fleet.presences.get(name).map_or(Contact::Never, |kept| kept.value.contact);
            *tally.contacts.entry(contact.as_str()).or_insert(0) += 1;
            let mut statuses =
                fleet.reports.get(name).into_iter().flat_map(|kept| kept.value.statuses.values());
            tally.failing += u64::from(statuses.any(Status::is_failed));
            tally.paused += u64::from(fleet.paused(&kept.value).is_some());
        }
        tally
    }
}

impl Tallies {
    /// The tally of a fleet as it is at this revision.
    fn at(&self, namespace: &Namespace, revision: Revision, fleet: &Fleet) -> Arc<Tally> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(namespace).filter(|(at, _)| *at == revision).map(|(_, tally)| tally.clone());
        // Not under the lock: two that count at the same time are better than one that holds up the other.
        known.unwrap_or_else(|| {
            let tally = Arc::new(Tally::of(fleet));
            lock().insert(namespace.clone(), (revision, tally.clone()));
            tally
        })
    }
}

pub(crate) async fn get(State(app): State<App>, Ns(namespace): Ns) -> Answer<Overview> {
    let world = app.world();
    let empty = Fleet::default();
    let fleet = world.fleets.get(&namespace).unwrap_or(&empty);
    let tally = app.tallies.at(&namespace, world.revision, fleet);
    let contacts = tally.contacts.iter();
    Answer(Overview {
        namespace: namespace.to_string(),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        leading: world.leader.is_some(),
        leader: world.leader.as_ref().map(|kept| Leader::from(&*kept.value)),
        term: world.leader.as_ref().map(|kept| app.installation.term(kept.revision).get()),
        servers: world.servers.size() as u64,
        nodes: contacts.map(|(contact, count)| ((*contact).to_owned(), *count)).collect(),
        paused: tally.paused,
        failing: tally.failing,
        entities: fleet.boards.iter().map(|(name, board)| line(name, board)).collect(),
        last_event: fleet.last_event().get(),
        store: Some(store(&app.store.health().borrow())),
    })
}

fn line(name: &EntityName, board: &Board) -> EntityLine {
    EntityLine {
        name: name.to_string(),
        targets: board.figures().targets,
        target: board.progress().target.as_ref().map(Version::to_string),
        last_known_good: board.progress().last_known_good.as_ref().map(Version::to_string),
        last_known_bad: board.progress().last_known_bad().map(|bad| bad.version.to_string()),
        why: why_rollout(board),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::key::Record;
    use bellwether_core::records::node::{Node, Presence};
    use bellwether_core::words::label::Labels;
    use bellwether_core::words::name::NodeName;
    use bellwether_core::words::time::Timestamp;
    use bellwether_core::world::World;

    use super::*;

    #[test]
    fn a_tally_is_taken_once_for_a_picture_and_anew_for_the_next() {
        let namespace = Namespace::parse("default").unwrap();
        let name = NodeName::parse("web-1").unwrap();
        let node = Node {
            name: name.clone(),
            labels: Labels::default(),
            joined_at: Timestamp::EPOCH,
            key_fingerprint: String::new(),
            pause: None,
            cordon: None,
            decommissioned: None,
        };
        let mut world = World::default();
        let tallies = Tallies::default();
        let mut at = |revision, record| {
            world.put(Some(&namespace), record, Revision::new(revision));
            let fleet = world.fleets.get(&namespace).unwrap();
            let tally = tallies.at(&namespace, Revision::new(revision), fleet);
            let again = tallies.at(&namespace, Revision::new(revision), &Fleet::default());
            assert!(Arc::ptr_eq(&tally, &again), "not counted again");
            tally.contacts.clone()
        };
        assert_eq!(at(1, Record::Node(node)), BTreeMap::from([("never", 1)]));
        let presence = Presence { contact: Contact::Up, since: Timestamp::EPOCH, server: None };
        assert_eq!(at(2, Record::Presence(name, presence)), BTreeMap::from([("up", 1)]));
    }
}
