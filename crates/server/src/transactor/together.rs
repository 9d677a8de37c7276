//! Comparisons with one record by many at once: those that wait are decided in one round and committed in one transaction.

use bellwether_core::records::key::AnyKey;
use bellwether_core::verdict::GuardedChangeset;
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

use super::rounds::{Round, RoundSlot};
use super::{TRIES, Transactor};
use crate::records::commit::CommitError;
use crate::records::key_text;

/// What became of an attempt.
enum Attempt<T> {
    /// The answer to the caller.
    Done(T),
    /// Something else came before it: it is decided again.
    Again(CommitError),
    /// The round was full: it is decided in the next one.
    Full,
}

impl Transactor {
    /// Does what [`compare`](Self::compare) does, for records that count their changes themselves and not by revisions of the store: of
    /// many writers, all that wait are decided one after the other, each on what the one before it wrote, and are committed in one
    /// transaction. Each has its own answer and its own events; what is refused fails alone. If the transaction conflicts,
    /// all of them are decided again.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub async fn compare_together<T, E: From<CommitError>, C: Into<GuardedChangeset>>(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        record: &AnyKey,
        mut decide: impl FnMut(&World, &Fleet, Timestamp) -> Result<(Option<C>, T), E>,
    ) -> Result<T, E> {
        let key = key_text::of_any(namespace, record);
        let Some(slot) = self.rounds.slot(&key).filter(|_| self.draft.is_none()) else {
            return self.compare(namespace, actor, record, decide).await;
        };
        let place = RoundPlace { slot, key: &key, namespace, record };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.attempt(place, actor, &mut decide).await? {
                Attempt::Done(answer) => return answer,
                Attempt::Full => tries -= 1,
                Attempt::Again(error) if tries >= TRIES => return Err(error.into()),
                Attempt::Again(_) => {}
            }
        }
    }

    /// Decides once, in the round that is open or in a new one.
    async fn attempt<T, E: From<CommitError>, C: Into<GuardedChangeset>>(
        &self,
        place: RoundPlace<'_>,
        actor: &Actor,
        decide: &mut impl FnMut(&World, &Fleet, Timestamp) -> Result<(Option<C>, T), E>,
    ) -> Result<Attempt<Result<T, E>>, E> {
        let turn = place.slot.turn().await;
        let round = self.round(place, actor).await;
        let world = round.world();
        let empty = world.empty_fleet();
        let fleet = world.fleets.get(place.namespace).unwrap_or(&empty);
        let answer = match decide(&world, fleet, self.now()) {
            Ok((Some(guarded), answer)) => {
                if !round.add(actor, guarded.into())? {
                    self.propose_round(place.slot, (&round, actor), turn).await;
                    return Ok(Attempt::Full);
                }
                place.slot.offer(place.key, &round);
                Ok(answer)
            }
            // Nobody before it in this round changed anything: it was decided on what was published.
            nothing if round.is_empty() => {
                let Some(at) = self.newer(&world, place.namespace, Some(place.record)).await? else {
                    return Ok(Attempt::Done(nothing.map(|(_, answer)| answer)));
                };
                drop(turn);
                self.after_conflict(&world, at).await;
                return Ok(Attempt::Again(CommitError::Conflict { at }));
            }
            nothing => nothing.map(|(_, answer)| answer),
        };
        // Those who wait decide before the round ends.
        drop(turn);
        if let Some(turn) = place.slot.until_proposed(&round).await {
            self.propose_round(place.slot, (&round, actor), Some(turn)).await;
        }
        match round.result().await {
            Ok(_) => Ok(Attempt::Done(answer)),
            Err(CommitError::Conflict { at }) => {
                self.after_conflict(round.base(), at).await;
                Ok(Attempt::Again(CommitError::Conflict { at }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The open round of the record, or a new one. One of another record in this slot ends here.
    async fn round(&self, place: RoundPlace<'_>, actor: &Actor) -> Arc<Round> {
        match place.slot.open_round(place.key) {
            Some((round, true)) => return round,
            Some((other, false)) => self.propose_round(place.slot, (&other, actor), None).await,
            None => {}
        }
        Arc::new(Round::new(place.namespace, self.published.world()))
    }

    /// Proposes a round. If the caller is dropped before that, another member does it. The next round begins on what this one wrote:
    /// the turn lasts until the world shows that, as long as any member waits for it.
    async fn propose_round(
        &self,
        slot: &RoundSlot,
        (round, actor): (&Arc<Round>, &Actor),
        turn: Option<OwnedSemaphorePermit>,
    ) {
        let pending = self.committer.propose(round.proposal(actor)).await;
        let transactor = self.clone();
        slot.close(round, async move {
            let revision = pending?.done().await?;
            transactor.wait_for_revision(revision).await;
            drop(turn);
            Ok(revision)
        });
    }
}

/// Where the changes of a record meet.
#[derive(Clone, Copy)]
struct RoundPlace<'a> {
    slot: &'a RoundSlot,
    key: &'a Bytes,
    namespace: &'a Namespace,
    record: &'a AnyKey,
}
