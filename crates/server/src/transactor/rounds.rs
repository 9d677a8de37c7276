//! Rounds: changes of one record that wait for each other are decided one after the other on one draft, each on the result of the one
//! before it, and committed in one transaction. Owns who joins which round; decides and commits nothing.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::AnyKey;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_core::world::World;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::draft::Draft;
use crate::records::commit::{CommitError, Proposal, ProposedEvent};
use crate::records::encoding;

/// Number of slots. Records that share one by chance wait for each other too.
const SLOTS: usize = 256;

/// Most writes and events of a round: three quarters of a transaction, so that it does not keep out what else is committed with it.
const MAX_ROUND_OPS: usize = 96;

/// Most bytes of a round, half of those of a transaction. A single change may have more.
const MAX_ROUND_BYTES: usize = 512 << 10;

/// The result of a round, for all of its members: they wait together until the world shows it.
type SharedCommit = Shared<BoxFuture<'static, Result<Revision, CommitError>>>;

/// The slots of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Rounds {
    slots: Arc<Vec<RoundSlot>>,
    hasher: RandomState,
}

/// Where the changes of a record wait.
#[derive(Debug)]
pub(super) struct RoundSlot {
    /// Whose turn it is: to decide, or to commit what was decided.
    turn: Arc<Semaphore>,
    /// The round that may be joined, with the key of its record.
    open: Mutex<Option<(Bytes, Weak<Round>)>>,
}

/// Changes that are committed together.
#[derive(Debug)]
pub(super) struct Round {
    namespace: Namespace,
    draft: Draft,
    load: Mutex<RoundLoad>,
    proposed: watch::Sender<Option<SharedCommit>>,
}

/// What a round has so far, besides the changes in its draft.
#[derive(Debug, Default)]
struct RoundLoad {
    events: Vec<(Actor, EventDraft)>,
    written: BTreeSet<AnyKey>,
    guarded: BTreeSet<AnyKey>,
    bytes: usize,
}

impl Default for Rounds {
    fn default() -> Self {
        let slot = || RoundSlot { turn: Arc::new(Semaphore::new(1)), open: Mutex::default() };
        Self { slots: Arc::new((0..SLOTS).map(|_| slot()).collect()), hasher: RandomState::new() }
    }
}

impl Rounds {
    /// The slot of the record under a key of the store.
    pub(super) fn slot(&self, key: &[u8]) -> Option<&RoundSlot> {
        let hash = usize::try_from(self.hasher.hash_one(key)).unwrap_or_default();
        self.slots.get(hash % SLOTS)
    }
}

impl RoundSlot {
    /// Waits for a turn, behind those who wait already. It lasts until it is dropped.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turn).acquire_owned().await.ok()
    }

    /// The open round and whether it is of this record; none if all of its members are gone. For whoever has the turn.
    pub(super) fn open_round(&self, key: &Bytes) -> Option<(Arc<Round>, bool)> {
        let open = self.open();
        let (of, round) = open.as_ref()?;
        Some((round.upgrade()?, of == key))
    }

    /// Opens a round to those who have the turn next.
    pub(super) fn offer(&self, key: &Bytes, round: &Arc<Round>) {
        *self.open() = Some((key.clone(), Arc::downgrade(round)));
    }

    fn open(&self) -> MutexGuard<'_, Option<(Bytes, Weak<Round>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the round was proposed, or until everyone who waited when its last member joined has decided: then the turn to
    /// propose it is answered.
    pub(super) async fn until_proposed(&self, round: &Round) -> Option<OwnedSemaphorePermit> {
        let mut proposed = round.proposed.subscribe();
        // Both arms only wait: a turn that was got and not used is returned.
        tokio::select! {
            biased;
            _ = proposed.wait_for(Option::is_some) => None,
            turn = self.turn() => turn,
        }
    }

    /// Ends a round: nobody joins it any more, and its members get the result of the commit once the world shows it.
    pub(super) fn close(
        &self,
        round: &Arc<Round>,
        shown: impl Future<Output = Result<Revision, CommitError>> + Send + 'static,
    ) {
        let mut open = self.open();
        if open.as_ref().is_some_and(|(_, other)| other.as_ptr() == Arc::as_ptr(round)) {
            *open = None;
        }
        round.proposed.send_replace(Some(shown.boxed().shared()));
    }
}

