//! The server's view of the store: list, watch, and fold each change into immutable snapshots, which are published.
//!
//! The list is authoritative and the watch is an optimisation: after a gap or a failure everything is listed again. Since a
//! watch may also miss something silently, the world is compared with the store at intervals and when a server begins to
//! lead, and listed again only if it differs. Meanwhile changes from the watch are published as usual.

use std::time::Duration;

use bellwether_core::records::key::{Key, LocatedRecord};
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_store::{Batch, Change, Range, Store, Watch, WatchError};
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::records::key_text::{self, KeyLocation};
use crate::sessions::Sessions;
use crate::set_back::SetBackNotice;
use crate::sleep::sleep_or_never;
use crate::store_rules::StoreRules;
use crate::world_view::WorldPublisher;

mod check;
mod list;
mod load;

pub use load::{WorldError, load};
pub(crate) use load::{parse, unreadable};

/// Changes that are folded before a snapshot is published, while more are pending: an order for a whole fleet reaches its
/// first nodes before all of it is folded.
const FOLD_AT_ONCE: usize = 1_000;

/// Most pending requests to bring the world up to date.
const ASKED: usize = 16;

/// Pause after the store failed.
const RETRY: Duration = Duration::from_millis(500);

/// Requests that the world be brought up to date with the store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RelistHandle(mpsc::Sender<oneshot::Sender<()>>);

/// The requests, as the follower receives them.
pub type RelistRequests = mpsc::Receiver<oneshot::Sender<()>>;

impl RelistHandle {
    /// A handle, and the receiver for the follower.
    #[must_use]
    pub fn new() -> (Self, RelistRequests) {
        let (sender, asked) = mpsc::channel(ASKED);
        (Self(sender), asked)
    }

    /// Waits until the published world contains everything that was committed before this call. False on
    /// `stop`.
    pub async fn bring_up_to_date(&self, stop: &CancellationToken) -> bool {
        let (done, listed) = oneshot::channel();
        let listed = async { self.0.send(done).await.is_ok() && listed.await.is_ok() };
        // Both arms only wait.
        tokio::select! {
            () = stop.cancelled() => false,
            listed = listed => listed,
        }
    }
}

/// The task that follows the store.
#[derive(Debug)]
pub struct WorldFollower {
    /// The store.
    pub store: Store,
    /// Publishes the worlds.
    pub publisher: WorldPublisher,
    /// Sessions that a change wakes.
    pub sessions: Sessions,
    /// Requests to bring the world up to date.
    pub asked: RelistRequests,
    /// Guards against defects of a shared store.
    pub rules: StoreRules,
    /// Counts the lists after the start, and the changes.
    pub metrics: Metrics,
    /// Where it is told that the store was set back.
    pub set_back: SetBackNotice,
}

/// The published world, and the sessions that its changes wake.
struct WorldUpdater {
    publisher: WorldPublisher,
    sessions: Sessions,
    rules: StoreRules,
    metrics: Metrics,
    set_back: SetBackNotice,
}

impl WorldFollower {
    /// Follows the store from `world` on and publishes a snapshot after each run of changes, until `stop`.
    pub async fn run(self, world: World, stop: CancellationToken) {
        // Dropping the future loses nothing.
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow(world) => {}
        }
    }

    async fn follow(self, mut world: World) {
        let Self { store, publisher, sessions, mut asked, rules, metrics, set_back } = self;
        let updater = WorldUpdater { publisher, sessions, rules, metrics, set_back };
        let mut watch = open(&store, &world).await;
        loop {
            let mut waiting = Vec::new();
            if let Some(open) = &mut watch {
                // ShownWorld::follow and recv are cancel safe; the last arm only waits.
                tokio::select! {
                    error = updater.follow(open, &mut world) => {
                        tracing::warn!(%error, "listing everything again");
                        watch = None;
                    }
                    Some(done) = asked.recv() => waiting.push(done),
                    () = sleep_or_never(rules.relist_every) => {}
                }
            }
            waiting.extend(std::iter::from_fn(|| asked.try_recv().ok()));
            if watch.is_some() && updater.is_up_to_date(&store, &mut world, &mut watch).await {
                answer_all(&mut waiting);
                continue;
            }
            if watch.is_none() {
                tokio::time::sleep(RETRY).await;
            }
            updater.metrics.lists.inc();
            let watched = WatchedWorld { world: &mut world, watch };
            watch = updater.list(&store, &mut asked, watched, waiting).await;
        }
    }
}

/// A world, and the watch that keeps it up to date.
struct WatchedWorld<'a> {
    world: &'a mut World,
    /// `None` after it failed.
    watch: Option<Watch>,
}

impl WorldUpdater {
    /// Folds and publishes the changes of a watch until it fails; returns the error. Cancel safe: it waits only in [`Watch::next`].
    async fn follow(&self, watch: &mut Watch, world: &mut World) -> WatchError {
        loop {
            let batch = watch.next().await;
            if let Some(error) = self.apply(batch, watch, world) {
                return error;
            }
        }
    }

    /// Folds and publishes the changes of a watch up to `revision`; returns the error if the watch failed before.
    async fn follow_to(
        &self,
        revision: Revision,
        watch: &mut Watch,
        world: &mut World,
    ) -> Option<WatchError> {
        while world.revision < revision {
            let batch = watch.next().await;
            if let Some(error) = self.apply(batch, watch, world) {
                return Some(error);
            }
        }
        None
    }

