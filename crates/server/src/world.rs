//! The server's picture of the store: list, then watch, then fold each change; published as immutable snapshots.
//!
//! The list is the truth and the watch a hint: after a gap or a failure everything is listed again.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_api::shape::ShapeError;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::words::counter::{Revision, Sequence};
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_core::world::fleet::EVENTS_IN_MEMORY;
use bellwether_store::{Batch, Change, Range, Store, StoreError, Watch, WatchError};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::published::Publisher;
use crate::reconcile::sleep_or_never;
use crate::records::form;
use crate::records::keys::{self, Place};
use crate::rules::Rules;
use crate::sessions::Sessions;

/// Entries per page of the first list.
const PAGE: usize = 1_000;

/// Most batches folded before a snapshot is published.
const FOLD_AT_ONCE: usize = 256;

/// Most that wait for a list at once.
const ASKED: usize = 16;

/// Pause before the store is asked again after it failed.
const RETRY: Duration = Duration::from_millis(500);

/// Why the world could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The store did not answer.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A record does not parse.
    #[error("read the record {key}: could not {source}; restore a backup, or use the release that wrote it")]
    Record {
        /// Its key.
        key: String,
        /// What is wrong.
        source: ShapeError,
    },
}

/// Reads the whole world at one revision.
///
/// # Errors
/// [`WorldError`]; a record that does not parse is never skipped, because what follows from it would be wrong.
pub async fn load(store: &Store) -> Result<World, WorldError> {
    let all = Range::prefix(keys::ROOT);
    let mut page = store.list(all.clone(), None, PAGE).await?;
    let revision = page.revision;
    let mut records = Vec::new();
    let mut skipped = BTreeSet::new();
    loop {
        let mut last = None;
        for entry in &page.entries {
            last = Some(entry.key.clone());
            let Some((namespace, record)) = parse(&entry.key, &entry.value)? else { continue };
            let event = matches!(record, Record::Event(_)).then(|| namespace.clone()).flatten();
            records.push((namespace, record, Revision::new(entry.modified.0)));
            // Of a long event log only the oldest is needed, to know where it begins, and the newest.
            if let Some(namespace) = event.filter(|namespace| skipped.insert(namespace.clone())) {
                last = last.max(before_newest(store, &namespace, revision).await?);
                break;
            }
        }
        let read_all = last.as_ref() == page.entries.last().map(|entry| &entry.key);
        match last.filter(|_| page.more || !read_all) {
            Some(last) => page = store.list(all.after(&last), Some(revision), PAGE).await?,
            None => break,
        }
    }
    Ok(World::load(records.into_iter(), Revision::new(revision.0)))
}

/// The key behind which the newest events of a namespace begin, if there are more than are kept in memory.
async fn before_newest(
    store: &Store,
    namespace: &Namespace,
    at: bellwether_store::Revision,
) -> Result<Option<Bytes>, StoreError> {
    // At the revision that everything else is read at: a later number would leave a hole in memory.
    let entry = store.list(Range::one(keys::sequence(namespace)), Some(at), 1).await?.entries.pop();
    let last = entry.and_then(|entry| std::str::from_utf8(&entry.value).ok()?.parse::<u64>().ok());
    let before = last.and_then(|last| last.checked_sub(EVENTS_IN_MEMORY as u64));
    Ok(before.map(|before| keys::of(namespace, &Key::Event(Sequence::new(before)))))
}

fn parse(key: &[u8], value: &[u8]) -> Result<Option<(Option<Namespace>, Record)>, WorldError> {
    let Some(Place::Record(namespace, typed)) = keys::read(key) else { return Ok(None) };
    match form::read(&typed, value) {
        // What logs say is read when somebody asks: a fleet's worth of it is more than fits in memory.
        Ok(Record::Log(log)) => Ok(Some((namespace, Record::Log(log.without_text())))),
        Ok(record) => Ok(Some((namespace, record))),
        Err(source) => Err(WorldError::Record { key: String::from_utf8_lossy(key).into_owned(), source }),
    }
}

/// Has a follower list everything anew. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lister(mpsc::Sender<oneshot::Sender<()>>);

/// A follower's side of it.
pub type Asked = mpsc::Receiver<oneshot::Sender<()>>;

impl Lister {
    /// A lister, and what the follower listens to.
    #[must_use]
    pub fn new() -> (Self, Asked) {
        let (sender, asked) = mpsc::channel(ASKED);
        (Self(sender), asked)
    }

