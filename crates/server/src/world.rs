//! The server's picture of the store: list, then watch, then fold each change; published as immutable snapshots.
//!
//! The list is the truth and the watch a hint: after a gap or a failure everything is listed again. A watch that goes may have
//! missed something all the same: from time to time, and by a new leader, what is shown is compared with what the store holds,
//! and listed again only if it differs. Both take a while, so what the watch tells is shown meanwhile.

use std::time::Duration;

use bellwether_core::records::key::Key;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_store::{Batch, Change, Range, Store, Watch, WatchError};
use futures_util::FutureExt;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::hook_rules::HookRules;
use crate::reconcile::sleep_or_never;
use crate::records::key_text::{self, KeyLocation};
use crate::sessions::Sessions;
use crate::world_view::WorldPublisher;

mod check;
mod load;

use load::parse;
pub use load::{WorldError, load};

/// Changes folded before a snapshot is published, if as many are there: an order to a whole fleet is on its way to the first
/// while the last is still being taken in.
const FOLD_AT_ONCE: usize = 1_000;

/// Most that wait for a list at once.
const ASKED: usize = 16;

/// Pause before the store is asked again after it failed.
const RETRY: Duration = Duration::from_millis(500);

/// How long the watch may take to tell what was shown already, after a list.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(2);

/// Has a follower make sure of what it shows. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RelistHandle(mpsc::Sender<oneshot::Sender<()>>);

/// A follower's side of it.
pub type RelistRequests = mpsc::Receiver<oneshot::Sender<()>>;

impl RelistHandle {
    /// A lister, and what the follower listens to.
    #[must_use]
    pub fn new() -> (Self, RelistRequests) {
        let (sender, asked) = mpsc::channel(ASKED);
        (Self(sender), asked)
    }

    /// Waits until this server shows all that was committed before this was called, and knows that it does; false when asked to
    /// stop before.
    pub async fn make_sure(&self, stop: &CancellationToken) -> bool {
        let (done, listed) = oneshot::channel();
        let listed = async { self.0.send(done).await.is_ok() && listed.await.is_ok() };
        // Both arms only wait.
        tokio::select! {
            () = stop.cancelled() => false,
            listed = listed => listed,
        }
    }
}

/// A follower's parts.
#[derive(Debug)]
pub struct WorldFollower {
    /// The store.
    pub store: Store,
    /// Where the newest world goes.
    pub publisher: WorldPublisher,
    /// Whom changes wake.
    pub sessions: Sessions,
    /// Who wants to be sure of what is shown.
    pub asked: RelistRequests,
    /// What it holds to because of the store.
    pub rules: HookRules,
    /// How often it read everything anew.
    pub lists: Counter,
}

/// What is shown of the world, and whom that wakes.
struct ShownWorld {
    publisher: WorldPublisher,
    sessions: Sessions,
    rules: HookRules,
}

impl WorldFollower {
    /// Follows the store from `world` on, publishing a snapshot after each stretch of changes, until asked to stop.
    pub async fn run(self, world: World, stop: CancellationToken) {
        // Nothing is lost when the following is dropped.
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow(world) => {}
        }
    }

    async fn follow(self, mut world: World) {
        let Self { store, publisher, sessions, mut asked, rules, lists } = self;
        let shown = ShownWorld { publisher, sessions, rules };
        let mut watch = open(&store, &world).await;
        loop {
            let mut waiting = Vec::new();
            if let Some(open) = &mut watch {
                // Shown::follow and recv are cancel safe; the last one only waits.
                tokio::select! {
                    error = shown.follow(open, &mut world) => {
                        tracing::warn!(%error, "listing everything again");
                        watch = None;
                    }
                    Some(done) = asked.recv() => waiting.push(done),
                    () = sleep_or_never(rules.relist_every) => {}
                }
            }
            waiting.extend(std::iter::from_fn(|| asked.try_recv().ok()));
            if watch.is_some() && shown.is_sure(&store, (&mut world, &mut watch)).await {
                told(&mut waiting);
                continue;
            }
            if watch.is_none() {
                tokio::time::sleep(RETRY).await;
            }
            lists.inc();
            watch = shown.list(&store, &mut asked, (&mut world, watch), waiting).await;
        }
    }
}

impl ShownWorld {
    /// Takes in what a watch tells until it ends, and says why it did. Waits only in [`Watch::next`], which is cancel safe.
    async fn follow(&self, watch: &mut Watch, world: &mut World) -> WatchError {
        loop {
            let batch = watch.next().await;
            if let Some(error) = self.take_in(batch, watch, world) {
                return error;
            }
        }
    }

    /// Takes in what a watch tells until that much is shown; says why the watch ended, if it did before.
    async fn follow_to(
        &self,
        revision: Revision,
        watch: &mut Watch,
        world: &mut World,
    ) -> Option<WatchError> {
        while world.revision < revision {
            let batch = watch.next().await;
            if let Some(error) = self.take_in(batch, watch, world) {
                return Some(error);
            }
        }
        None
    }

    /// Follows `watch`, for as long as it goes, until `work` is done.
    async fn meanwhile<T>(
        &self,
        work: impl Future<Output = T>,
        world: &mut World,
        watch: &mut Option<Watch>,
    ) -> T {
        tokio::pin!(work);
        if let Some(open) = watch {
            // The work is kept when the watch ends; Shown::follow is cancel safe.
            tokio::select! {
                done = &mut work => return done,
                error = self.follow(open, world) => tracing::warn!(%error, "the watch ended"),
            }
            *watch = None;
        }
        work.await
    }

