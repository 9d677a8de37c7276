//! The laws, checked after every commit of the store, and what must hold at the end. Sees what no server sees: the store
//! itself, and who could reach whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::records::cluster::ClusterRoles;
use bellwether_core::records::key::{Key, LocatedRecord, Record};
use bellwether_core::records::node::PresenceState;
use bellwether_core::records::order::Order;
use bellwether_core::records::progress::Progress;
use bellwether_core::words::counter::{Revision, Sequence};
use bellwether_core::words::name::{ClusterName, EntityName, NodeName, TargetName};
use bellwether_core::words::version::Version;
use bellwether_core::world::World;
use bellwether_server::records::key_text::KeyLocation;
use bellwether_server::records::{encoding, key_text};
use bellwether_store::{Batch, Change, Range, Store};
use tokio::time::Instant;

use crate::people::{PROFILE, Write, WriteOutcome, text_of};
use crate::stores::TrueStores;
use crate::trace::Trace;
use crate::view_law::{ViewLaws, is_of_stores};

/// Most targets of `web` in flight at once, of a batch and of a rollback.
const MOST_WEB: usize = 3;

/// Most targets of `kick` in flight at once.
const MOST_KICK: usize = 4;

/// A node that could reach some server for this long must not be declared unreachable. The servers' limits add up to less:
/// 5 s for a lost membership, 15 s to connect elsewhere, 15 s without a session.
const ABLE: Duration = Duration::from_secs(60);

/// Since when each node can reach some server; kept by the history.
pub type Reachability = Arc<Mutex<BTreeMap<String, Option<Instant>>>>;

/// Checks every commit.
#[derive(Debug)]
pub struct Laws {
    trace: Trace,
    able: Reachability,
    world: World,
    orders: BTreeMap<NodeName, Order>,
    in_flight: BTreeSet<(String, TargetName)>,
    sequence: Sequence,
    profile_revisions: BTreeMap<u64, String>,
    contacts: BTreeMap<NodeName, PresenceState>,
    nodes_are_steady: bool,
    /// What must hold of data stores, if the machines have some.
    views: Option<ViewLaws>,
    /// Who has had which fencing number of a cluster, as a role and a node.
    fences: BTreeMap<ClusterName, BTreeMap<u64, (String, NodeName)>>,
}

/// What the laws have seen, for the checks at the end.
#[derive(Debug, Clone, Default)]
pub struct LawSummary {
    /// The world by the store's own commits.
    pub world: World,
    /// The profile's revisions with the values written.
    pub profile_revisions: BTreeMap<u64, String>,
    /// Number of commits.
    pub commits: u64,
}

impl Laws {
    /// No commit seen yet.
    #[must_use]
    pub fn new(trace: &Trace, able: &Reachability) -> Self {
        Self {
            trace: trace.clone(),
            able: able.clone(),
            world: World::default(),
            orders: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            sequence: Sequence::ZERO,
            profile_revisions: BTreeMap::new(),
            contacts: BTreeMap::new(),
            nodes_are_steady: false,
            views: None,
            fences: BTreeMap::new(),
        }
    }

    /// Whether runs on nodes fail for bad versions only. Then no good version may be found bad.
    #[must_use]
    pub fn of_steady_nodes(mut self, nodes_are_steady: bool) -> Self {
        self.nodes_are_steady = nodes_are_steady;
        self
    }

    /// What is recorded of these data stores is checked too.
    #[must_use]
    pub fn of_stores(mut self, stores: Option<&TrueStores>) -> Self {
        self.views = stores.map(|stores| ViewLaws::new(&self.trace, stores));
        self
    }

    /// Checks every commit of the store from the first.
    pub async fn watch(mut self, store: Store, seen: Arc<Mutex<LawSummary>>) {
        let Ok(mut watch) = store.watch(Range::prefix(key_text::ROOT), bellwether_store::Revision(0)).await
        else {
            return self.trace.breaks("the store's own history cannot be watched");
        };
        let mut commits = 0;
        while let Ok(batch) = watch.next().await {
            commits += 1;
            self.look(&batch);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen = LawSummary {
                world: self.world.clone(),
                profile_revisions: self.profile_revisions.clone(),
                commits,
            };
        }
    }