impl Round {
    /// A round without changes on this world.
    pub(super) fn new(namespace: &Namespace, base: Arc<World>) -> Self {
        let proposed = watch::channel(None).0;
        Self { namespace: namespace.clone(), draft: Draft::new(base), load: Mutex::default(), proposed }
    }

    /// The world that the round was begun on.
    pub(super) const fn base(&self) -> &Arc<World> {
        self.draft.base()
    }

    /// The world with the changes so far.
    pub(super) fn world(&self) -> Arc<World> {
        self.draft.world()
    }

    /// Whether nobody changed anything yet.
    pub(super) fn is_empty(&self) -> bool {
        self.load().written.is_empty()
    }

    /// Adds what a member changes; false if it does not fit any more.
    ///
    /// # Errors
    /// [`CommitError::Shape`].
    pub(super) fn add(&self, actor: &Actor, guarded: GuardedChangeset) -> Result<bool, CommitError> {
        let GuardedChangeset { changeset: Changeset { writes, events }, guards } = guarded;
        let mut load = self.load();
        let mut bytes = load.bytes;
        for write in &writes {
            if let Write::Put(record) = write {
                bytes += encoding::write_any(record).map_err(CommitError::Shape)?.len();
            }
        }
        let written: BTreeSet<AnyKey> = writes.iter().map(Write::key).collect();
        let operations = load.written.union(&written).count() + load.events.len() + events.len();
        let compares = load.written.union(&written).count() + load.guarded.len() + guards.len();
        let is_full = bytes > MAX_ROUND_BYTES || operations > MAX_ROUND_OPS || compares > MAX_ROUND_OPS;
        if is_full && !load.written.is_empty() {
            return Ok(false);
        }
        load.bytes = bytes;
        load.written.extend(written);
        load.guarded.extend(guards.iter().cloned());
        load.events.extend(events.into_iter().map(|event| (actor.clone(), event)));
        drop(load);
        let changeset = Changeset { writes, events: Vec::new() };
        self.draft.collect(&self.namespace, GuardedChangeset { changeset, guards });
        Ok(true)
    }

    /// All changes, guarded by the revisions of the world that the round was begun on.
    pub(super) fn proposal(&self, by: &Actor) -> Proposal {
        let GuardedChangeset { changeset, guards } = self.draft.changes();
        let revision = |key: &AnyKey| self.base().revision(&self.namespace, key);
        let writes = changeset.writes.into_iter().map(|write| {
            let revision = revision(&write.key());
            (write, revision)
        });
        // What one member wrote and a later one deleted never was there.
        let never = |write: &Write, at: Revision| matches!(write, Write::Delete(_)) && at == Revision::ZERO;
        let load = self.load();
        let seen = guards.into_iter().filter(|key| !load.written.contains(key));
        let writes: Vec<_> = writes.filter(|(write, at)| !never(write, *at)).collect();
        Proposal {
            namespace: self.namespace.clone(),
            actor: by.clone(),
            term: None,
            seen: seen.map(|key| (key.clone(), revision(&key))).collect(),
            events: ProposedEvent::all(self.base(), &self.namespace, load.events.clone(), &writes),
            writes,
            line: None,
        }
    }

    /// Waits until the world shows the commit; for members of a round that was proposed.
    pub(super) async fn result(&self) -> Result<Revision, CommitError> {
        let commit = self.proposed.borrow().clone();
        match commit {
            Some(commit) => commit.await,
            None => Err(CommitError::Closed),
        }
    }

    fn load(&self) -> MutexGuard<'_, RoundLoad> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
