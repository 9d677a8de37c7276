//! The reconcile loop: while this server leads, run every decider on the whole world, commit the verdicts, repeat.
//!
//! A pass starts after each change, or when time requires it; deciders never learn which. A verdict larger than one
//! transaction is committed in slices, in order; the first failed commit ends the pass, and the next pass decides anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::decide::table::{DECIDERS, Decider, DeciderContext, Decision};
use bellwether_core::records::key::AnyKey;
use bellwether_core::rollout::environment::Watch;
use bellwether_core::verdict::{Changeset, Verdict};
use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{Namespace, ServerName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};
use tokio_util::sync::CancellationToken;

use crate::config::deciders::DeciderSettings;
use crate::leadership::Leadership;
use crate::lease_key::TTL;
use crate::metrics::Metrics;
use crate::records::commit::CommitError;
use crate::sleep::sleep_or_never;
use crate::transactor::{CommitContext, Transactor};
use crate::world::RelistHandle;

/// Operations per slice: below the store's limit of 128, with room for the compares of leadership and event numbers.
const SLICE_OPS: usize = 100;

/// Most targets in a namespace on which deciders run within the reconcile task. A pass over as many takes some milliseconds;
/// one over more runs on a thread of its own, so that the requests on this thread do not wait for it.
const DECIDED_INLINE: u64 = 2_000;

/// Longest delay of the next pass after a failed commit.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The reconcile loop.
#[derive(Debug)]
pub struct Reconciler {
    /// Commits the verdicts.
    pub transactor: Transactor,
    /// Brings the world up to date with the store.
    pub relist: RelistHandle,
    /// When to decide, and under which term.
    pub leadership: Leadership,
    /// Settings of the deciders.
    pub settings: DeciderSettings,
    /// Counters.
    pub metrics: Metrics,
}

/// Since when the servers that there are could hear every node.
#[derive(Debug)]
struct Audience {
    since: Timestamp,
    servers: BTreeMap<ServerName, Timestamp>,
}

impl Audience {
    /// Begins anew when a server went or restarted: nodes that were its own are shown as up and may be gone.
    fn complete_since(&mut self, world: &World, now: Timestamp) -> Timestamp {
        let servers: BTreeMap<ServerName, Timestamp> =
            world.servers.iter().map(|(name, kept)| (name.clone(), kept.value.since)).collect();
        if self.servers.iter().any(|(name, since)| servers.get(name) != Some(since)) {
            self.since = now;
        }
        self.servers = servers;
        self.since
    }
}