    fn look(&mut self, batch: &Batch) {
        let names = batch.changes.iter().map(|change| {
            let key = String::from_utf8_lossy(&change.key).into_owned();
            if change.entry.is_some() { key } else { format!("-{key}") }
        });
        self.trace.say(&format!("#{} {}", batch.revision.0, names.collect::<Vec<_>>().join(" ")));
        for change in &batch.changes {
            let value = change.entry.as_ref().map(|entry| String::from_utf8_lossy(&entry.value));
            tracing::trace!(commit = batch.revision.0, "{}: {value:?}", String::from_utf8_lossy(&change.key));
        }
        let revision = Revision::new(batch.revision.0);
        let mut events = Vec::new();
        let mut contacts = Vec::new();
        let mut of_stores = Vec::new();
        for change in &batch.changes {
            match record(change) {
                Some(LocatedRecord::Namespaced(_, Record::Event(event))) => events.push(event),
                Some(LocatedRecord::Global(record)) => self.world.put_global(record, revision),
                Some(LocatedRecord::Namespaced(namespace, record)) => {
                    if let Record::Presence(node, presence) = &record {
                        contacts.push((node.clone(), presence.contact));
                    }
                    self.one(&record);
                    if self.views.is_some() && is_of_stores(&record) {
                        of_stores.push(record.clone());
                    }
                    self.world.put(&namespace, record, revision);
                }
                None => self.gone(change, revision),
            }
        }
        self.events(&events, &contacts);
        if let Some(views) = &mut self.views {
            events.iter().for_each(|event| views.event(event));
            of_stores.iter().for_each(|record| views.record(record));
            views.end_commit();
        }
        for (entity, most) in [("web", MOST_WEB), ("kick", MOST_KICK)] {
            let in_flight = self.in_flight.iter().filter(|(name, _)| name == entity).count();
            if in_flight > most {
                self.trace.breaks(&format!("{in_flight} targets of {entity} are in flight, {most} at once"));
            }
        }
    }

    /// Checks one written record.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "laws about other records are nobody's yet, new ones among them"
    )]
    fn one(&mut self, record: &Record) {
        match record {
            Record::Order(node, order) => self.order(node, order),
            Record::Target(entity, target, state) => {
                let key = (entity.to_string(), target.clone());
                if state.is_in_flight() {
                    self.in_flight.insert(key);
                } else {
                    self.in_flight.remove(&key);
                }
            }
            Record::Progress(entity, progress) => self.judged(entity, progress),
            Record::ClusterRoles(roles) => self.roles(roles),
            Record::Presence(node, presence) if presence.contact == PresenceState::Unreachable => {
                self.given_up(node)
            }
            Record::ProfileRevision(profile_revision) if profile_revision.profile.as_str() == PROFILE => {
                let text = text_of(&profile_revision.params).unwrap_or_default();
                if let Some(before) = self.profile_revisions.insert(profile_revision.number.get(), text) {
                    self.trace.breaks(&format!(
                        "revision {} was written again over {before}",
                        profile_revision.number
                    ));
                }
            }
            _ => {}
        }
    }

    /// No bad version is ever known good; and where nothing but outages happens, no good one is known bad. A run of an
    /// action is another matter: it may fail because its agent was stopped, as it is never begun twice.
    fn judged(&self, entity: &EntityName, progress: &Progress) {
        let is_bad = |version: &Version| version.as_str().starts_with("bad-");
        if let Some(version) = progress.last_known_good.as_ref().filter(|version| is_bad(version)) {
            self.trace.breaks(&format!("{entity}: {version} is known good"));
        }
        let condemned = progress.bad.iter().find(|bad| bad.version.as_str().starts_with('v'));
        if let Some(bad) = condemned.filter(|_| self.nodes_are_steady) {
            self.trace.breaks(&format!("{entity}: {} is known bad: {}", bad.version, bad.reason));
        }
    }

    /// Every role of a cluster is given with a larger fencing number than all before.
    fn roles(&mut self, roles: &ClusterRoles) {
        let given = self.fences.entry(roles.cluster.clone()).or_default();
        let most = given.keys().next_back().copied().unwrap_or_default();
        let leaders = roles.leaders.iter().map(|(slot, holder)| (format!("leader {slot}"), holder));
        for (role, holder) in leaders.chain(roles.host.iter().map(|host| ("host".to_owned(), host))) {
            let (fence, new) = (holder.fence.get(), (role, holder.node.clone()));
            match given.get(&fence) {
                Some(before) if *before == new => {}
                None if fence > most && fence <= roles.fence.get() => drop(given.insert(fence, new)),
                before => self.trace.breaks(&format!(
                    "{} of cluster {} has fencing number {fence} after {most}, which was that of {before:?}",
                    new.1, roles.cluster
                )),
            }
        }
    }

    fn gone(&mut self, change: &Change, revision: Revision) {
        let location = match key_text::read(&change.key) {
            None | Some(KeyLocation::Aside) => return,
            Some(location) => location,
        };
        if change.entry.is_some() {
            return self.trace.breaks(&format!("a record does not parse: {location:?}"));
        }
        match location {
            KeyLocation::Namespaced(namespace, key) => {
                self.forget(&key);
                self.world.delete(&namespace, &key, revision);
            }
            KeyLocation::Global(key) => self.world.delete_global(&key, revision),
            KeyLocation::Aside => {}
        }
    }

    /// What is deleted begins anew when it is made again, as the manager of a cluster does.
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing is remembered of other records")]
    fn forget(&mut self, key: &Key) {
        self.views.iter_mut().for_each(|views| views.forget(key));
        match key {
            Key::Target(entity, target) => {
                self.in_flight.remove(&(entity.to_string(), target.clone()));
            }
            Key::Order(node) => drop(self.orders.remove(node)),
            Key::Presence(node) => drop(self.contacts.remove(node)),
            _ => {}
        }
    }

    /// Orders only move forward, and only the leader writes them.
    fn order(&mut self, node: &NodeName, order: &Order) {
        let before = self.orders.insert(node.clone(), order.clone());
        let back = |before: &Order| order.generation <= before.generation || order.term < before.term;
        if let Some(before) = before.filter(back) {
            self.trace.breaks(&format!(
                "{node} was assigned {} of term {} after {} of term {}",
                order.generation, order.term, before.generation, before.term
            ));
        }
        let leads = self.world.leader.as_ref().map(|kept| kept.revision.get());
        if leads != Some(order.term.get()) {
            self.trace
                .breaks(&format!("{node} was assigned a version by term {} while {leads:?} led", order.term));
        }
    }

    /// Events are numbered without gaps; a node's presence changes exactly when an event says so.
    fn events(
        &mut self,
        events: &[bellwether_core::records::event::Event],
        contacts: &[(NodeName, PresenceState)],
    ) {
        for event in events {
            if event.sequence != self.sequence.next() {
                self.trace.breaks(&format!("event {} follows {}", event.sequence, self.sequence));
            }
            self.sequence = event.sequence;
        }
        for (node, contact) in contacts {
            let subject = format!("node/{node}");
            let kind = format!("node.{}", contact.as_str());
            let before = self.contacts.insert(node.clone(), *contact);
            let said = events.iter().any(|event| event.subject == subject && event.kind == kind);
            if said == (before == Some(*contact)) && before.is_some() {
                self.trace.breaks(&format!("{node} went from {before:?} to {contact:?}, event: {said}"));
            }
        }
    }

    /// A node that could reach a server all the time is not declared unreachable.
    fn given_up(&self, node: &NodeName) {
        let able = self.able.lock().unwrap_or_else(PoisonError::into_inner);
        let since = able.get(node.as_str()).copied().flatten();
        if since.is_some_and(|since| since.elapsed() > ABLE) {
            self.trace.breaks(&format!("{node} was given up while it could call"));
        }
    }
}