    /// Runs `work`, and follows `watch` meanwhile.
    async fn meanwhile<T>(
        &self,
        work: impl Future<Output = T>,
        world: &mut World,
        watch: &mut Option<Watch>,
    ) -> T {
        tokio::pin!(work);
        if let Some(open) = watch {
            // `work` goes on when the watch fails; ShownWorld::follow is cancel safe.
            tokio::select! {
                done = &mut work => return done,
                error = self.follow(open, world) => tracing::warn!(%error, "the watch ended"),
            }
            *watch = None;
        }
        work.await
    }

    /// Folds a batch and those that are pending, publishes the result and wakes sessions. Returns the error if the watch failed.
    fn apply(
        &self,
        batch: Result<Batch, WatchError>,
        watch: &mut Watch,
        world: &mut World,
    ) -> Option<WatchError> {
        let mut ended = None;
        let mut next = Some(batch);
        let mut folded = 0;
        let mut ordered = Vec::new();
        let before = catalogues(world);
        while let Some(batch) = next.take() {
            match batch {
                Ok(batch) => {
                    folded += batch.changes.len();
                    fold(world, batch, &mut ordered, self.rules);
                }
                Err(error) => ended = Some(error),
            }
            if ended.is_none() && folded < FOLD_AT_ONCE {
                next = watch.next().now_or_never();
            }
        }
        self.metrics.changes.inc_by(u64::try_from(folded).unwrap_or(u64::MAX));
        self.publisher.publish(world.clone());
        for (namespace, _) in catalogues(world).into_iter().filter(|now| !before.contains(now)) {
            self.sessions.wake_catalogue(&namespace);
        }
        ordered.iter().for_each(|(namespace, node)| self.sessions.wake(namespace, node));
        ended
    }
}

/// Answers the requests; some of the callers may be gone.
fn answer_all(waiting: &mut Vec<oneshot::Sender<()>>) {
    let gone = waiting.drain(..).filter_map(|done| done.send(()).err()).count();
    tracing::debug!(gone, "the world is up to date");
}

/// Opens a watch from the world's revision on; none if the store fails.
async fn open(store: &Store, world: &World) -> Option<Watch> {
    let after = bellwether_store::Revision(world.revision.get());
    match store.watch(Range::prefix(key_text::ROOT), after).await {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(%error, "cannot watch the store; listing everything again");
            None
        }
    }
}

/// The revision of each namespace's catalogue.
fn catalogues(world: &World) -> Vec<(Namespace, Revision)> {
    let fleets = world.fleets.iter();
    fleets.map(|(namespace, fleet)| (namespace.clone(), fleet.catalogue_log.last())).collect()
}

/// Folds a batch, and collects the nodes whose orders changed.
fn fold(world: &mut World, batch: Batch, ordered: &mut Vec<(Namespace, NodeName)>, rules: StoreRules) {
    let revision = Revision::new(batch.revision.0);
    if revision <= world.revision && rules.drops_repeats {
        return;
    }
    for change in batch.changes {
        let location = key_text::read(&change.key);
        let before_members = location.as_ref().map(|location| members(world, location)).unwrap_or_default();
        let was_live = location.as_ref().is_some_and(|location| is_live(world, location));
        if let Err(error) = fold_change(world, &change, revision) {
            tracing::error!(%error, "ignoring a change that does not parse");
        }
        match location {
            Some(KeyLocation::Namespaced(
                namespace,
                Key::Order(node) | Key::NodeParams(node) | Key::Node(node) | Key::Facts(node),
            )) => {
                ordered.push((namespace, node));
            }
            Some(KeyLocation::Namespaced(namespace, Key::Cluster(name))) => {
                // Those that were members no longer read its profile, and those that are do.
                let now = members(world, &KeyLocation::Namespaced(namespace.clone(), Key::Cluster(name)));
                ordered.extend(before_members.into_iter().chain(now).map(|node| (namespace.clone(), node)));
            }
            Some(location) if was_live || is_live(world, &location) => {
                ordered.extend(readers(world, location))
            }
            Some(_) | None => {}
        }
    }
    world.revision = revision;
}

/// Whether it is the place of a live profile.
fn is_live(world: &World, location: &KeyLocation) -> bool {
    let KeyLocation::Namespaced(namespace, Key::Profile(name)) = location else { return false };
    world.fleets.get(namespace).and_then(|fleet| fleet.profile(name)).is_some_and(|profile| profile.live)
}

/// The members of the cluster at this place.
fn members(world: &World, location: &KeyLocation) -> Vec<NodeName> {
    let KeyLocation::Namespaced(namespace, Key::Cluster(name)) = location else { return Vec::new() };
    let fleet = world.fleets.get(namespace).into_iter();
    fleet.flat_map(|fleet| fleet.membership.members(name)).cloned().collect()
}

/// The nodes that read the profile at this place while it is live.
fn readers(world: &World, location: KeyLocation) -> Vec<(Namespace, NodeName)> {
    let KeyLocation::Namespaced(namespace, Key::Profile(name)) = location else { return Vec::new() };
    let Some(fleet) = world.fleets.get(&namespace) else { return Vec::new() };
    fleet.readers(&name).map(|node| (namespace.clone(), node.clone())).collect()
}

fn fold_change(world: &mut World, change: &Change, revision: Revision) -> Result<(), WorldError> {
    match (&change.entry, key_text::read(&change.key)) {
        (Some(entry), _) => match parse(&change.key, &entry.value)? {
            Some(LocatedRecord::Namespaced(namespace, record)) => world.put(&namespace, record, revision),
            Some(LocatedRecord::Global(record)) => world.put_global(record, revision),
            None => {}
        },
        (None, Some(KeyLocation::Namespaced(namespace, key))) => world.delete(&namespace, &key, revision),
        (None, Some(KeyLocation::Global(key))) => world.delete_global(&key, revision),
        (None, Some(KeyLocation::Aside) | None) => {}
    }
    Ok(())
}