    /// Lists everything until that succeeds, and shows it to those who are `waiting` for it and to all others. Until then `watch`
    /// is followed, for as long as it goes. Returns the next one.
    async fn list(
        &self,
        store: &Store,
        asked: &mut RelistRequests,
        (world, mut watch): (&mut World, Option<Watch>),
        mut waiting: Vec<oneshot::Sender<()>>,
    ) -> Option<Watch> {
        let mut went_back = false;
        loop {
            // Whoever asked before a list begins is served by it.
            waiting.extend(std::iter::from_fn(|| asked.try_recv().ok()));
            let before = world.revision;
            let Some(fresh) = self.read(store, world, &mut watch).await else { continue };
            if fresh.revision < before && !went_back {
                // Once is a member of the store that is behind; twice is a store that was put back.
                let (was, is) = (before.get(), fresh.revision.get());
                tracing::error!(was, is, "the store went back; listing everything again");
                went_back = true;
                continue;
            }
            let at_least = if fresh.revision < before { fresh.revision } else { world.revision };
            let Some((fresh, next)) = self.catch_up(store, fresh, at_least).await else {
                watch = None;
                continue;
            };
            *world = fresh;
            self.publisher.publish(world.clone());
            self.sessions.ring_all();
            told(&mut waiting);
            return next;
        }
    }

    /// Reads everything, and follows `watch` meanwhile. None, after a while, if it cannot be read.
    async fn read(&self, store: &Store, world: &mut World, watch: &mut Option<Watch>) -> Option<World> {
        let known = world.clone();
        let reading = async {
            match load(store, &known).await {
                Ok(fresh) => Some(fresh),
                Err(error) => {
                    tracing::error!(%error, "could not read the world");
                    tokio::time::sleep(RETRY).await;
                    None
                }
            }
        };
        self.meanwhile(reading, world, watch).await
    }

    /// Brings what was just listed as far as the world that is shown, so that nothing that was shown is unsaid: by a watch of
    /// its own, which may know what the former missed. None if that takes too long.
    async fn catch_up(
        &self,
        store: &Store,
        mut fresh: World,
        at_least: Revision,
    ) -> Option<(World, Option<Watch>)> {
        let Some(mut watch) = open(store, &fresh).await else {
            return (fresh.revision >= at_least).then_some((fresh, None));
        };
        // Everybody is woken by what is listed, so nobody has to be for this.
        let mut ordered = Vec::new();
        let catching_up = async {
            while fresh.revision < at_least {
                fold(&mut fresh, watch.next().await?, &mut ordered, self.rules);
            }
            Ok::<(), WatchError>(())
        };
        match tokio::time::timeout(CATCH_UP_WITHIN, catching_up).await {
            Ok(Ok(())) => Some((fresh, Some(watch))),
            Ok(Err(error)) => {
                tracing::warn!(%error, "listing everything again");
                None
            }
            Err(_) => {
                tracing::warn!(%at_least, "the watch is behind; listing everything again");
                None
            }
        }
    }

    /// Folds a batch and those that are there already, and shows what came of it. Says why the watch ended, if it did.
    fn take_in(
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
        self.publisher.publish(world.clone());
        for (namespace, _) in catalogues(world).into_iter().filter(|now| !before.contains(now)) {
            self.sessions.ring_catalogue(&namespace);
        }
        for (namespace, node) in ordered {
            self.sessions.ring(&namespace, &node);
        }
        ended
    }
}

/// Tells those who waited; some may have gone.
fn told(waiting: &mut Vec<oneshot::Sender<()>>) {
    let gone = waiting.drain(..).filter_map(|done| done.send(()).err()).count();
    tracing::debug!(gone, "what is shown is what the store holds");
}

/// A watch from where a world is on; none if there is none to be had now.
async fn open(store: &Store, world: &World) -> Option<Watch> {
    let after = bellwether_store::Revision(world.revision.get());
    match store.watch(Range::prefix(key_text::ROOT), after).await {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(%error, "could not watch the store; listing everything again");
            None
        }
    }
}

/// How far each namespace's catalogue is.
fn catalogues(world: &World) -> Vec<(Namespace, Revision)> {
    let fleets = world.fleets.iter();
    fleets.map(|(namespace, fleet)| (namespace.clone(), fleet.catalogue_log.last())).collect()
}

/// Folds a batch, and collects the nodes whose order was written in it.
fn fold(world: &mut World, batch: Batch, ordered: &mut Vec<(Namespace, NodeName)>, rules: HookRules) {
    let revision = Revision::new(batch.revision.0);
    if revision <= world.revision && rules.drops_repeats {
        return;
    }
    for change in batch.changes {
        if let Some(KeyLocation::Record(Some(namespace), Key::Order(node))) = key_text::read(&change.key) {
            ordered.push((namespace, node));
        }
        if let Err(error) = fold_change(world, &change, revision) {
            tracing::error!(%error, "ignoring a change that does not parse");
        }
    }
    world.revision = revision;
}

fn fold_change(world: &mut World, change: &Change, revision: Revision) -> Result<(), WorldError> {
    match (&change.entry, key_text::read(&change.key)) {
        (Some(entry), _) => {
            if let Some((namespace, record)) = parse(&change.key, &entry.value)? {
                world.put(namespace.as_ref(), record, revision);
            }
        }
        (None, Some(KeyLocation::Record(namespace, key))) => world.delete(namespace.as_ref(), &key, revision),
        (None, Some(KeyLocation::Aside) | None) => {}
    }
    Ok(())
}