fn record(change: &Change) -> Option<LocatedRecord> {
    let entry = change.entry.as_ref()?;
    match key_text::read(&change.key)? {
        KeyLocation::Namespaced(namespace, key) => {
            encoding::read(&key, &entry.value).ok().map(|record| LocatedRecord::Namespaced(namespace, record))
        }
        KeyLocation::Global(key) => encoding::read_global(&key, &entry.value).ok().map(LocatedRecord::Global),
        KeyLocation::Aside => None,
    }
}

/// The writes of a profile are linearizable: each acknowledged one is the revision it was answered with, a refused one does
/// not exist, revisions have no gaps, and a write that ended before another began precedes it.
pub fn linearisable(trace: &Trace, writes: &[Write], profile_revisions: &BTreeMap<u64, String>) {
    for (place, number) in profile_revisions.keys().enumerate() {
        if u64::try_from(place).unwrap_or(u64::MAX) + 1 != *number {
            trace.breaks(&format!("revisions have a gap before {number}"));
        }
    }
    let made =
        |text: &str| profile_revisions.iter().find(|(_, found)| *found == text).map(|(number, _)| *number);
    for write in writes {
        match (write.outcome, made(&write.text)) {
            (WriteOutcome::Made(number), Some(found)) if number == found && number == write.follows + 1 => {}
            (WriteOutcome::Made(number), found) => {
                trace.breaks(&format!(
                    "{} was acknowledged as {number} over {}, and is {found:?}",
                    write.text, write.follows
                ));
            }
            (WriteOutcome::Refused, Some(found)) => {
                trace.breaks(&format!("{} was refused, and is revision {found}", write.text));
            }
            (WriteOutcome::Refused, None) | (WriteOutcome::Unknown, _) => {}
        }
    }
    for earlier in writes {
        for later in writes.iter().filter(|later| later.asked > earlier.ended) {
            let Some((first, second)) = earlier.outcome.made().zip(later.outcome.made()) else { continue };
            if first >= second {
                trace.breaks(&format!("revision {second} was written after {first} was acknowledged"));
            }
        }
    }
}
