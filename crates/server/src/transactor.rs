//! Optimistic transactions: read the world, decide, commit, retry on conflict.

mod draft;
mod queues;
mod rounds;
mod slices;
mod together;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::key::AnyKey;
use bellwether_core::verdict::{Changeset, GuardedChangeset};
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_rt::clock::Clock;
use bellwether_store::Store;
use tokio::sync::watch;

pub use self::draft::Draft;
use self::queues::RecordQueues;
use self::rounds::Rounds;
use crate::quotas::{self, NodeQuotas, QuotaUse, QuotaUsed};
use crate::records::commit::{
    CommitError, CommitPipeline, Committer, PendingCommit, Proposal, ProposedEvent,
};
use crate::records::key_text;
use crate::secrets::keyring::Keyring;
use crate::world_view::PublishedWorld;

/// Attempts of an operation until it reports the conflict.
pub(crate) const TRIES: u32 = 16;

/// Longest wait until the world contains a commit. It takes milliseconds unless the store is slow; the commit stands either
/// way.
const SHOW_WITHIN: Duration = Duration::from_secs(5);

/// Most slices of one verdict in flight: enough to keep the store busy, few enough that a person's change in between waits
/// only for these.
const IN_LINE: usize = 24;

/// Runs transactions on records. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Transactor {
    published: PublishedWorld,
    committer: Committer,
    store: Store,
    clock: Clock,
    keyring: Keyring,
    queues: RecordQueues,
    rounds: Rounds,
    quotas: NodeQuotas,
    /// Where changes are collected instead of being committed; none in a transactor that commits.
    draft: Option<Draft>,
}

/// Who commits, and what must still hold.
#[derive(Debug, Clone)]
pub struct CommitContext {
    /// The actor of the events.
    pub actor: Actor,
    /// The term that a decider decided in.
    pub term: Option<Term>,
    /// Records that were read and must be unchanged, besides those that are written.
    pub seen: Vec<AnyKey>,
}

impl CommitContext {
    /// The context of a person, a program or a node.
    #[must_use]
    pub const fn person(actor: Actor) -> Self {
        Self { actor, term: None, seen: Vec::new() }
    }

    /// The context of a decider, without a term.
    #[must_use]
    pub fn decider() -> Self {
        let actor = Actor::parse("bellwether").expect("plain letters are an actor");
        Self { actor, term: None, seen: Vec::new() }
    }

    fn propose(self, world: &World, namespace: &Namespace, changesets: Vec<Changeset>) -> Proposal {
        let (mut writes, mut events) = (Vec::new(), Vec::new());
        for changeset in changesets {
            writes.extend(changeset.writes.into_iter().map(|write| {
                let revision = world.revision(namespace, &write.key());
                (write, revision)
            }));
            events.extend(changeset.events.into_iter().map(|event| (self.actor.clone(), event)));
        }
        let seen = self.seen.into_iter().map(|key| {
            let revision = world.revision(namespace, &key);
            (key, revision)
        });
        let events = ProposedEvent::all(world, namespace, events, &writes);
        Proposal {
            namespace: namespace.clone(),
            seen: seen.collect(),
            actor: self.actor,
            term: self.term,
            writes,
            events,
            line: None,
        }
    }
}

impl Transactor {
    /// A transactor on the published worlds, a committer, and the store that both are of.
    #[must_use]
    pub fn new(published: PublishedWorld, committer: Committer, store: Store, clock: Clock) -> Self {
        Self {
            published,
            committer,
            store,
            clock,
            keyring: Keyring::default(),
            queues: RecordQueues::default(),
            rounds: Rounds::default(),
            quotas: NodeQuotas::default(),
            draft: None,
        }
    }

    /// The same with these keys for secrets.
    #[must_use]
    pub fn with_keys(self, keyring: Keyring) -> Self {
        Self { keyring, ..self }
    }

    /// The same with these quotas of nodes.
    #[must_use]
    pub(crate) fn with_quotas(self, quotas: NodeQuotas) -> Self {
        Self { quotas, ..self }
    }