impl Reconciler {
    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.leadership.won(&stop).await {
            fail::pass(FailPoint::LeadershipAcquired);
            // A new leader decides only once its world contains everything that was committed before. It asks the store, since a
            // watch may have missed something.
            if self.relist.bring_up_to_date(&stop).await {
                self.lead(term, &stop).await;
            }
            self.leadership.lost(term, &stop).await;
        }
    }

    async fn lead(&mut self, term: Term, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let mut audience = Audience { since: self.transactor.now(), servers: BTreeMap::new() };
        while self.leadership.is_in(term) {
            let world = worlds.borrow_and_update().clone();
            let now = self.transactor.now();
            let watch = Watch { since: audience.complete_since(&world, now), grace: self.grace() };
            let pass = self.pass(&world, term, (watch, now)).await;
            self.metrics.passes.inc();
            let sleep = match pass {
                Ok(PassResult { wrote: true, .. }) => continue,
                Ok(PassResult { wake, .. }) => wake.map(|at| at.since(now).to_duration()),
                Err(CommitError::LostTerm | CommitError::Closed) => return,
                Err(CommitError::Conflict) => Some(LOOK_AGAIN),
                Err(error) => {
                    tracing::warn!(%error, "cannot commit a verdict");
                    Some(LOOK_AGAIN)
                }
            };
            // All arms only wait; the next pass examines everything.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                () = self.leadership.changed() => {}
                () = sleep_or_never(sleep) => {}
            }
        }
    }

    /// How long a node that lost its server may still be shown as up. It is found suspect by then at the latest; the
    /// lifetime of a lease on top leaves the server that finds it time to begin, and to write it.
    fn grace(&self) -> Span {
        let limits = self.settings.limits;
        limits.suspect.plus(limits.reconnect).plus(Span::from_secs(TTL.as_secs()))
    }

    /// One pass over all namespaces by a leader with this watch.
    async fn pass(
        &self,
        world: &Arc<World>,
        term: Term,
        (watch, now): (Watch, Timestamp),
    ) -> Result<PassResult, CommitError> {
        let mut pass = PassResult::default();
        for namespace in world.fleets.keys() {
            // Each decider sees the results of those before it.
            for decider in &DECIDERS {
                pass.add(self.decide(decider, namespace, term, (watch, now)).await?);
            }
        }
        Ok(pass)
    }

    /// Runs one decider on the world as it is now, with everything that the deciders before it wrote.
    async fn decide(
        &self,
        entry: &Decider,
        namespace: &Namespace,
        term: Term,
        (watch, now): (Watch, Timestamp),
    ) -> Result<PassResult, CommitError> {
        let mut pass = PassResult::default();
        let world = self.transactor.world();
        for Decision { guard, verdict } in
            self.decisions(entry, (&world, namespace), term, (watch, now)).await?
        {
            let by = CommitContext { seen: guard.into_iter().map(AnyKey::from).collect(), ..decider(term) };
            pass.add(match fail_points(entry) {
                Some(points) => self.commit_between(points, &world, namespace, (by, verdict)).await?,
                None => self.commit(&world, namespace, by, verdict).await?,
            });
        }
        Ok(pass)
    }

    /// What a decider decides on a world.
    async fn decisions(
        &self,
        entry: &Decider,
        (world, namespace): (&Arc<World>, &Namespace),
        term: Term,
        (watch, now): (Watch, Timestamp),
    ) -> Result<Vec<Decision>, CommitError> {
        let (decide, kept) = (entry.decide, self.settings.kept);
        let all = move |world: &World, namespace: &Namespace| match world.fleets.get(namespace) {
            Some(fleet) => {
                decide(DeciderContext { world, namespace, fleet, term, watch, kept, now }).collect()
            }
            None => Vec::new(),
        };
        let boards = world.fleets.get(namespace).into_iter().flat_map(|fleet| fleet.boards.values());
        let targets: u64 = boards.map(|board| board.counts().targets).sum();
        if targets <= DECIDED_INLINE {
            return Ok(all(world, namespace));
        }
        let (world, namespace) = (world.clone(), namespace.clone());
        match tokio::task::spawn_blocking(move || all(&world, &namespace)).await {
            Ok(decisions) => Ok(decisions),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The server ends.
            Err(_) => Err(CommitError::Closed),
        }
    }

    /// Commits a verdict, passing the fail points before and after if it changes anything.
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

/// The points at which tests kill the process, before and after a decider's commits.
fn fail_points(decider: &Decider) -> Option<[FailPoint; 2]> {
    match decider.name {
        "rollout" => Some([FailPoint::VerdictReached, FailPoint::VerdictCommitted]),
        "order" => Some([FailPoint::OrdersDecided, FailPoint::OrdersCommitted]),
        _ => None,
    }
}

/// Result of a pass, or of a part of one.
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

/// Splits changesets into as few slices as possible, in order.
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

/// The context of a decider's commit in this term.
pub(crate) fn decider(term: Term) -> CommitContext {
    CommitContext { term: Some(term), ..CommitContext::decider() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::records::key::GlobalKey;
    use bellwether_core::verdict::Write;

    #[test]
    fn slices_keep_order_and_stay_within_a_transaction() {
        let changeset = |writes: usize| Changeset {
            writes: vec![Write::delete(GlobalKey::Token("x".to_owned())); writes],
            events: vec![],
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
