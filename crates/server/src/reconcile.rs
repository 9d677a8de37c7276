//! The reconcile loop: while this server leads, let every decider look at the whole world, commit what it wants, look again.
//!
//! Woken by change or by time; what woke it is not looked at. A verdict larger than one transaction is
//! committed in slices, in order, each whole; the first that fails ends the pass, and the next one decides anew.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::decide::{external, order, retention, rollout, silence, slots, wait_cycles};
use bellwether_core::records::key::Key;
use bellwether_core::verdict::{Changeset, Verdict};
use bellwether_core::words::counter::Term;
use bellwether_core::words::name::Namespace;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::records::commit::CommitError;
use crate::transactor::{CommitContext, Transactor};
use crate::world::RelistHandle;

/// Operations per slice: below the store's 128, leaving room for the guards of leadership and event numbers.
const SLICE_OPS: usize = 100;

/// After a store failure or a lost race, the world is looked at again no later than this.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What deciders are told besides the world.
#[derive(Debug, Clone, Copy)]
pub struct DeciderSettings {
    /// How long a node may be quiet.
    pub limits: bellwether_core::decide::liveness::context::PresenceLimits,
    /// Events kept per namespace.
    pub events_kept: u64,
}

/// The reconcile loop's parts.
#[derive(Debug)]
pub struct Reconciler {
    /// Where verdicts are committed.
    pub transactor: Transactor,
    /// Makes sure of what the world shows.
    pub lister: RelistHandle,
    /// The leadership.
    pub term: watch::Receiver<Option<Term>>,
    /// What deciders are told besides the world.
    pub settings: DeciderSettings,
    /// What is counted.
    pub metrics: Metrics,
}

impl Reconciler {
    /// Runs until asked to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.next_term(&stop).await {
            fail::pass(FailPoint::SeatWon);
            // A new leader has seen everything that was written before it led: it asks the store, as a watch may have missed
            // something.
            if self.lister.make_sure(&stop).await {
                self.lead(term, &stop).await;
            }
            self.let_go(term, &stop).await;
        }
    }

    async fn next_term(&mut self, stop: &CancellationToken) -> Option<Term> {
        // Both arms only wait; the value is tested by wait_for.
        tokio::select! {
            () = stop.cancelled() => None,
            term = self.term.wait_for(Option::is_some) => term.ok().and_then(|term| *term),
        }
    }

    /// Waits until a term that ended is no longer taken for the present one: its loss shows in a commit first.
    async fn let_go(&mut self, term: Term, stop: &CancellationToken) {
        // Both arms only wait.
        tokio::select! {
            () = stop.cancelled() => {}
            gone = self.term.wait_for(|present| *present != Some(term)) => drop(gone),
        }
    }

    async fn lead(&mut self, term: Term, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let since = self.transactor.now();
        while *self.term.borrow() == Some(term) {
            let world = worlds.borrow_and_update().clone();
            let now = self.transactor.now();
            let pass = self.pass(&world, term, (since, now)).await;
            self.metrics.passes.inc();
            let sleep = match pass {
                Ok(PassResult { wrote: true, .. }) => continue,
                Ok(PassResult { wake, .. }) => wake.map(|at| at.since(now).to_duration()),
                Err(CommitError::LostTerm | CommitError::Closed) => return,
                Err(CommitError::Conflict) => Some(LOOK_AGAIN),
                Err(error) => {
                    tracing::warn!(%error, "could not commit a verdict");
                    Some(LOOK_AGAIN)
                }
            };
            // All arms only wait; the next pass looks at everything.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                _ = self.term.changed() => {}
                () = sleep_or_never(sleep) => {}
            }
        }
    }

    /// One look at everything, by a leader `since` then.
    async fn pass(
        &self,
        world: &Arc<World>,
        term: Term,
        (since, now): (Timestamp, Timestamp),
    ) -> Result<PassResult, CommitError> {
        let mut pass = PassResult::default();
        for namespace in world.fleets.keys() {
            // Each decider sees what the ones before it brought about.
            pass.add(self.external(namespace, term, (since, now)).await?);
            pass.add(self.silence(namespace, term, now).await?);
            pass.add(self.wait_cycles(namespace, term, now).await?);
            pass.add(self.slots(namespace, term, now).await?);
            pass.add(self.rollouts(namespace, term, now).await?);
            pass.add(self.orders(namespace, term).await?);
            pass.add(self.retention(namespace, term).await?);
        }
        Ok(pass)
    }

    async fn external(
        &self,
        namespace: &Namespace,
        term: Term,
        (since, now): (Timestamp, Timestamp),
    ) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        self.commit(&world, namespace, decider(term), external::decide(fleet, since, now)).await
    }

    async fn silence(
        &self,
        namespace: &Namespace,
        term: Term,
        now: Timestamp,
    ) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        self.commit(&world, namespace, decider(term), silence::decide(fleet, now)).await
    }

    async fn wait_cycles(
        &self,
        namespace: &Namespace,
        term: Term,
        now: Timestamp,
    ) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        self.commit(&world, namespace, decider(term), wait_cycles::decide(fleet, now)).await
    }

    async fn slots(
        &self,
        namespace: &Namespace,
        term: Term,
        now: Timestamp,
    ) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        self.commit(&world, namespace, decider(term), slots::decide(fleet, now)).await
    }

    async fn rollouts(
        &self,
        namespace: &Namespace,
        term: Term,
        now: Timestamp,
    ) -> Result<PassResult, CommitError> {
        let mut pass = PassResult::default();
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(pass) };
        for (name, board) in &fleet.boards {
            let verdict = rollout::decide(board, &world.environment(namespace, name), now).into_verdict(name);
            // A person who pauses, aborts or deletes in the middle of a long verdict stops the rest of it.
            let by = CommitContext { seen: vec![Key::Entity(name.clone())], ..decider(term) };
            let points = [FailPoint::VerdictReached, FailPoint::VerdictCommitted];
            pass.add(self.commit_between(points, &world, namespace, (by, verdict)).await?);
        }
        Ok(pass)
    }

    async fn orders(&self, namespace: &Namespace, term: Term) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        let verdict = order::decide(fleet, term);
        let points = [FailPoint::OrdersDecided, FailPoint::OrdersCommitted];
        self.commit_between(points, &world, namespace, (decider(term), verdict)).await
    }

    async fn retention(&self, namespace: &Namespace, term: Term) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        let verdict = retention::decide(fleet, self.settings.events_kept);
        self.commit(&world, namespace, decider(term), verdict).await
    }

    /// Commits a verdict; if it changes anything, passes these points before and after.
    async fn commit_between(
        &self,
        [before, after]: [FailPoint; 2],
        world: &World,
        namespace: &Namespace,
        (by, verdict): (CommitContext, Verdict),
    ) -> Result<PassResult, CommitError> {
        if !verdict.changesets.is_empty() {
            fail::pass(before);
        }
        let pass = self.commit(world, namespace, by, verdict).await?;
        if pass.wrote {
            fail::pass(after);
        }
        Ok(pass)
    }

    async fn commit(
        &self,
        world: &World,
        namespace: &Namespace,
        by: CommitContext,
        verdict: Verdict,
    ) -> Result<PassResult, CommitError> {
        if verdict.changesets.is_empty() {
            return Ok(PassResult { wrote: false, wake: verdict.wake });
        }
        self.transactor.commit_in_line(world, namespace, by, slices(verdict.changesets)).await?;
        Ok(PassResult { wrote: true, wake: verdict.wake })
    }
}