    /// Uses some of the quota of an actor that is a node; others have none.
    ///
    /// # Errors
    /// [`CommitError::NodeQuota`] if it is used up.
    pub(crate) async fn take_quota(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        taken: QuotaUse,
    ) -> Result<(), CommitError> {
        let Err(QuotaUsed { retry_after_ms, is_to_be_told }) =
            self.quotas.take(namespace, actor, taken, self.now())
        else {
            return Ok(());
        };
        if is_to_be_told {
            tracing::warn!(%namespace, node = %actor, "a node changes more than it may");
            let told = Changeset { writes: Vec::new(), events: vec![quotas::event(actor)] };
            let (world, by) = (self.world(), CommitContext::decider());
            if let Err(error) = self.commit(&world, namespace, by, vec![told]).await {
                tracing::warn!(%error, "cannot record that a node is limited");
            }
        }
        Err(CommitError::NodeQuota { retry_after_ms })
    }

    /// The keys that secrets are encrypted with.
    #[must_use]
    pub const fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// The newest world.
    #[must_use]
    pub fn world(&self) -> Arc<World> {
        self.draft.as_ref().map_or_else(|| self.published.world(), Draft::world)
    }

    /// A transactor for the same operations that commits nothing: their changes are collected in the draft, and each
    /// operation sees what those before it changed. Entities, filters, freezes, pauses, profiles and slots can be drafted.
    #[must_use]
    pub fn draft(&self) -> (Self, Draft) {
        let draft = Draft::new(self.world());
        (Self { draft: Some(draft.clone()), ..self.clone() }, draft)
    }

    /// Whether changes are collected in a draft.
    #[must_use]
    pub const fn is_draft(&self) -> bool {
        self.draft.is_some()
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A receiver that sees every published world.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Arc<World>> {
        self.published.follow()
    }

    /// Waits until the world contains `revision`, for a limited time.
    pub async fn wait_for_revision(&self, revision: Revision) {
        match tokio::time::timeout(SHOW_WITHIN, self.reaches(revision)).await {
            Ok(true) => {}
            Ok(false) => tracing::debug!("the world is no longer published"),
            Err(_) => tracing::warn!(%revision, "the world lags behind the store"),
        }
    }

    /// Waits until the world contains what a proposal that was decided on `world` conflicted with: the change `at`, or the next one if
    /// that is not known.
    pub async fn after_conflict(&self, world: &World, at: Revision) {
        self.wait_for_revision(at.max(world.revision.next())).await;
    }

    /// Waits until the world contains `revision`, without a limit. False when the server stops first.
    pub async fn reaches(&self, revision: Revision) -> bool {
        self.published.reaches(revision).await
    }

    /// Commits changesets decided on `world` in one transaction, and waits until the world contains them.
    ///
    /// # Errors
    /// [`CommitError`].
    pub async fn commit(
        &self,
        world: &World,
        namespace: &Namespace,
        by: CommitContext,
        changesets: Vec<Changeset>,
    ) -> Result<Revision, CommitError> {
        let revision = self.committer.commit(by.propose(world, namespace, changesets)).await?;
        self.wait_for_revision(revision).await;
        Ok(revision)
    }

    /// Commits changesets decided on `world`, in slices of one transaction each, in order, and waits until the world contains
    /// them. After the first failed slice no later one is committed.
    ///
    /// # Errors
    /// [`CommitError`] of the first failed slice; those before it are committed.
    pub async fn commit_in_line(
        &self,
        world: &World,
        namespace: &Namespace,
        by: CommitContext,
        changesets: Vec<Changeset>,
    ) -> Result<(), CommitError> {
        let line = CommitPipeline::default();
        let mut in_flight = VecDeque::new();
        let mut result = Ok(Revision::ZERO);
        for slice in slices::slices(namespace, changesets) {
            let proposal =
                Proposal { line: Some(line.clone()), ..by.clone().propose(world, namespace, slice) };
            match self.committer.propose(proposal).await {
                Ok(pending) => in_flight.push_back(pending),
                Err(error) => result = result.and(Err(error)),
            }
            if in_flight.len() >= IN_LINE {
                result = settle(in_flight.pop_front(), result).await;
            }
            if result.is_err() {
                break;
            }
        }
        while !in_flight.is_empty() {
            result = settle(in_flight.pop_front(), result).await;
        }
        self.wait_for_revision(result?).await;
        Ok(())
    }

    /// Runs a transaction: `decide` reads the fleet and returns a changeset, which is committed unless a record that it writes
    /// or is guarded by has changed; after such a conflict it decides again on the newer world. Without a changeset nothing is
    /// committed.
    ///
    /// # Errors
    /// The refusal of `decide`, or the [`CommitError`].
    pub async fn change<T, E: From<CommitError>, C: Into<GuardedChangeset>>(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        decide: impl FnMut(&World, &Fleet, Timestamp) -> Result<(Option<C>, T), E>,
    ) -> Result<T, E> {
        self.run(namespace, actor, None, decide).await
    }

    /// The same for a comparison with one record: if nothing is committed, also that was decided on the record as it is in the
    /// store. Another server may have written it, and answered, before this server's world shows it.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub async fn compare<T, E: From<CommitError>, C: Into<GuardedChangeset>>(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        record: &AnyKey,
        decide: impl FnMut(&World, &Fleet, Timestamp) -> Result<(Option<C>, T), E>,
    ) -> Result<T, E> {
        self.run(namespace, actor, Some(record), decide).await
    }

