//! Where operations are done: the current world, the committer, the clock. Owns "look, decide, commit, look again".

mod draft;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::key::Key;
use bellwether_core::verdict::Changeset;
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

pub use self::draft::Draft;
use crate::records::commit::{CommitError, CommitPipeline, Committer, PendingCommit, Proposal};
use crate::world_view::PublishedWorld;

/// How often an operation looks again after somebody else was faster, before it says so.
const TRIES: u32 = 16;

/// How long an operation waits for the world to show what was committed. It shows it within milliseconds unless the
/// store has trouble; the commit itself stands either way.
const SHOW_WITHIN: Duration = Duration::from_secs(5);

/// Most slices of one verdict on their way at once: enough to keep the store busy, and people who want something written
/// meanwhile wait no longer than for these.
const IN_LINE: usize = 36;

/// Where operations are done. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Transactor {
    published: PublishedWorld,
    committer: Committer,
    clock: Clock,
    /// Where changes are collected instead of being committed; none in a transactor that commits.
    draft: Option<Draft>,
}

/// On whose behalf something is committed, and on what grounds.
#[derive(Debug, Clone)]
pub struct CommitContext {
    /// Who; events name them.
    pub actor: Actor,
    /// The leadership it was decided under, for deciders.
    pub term: Option<Term>,
    /// Records that must not have changed since they were looked at, besides those that are written.
    pub seen: Vec<Key>,
}

impl CommitContext {
    /// A person, a program or a node.
    #[must_use]
    pub const fn person(actor: Actor) -> Self {
        Self { actor, term: None, seen: Vec::new() }
    }

    /// A decider, not under any leadership.
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
            events.extend(changeset.events);
        }
        let seen = self.seen.into_iter().map(|key| {
            let revision = world.revision(namespace, &key);
            (key, revision)
        });
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
    /// A desk on what is published, with this committer.
    #[must_use]
    pub fn new(published: PublishedWorld, committer: Committer, clock: Clock) -> Self {
        Self { published, committer, clock, draft: None }
    }

    /// The world as it is known now.
    #[must_use]
    pub fn world(&self) -> Arc<World> {
        self.draft.as_ref().map_or_else(|| self.published.world(), Draft::world)
    }

    /// A transactor for the same operations that commits nothing: their changes are collected in the draft, and each
    /// operation sees what those before it changed. Entities, freezes, pauses, profiles and slots can be drafted.
    #[must_use]
    pub fn draft(&self) -> (Self, Draft) {
        let draft = Draft::new(self.world());
        (Self { draft: Some(draft.clone()), ..self.clone() }, draft)
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A receiver that sees every published world.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Arc<World>> {
        self.published.follow()
    }

    /// Waits until the world includes `revision`, within reason.
    pub async fn shown(&self, revision: Revision) {
        match tokio::time::timeout(SHOW_WITHIN, self.shows(revision)).await {
            Ok(true) => {}
            Ok(false) => tracing::debug!("the world is closing"),
            Err(_) => tracing::warn!(%revision, "the world is behind the store"),
        }
    }

    /// Waits until the world includes `revision`, however long that takes. False when it never will.
    pub async fn shows(&self, revision: Revision) -> bool {
        self.published.shows(revision).await
    }

    /// Commits atoms decided on `world`, in one piece, and waits until the world shows them.
    ///
    /// # Errors
    /// [`CommitError`]; nothing was changed then.
    pub async fn commit(
        &self,
        world: &World,
        namespace: &Namespace,
        by: CommitContext,
        changesets: Vec<Changeset>,
    ) -> Result<Revision, CommitError> {
        let revision = self.committer.commit(by.propose(world, namespace, changesets)).await?;
        self.shown(revision).await;
        Ok(revision)
    }

    /// Commits slices of atoms decided on `world`, each in one piece and one after the other, and waits until the world shows
    /// them. The first that does not go through ends it: those behind it are not committed either.
    ///
    /// # Errors
    /// [`CommitError`] of the first that did not; those before it stand.
    pub async fn commit_in_line(
        &self,
        world: &World,
        namespace: &Namespace,
        by: CommitContext,
        slices: Vec<Vec<Changeset>>,
    ) -> Result<(), CommitError> {
        let line = CommitPipeline::default();
        let mut on_their_way = VecDeque::new();
        let mut sum = Ok(Revision::ZERO);
        for slice in slices {
            let proposal =
                Proposal { line: Some(line.clone()), ..by.clone().propose(world, namespace, slice) };
            match self.committer.propose(proposal).await {
                Ok(pending) => on_their_way.push_back(pending),
                Err(error) => sum = sum.and(Err(error)),
            }
            if on_their_way.len() >= IN_LINE {
                sum = settled(on_their_way.pop_front(), sum).await;
            }
            if sum.is_err() {
                break;
            }
        }
        while !on_their_way.is_empty() {
            sum = settled(on_their_way.pop_front(), sum).await;
        }
        self.shown(sum?).await;
        Ok(())
    }

    /// Looks at the fleet, lets `decide` say what to change, commits it; looks again if somebody else was faster.
    /// A decision to change nothing is done at once.
    ///
    /// # Errors
    /// What `decide` refused, or why the commit did not go through.
    pub async fn change<T, E: From<CommitError>>(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        mut decide: impl FnMut(&World, &Fleet, Timestamp) -> Result<(Option<Changeset>, T), E>,
    ) -> Result<T, E> {
        let empty = Fleet::default();
        let mut tries = 0;
        loop {
            let world = self.world();
            let fleet = world.fleets.get(namespace).unwrap_or(&empty);
            let (changeset, answer) = decide(&world, fleet, self.now())?;
            let Some(changeset) = changeset else { return Ok(answer) };
            if let Some(draft) = &self.draft {
                draft.collect(namespace, changeset);
                return Ok(answer);
            }
            tries += 1;
            match self.commit(&world, namespace, CommitContext::person(actor.clone()), vec![changeset]).await
            {
                Ok(_) => return Ok(answer),
                Err(CommitError::Conflict) if tries < TRIES => {
                    self.shown(world.revision.next()).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What it came to with this one: the newest revision, or the first error.
async fn settled(
    pending: Option<PendingCommit>,
    sum: Result<Revision, CommitError>,
) -> Result<Revision, CommitError> {
    let Some(pending) = pending else { return sum };
    let done = pending.done().await;
    let before = sum?;
    Ok(before.max(done?))
}