/// What a pass came to.
#[derive(Debug, Default)]
struct PassResult {
    wrote: bool,
    wake: Option<Timestamp>,
}

impl PassResult {
    fn add(&mut self, other: Self) {
        self.wrote |= other.wrote;
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
    }
}

/// Atoms in as few slices as fit, in order.
pub(crate) fn slices(changesets: Vec<Changeset>) -> Vec<Vec<Changeset>> {
    let mut slices: Vec<Vec<Changeset>> = Vec::new();
    let mut room = 0;
    for changeset in changesets {
        let size = changeset.writes.len() + changeset.events.len();
        match slices.last_mut() {
            Some(slice) if size <= room => {
                room -= size;
                slice.push(changeset);
            }
            Some(_) | None => {
                room = SLICE_OPS.saturating_sub(size);
                slices.push(vec![changeset]);
            }
        }
    }
    slices
}

/// A decider under this leadership.
pub(crate) fn decider(term: Term) -> CommitContext {
    CommitContext { term: Some(term), ..CommitContext::decider() }
}

/// Sleeps so long; for ever when there is nothing to wake up for.
pub(crate) async fn sleep_or_never(how_long: Option<Duration>) {
    match how_long {
        // A millisecond past the moment, so that the moment has come when the clock is read in whole milliseconds.
        Some(how_long) => tokio::time::sleep(how_long + Duration::from_millis(1)).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::records::key::Key;
    use bellwether_core::verdict::Write;

    #[test]
    fn slices_keep_order_and_stay_within_a_transaction() {
        let changeset = |writes: usize| {
            let key = Key::Token("x".to_owned());
            Changeset { writes: vec![Write::Delete(key); writes], events: vec![] }
        };
        let sizes = [60, 40, 1, 99, 1, 120, 1];
        let slices = slices(sizes.into_iter().map(changeset).collect());
        let lengths: Vec<Vec<usize>> = slices
            .iter()
            .map(|slice| slice.iter().map(|changeset| changeset.writes.len()).collect())
            .collect();
        assert_eq!(lengths, vec![vec![60, 40], vec![1, 99], vec![1], vec![120], vec![1]]);
    }
}