    async fn run<T, E: From<CommitError>, C: Into<GuardedChangeset>>(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        compared: Option<&AnyKey>,
        mut decide: impl FnMut(&World, &Fleet, Timestamp) -> Result<(Option<C>, T), E>,
    ) -> Result<T, E> {
        let empty = self.world().empty_fleet();
        // Of many writers of one record, each decides on what the one before wrote.
        let queued =
            compared.filter(|_| self.draft.is_none()).map(|record| key_text::of_any(namespace, record));
        let _turn = match &queued {
            Some(key) => self.queues.turn(key).await,
            None => None,
        };
        let (mut tries, mut is_charged) = (0, false);
        loop {
            let world = self.world();
            let fleet = world.fleets.get(namespace).unwrap_or(&empty);
            tries += 1;
            let (guarded, answer): (GuardedChangeset, T) = match decide(&world, fleet, self.now()) {
                Ok((Some(guarded), answer)) => (guarded.into(), answer),
                nothing => {
                    let compared = compared.filter(|_| self.draft.is_none());
                    let Some(at) = self.newer(&world, namespace, compared).await? else {
                        return nothing.map(|(_, answer)| answer);
                    };
                    if tries >= TRIES {
                        return Err(CommitError::Conflict { at }.into());
                    }
                    self.after_conflict(&world, at).await;
                    continue;
                }
            };
            if let Some(draft) = &self.draft {
                draft.collect(namespace, guarded);
                return Ok(answer);
            }
            if !is_charged {
                let taken = QuotaUse::Changes(quotas::changes(&guarded.changeset));
                Box::pin(self.take_quota(namespace, actor, taken)).await?;
                is_charged = true;
            }
            let by = CommitContext { seen: guarded.guards, ..CommitContext::person(actor.clone()) };
            match self.commit(&world, namespace, by, vec![guarded.changeset]).await {
                Ok(_) => return Ok(answer),
                Err(CommitError::Conflict { at }) if tries < TRIES => self.after_conflict(&world, at).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The revision of a record in the store, zero if it is gone, unless a world shows it as it is; `None` without a record.
    async fn newer(
        &self,
        world: &World,
        namespace: &Namespace,
        record: Option<&AnyKey>,
    ) -> Result<Option<Revision>, CommitError> {
        let Some(record) = record else { return Ok(None) };
        let stored = self.store.get(key_text::of_any(namespace, record)).await.map_err(CommitError::Store)?;
        let stored = stored.map_or(Revision::ZERO, |entry| Revision::new(entry.modified.0));
        Ok(Some(stored).filter(|stored| *stored != world.revision(namespace, record)))
    }
}

/// Combines a pending commit with the result so far: the newest revision, or the first error.
async fn settle(
    pending: Option<PendingCommit>,
    result: Result<Revision, CommitError>,
) -> Result<Revision, CommitError> {
    let Some(pending) = pending else { return result };
    let done = pending.done().await;
    let before = result?;
    Ok(before.max(done?))
}

#[cfg(test)]
mod tests;