    /// Waits until everything was listed after this was called; false when asked to stop before.
    pub async fn list_again(&self, stop: &CancellationToken) -> bool {
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
pub struct Follower {
    /// The store.
    pub store: Store,
    /// Where the newest world goes.
    pub publisher: Publisher,
    /// Whom changes wake.
    pub sessions: Sessions,
    /// Who wants everything listed anew.
    pub asked: Asked,
    /// What it holds to because of the store.
    pub rules: Rules,
}

/// Why a stretch of watching ended.
enum Ended {
    Stopped,
    Failed,
    Wanted(Option<oneshot::Sender<()>>),
}

impl Follower {
    /// Follows the store from `world` on, publishing a snapshot after each stretch of changes, until asked to stop.
    pub async fn run(mut self, mut world: World, stop: CancellationToken) {
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        let mut went_back = false;
        loop {
            if waiting.is_empty() {
                match self.watch(&mut world, &stop).await {
                    Ended::Stopped => return,
                    Ended::Wanted(done) => waiting.extend(done),
                    Ended::Failed => {
                        // Both arms only wait.
                        tokio::select! {
                            () = stop.cancelled() => return,
                            () = tokio::time::sleep(RETRY) => {}
                        }
                    }
                }
            }
            // Whoever asked before a list begins is served by it.
            waiting.extend(std::iter::from_fn(|| self.asked.try_recv().ok()));
            let fresh = tokio::select! {
                () = stop.cancelled() => return,
                // Nothing is lost when the read is dropped.
                fresh = load(&self.store) => fresh,
            };
            match fresh {
                // Once is a member of the store that is behind; twice is a store that was put back.
                Ok(fresh) if fresh.revision < world.revision && !went_back => {
                    let (was, is) = (world.revision.get(), fresh.revision.get());
                    tracing::error!(was, is, "the store went back; listing everything again");
                    went_back = true;
                }
                Ok(fresh) => {
                    went_back = false;
                    world = fresh;
                    self.publisher.publish(world.clone());
                    self.sessions.ring_all();
                    let gone = waiting.drain(..).filter_map(|done| done.send(()).err()).count();
                    tracing::debug!(gone, "listed everything anew");
                }
                Err(error) => {
                    tracing::error!(%error, "could not read the world");
                    // Both arms only wait.
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(RETRY) => {}
                    }
                }
            }
        }
    }

    /// Follows one watch until it ends, or until everything is wanted anew.
    async fn watch(&mut self, world: &mut World, stop: &CancellationToken) -> Ended {
        let after = bellwether_store::Revision(world.revision.get());
        let mut watch = match self.store.watch(Range::prefix(keys::ROOT), after).await {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, "could not watch the store; listing everything again");
                return Ended::Failed;
            }
        };
        let due = sleep_or_never(self.rules.relist_every);
        tokio::pin!(due);
        loop {
            // Watch::next and recv are cancel safe; the others only wait.
            let batch = tokio::select! {
                () = stop.cancelled() => return Ended::Stopped,
                batch = watch.next() => batch,
                Some(done) = self.asked.recv() => return Ended::Wanted(Some(done)),
                () = &mut due => return Ended::Wanted(None),
            };
            if let Some(error) = self.take_in(batch, &mut watch, world) {
                tracing::warn!(%error, "listing everything again");
                return Ended::Failed;
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
                Ok(batch) => fold(world, batch, &mut ordered, self.rules),
                Err(error) => ended = Some(error),
            }
            folded += 1;
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

/// How far each namespace's catalogue is.
fn catalogues(world: &World) -> Vec<(Namespace, Revision)> {
    let fleets = world.fleets.iter();
    fleets.map(|(namespace, fleet)| (namespace.clone(), fleet.catalogue_log.last())).collect()
}

/// Folds a batch, and collects the nodes whose order was written in it.
fn fold(world: &mut World, batch: Batch, ordered: &mut Vec<(Namespace, NodeName)>, rules: Rules) {
    let revision = Revision::new(batch.revision.0);
    if revision <= world.revision && rules.drops_repeats {
        return;
    }
    for change in batch.changes {
        if let Some(Place::Record(Some(namespace), Key::Order(node))) = keys::read(&change.key) {
            ordered.push((namespace, node));
        }
        if let Err(error) = fold_change(world, &change, revision) {
            tracing::error!(%error, "ignoring a change that does not parse");
        }
    }
    world.revision = revision;
}

fn fold_change(world: &mut World, change: &Change, revision: Revision) -> Result<(), WorldError> {
    match (&change.entry, keys::read(&change.key)) {
        (Some(entry), _) => {
            if let Some((namespace, record)) = parse(&change.key, &entry.value)? {
                world.put(namespace.as_ref(), record, revision);
            }
        }
        (None, Some(Place::Record(namespace, key))) => world.delete(namespace.as_ref(), &key, revision),
        (None, Some(Place::Aside) | None) => {}
    }
    Ok(())
}
