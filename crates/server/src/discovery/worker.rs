//! The task of one cluster whose members are listed outside: reads the list at its interval, and at once when another one is named.

use std::sync::Arc;

use bellwether_core::decide::discovery::{MemberList, refreshed};
use bellwether_core::records::discovery::Discovery;
use bellwether_core::records::key::Key;
use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{ClusterName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::context::DiscoveryContext;
use super::source;
use crate::records::commit::CommitError;
use crate::sleep::sleep_until;
use crate::transactor::CommitContext;

/// Most attempts to commit what follows from one read: each conflict is with somebody who changed the cluster meanwhile.
const ATTEMPTS: usize = 4;

/// Reads the list of a cluster.
#[derive(Debug)]
pub(super) struct ListReader {
    context: DiscoveryContext,
    term: Term,
    namespace: Namespace,
    name: ClusterName,
}

impl ListReader {
    pub(super) fn new(
        context: DiscoveryContext,
        term: Term,
        (namespace, name): (Namespace, ClusterName),
    ) -> Self {
        Self { context, term, namespace, name }
    }

    /// Runs until the cluster has no list any more, the leadership is lost, or `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut worlds = self.context.transactor.follow();
        let leadership = self.context.leadership.clone();
        while leadership.is_in(self.term) && !stop.is_cancelled() {
            let Some(discovery) = self.discovery(&worlds.borrow_and_update()) else { return };
            let read = tokio::select! {
                read = source::read(&self.context.settings, &self.namespace, &discovery.source) => read,
                // What was read so far is not needed.
                () = stop.cancelled() => return,
            };
            let next = self.context.transactor.now().plus(discovery.interval);
            if let Err(reason) = &read {
                tracing::debug!(namespace = %self.namespace, cluster = %self.name, reason, "cannot read the list of members");
            }
            if !self.record(&discovery, read).await {
                return;
            }
            self.wait(&mut worlds, &discovery, next, &stop).await;
        }
    }

    fn discovery(&self, world: &World) -> Option<Discovery> {
        world.fleets.get(&self.namespace)?.clusters.get(&self.name)?.value.discovery.clone()
    }

    /// Waits until the list is to be read again, or another one is named. Whoever stops to lead stops its tasks.
    async fn wait(
        &self,
        worlds: &mut watch::Receiver<Arc<World>>,
        discovery: &Discovery,
        next: Timestamp,
        stop: &CancellationToken,
    ) {
        let another = worlds.wait_for(|world| self.discovery(world).as_ref() != Some(discovery));
        // All arms only wait.
        tokio::select! {
            () = stop.cancelled() => {}
            _ = another => {}
            () = sleep_until(self.context.transactor.clock(), Some(next)) => {}
        }
    }

    /// Commits what follows from a read; false if this server does not lead any more.
    async fn record(&self, discovery: &Discovery, read: Result<MemberList, String>) -> bool {
        for _ in 0..ATTEMPTS {
            let world = self.context.transactor.world();
            if self.discovery(&world).as_ref() != Some(discovery) {
                return true;
            }
            let fleet = world.fleets.get(&self.namespace);
            let before = fleet.and_then(|fleet| fleet.cluster_discoveries.get(&self.name));
            let now = self.context.transactor.now();
            let of = (&self.name, &discovery.source);
            let before = before.map(|kept| &*kept.value);
            let Some(changeset) = refreshed(of, before, read.clone(), now) else { return true };
            let seen = vec![Key::Cluster(self.name.clone()).into()];
            let by = CommitContext { term: Some(self.term), seen, ..CommitContext::decider() };
            match self.context.transactor.commit(&world, &self.namespace, by, vec![changeset]).await {
                Ok(_) => return true,
                Err(CommitError::LostTerm) => {
                    self.context.leadership.give_up(self.term);
                    return false;
                }
                Err(CommitError::Closed) => return false,
                Err(CommitError::Conflict { at }) => self.context.transactor.after_conflict(&world, at).await,
                Err(error) => {
                    tracing::warn!(namespace = %self.namespace, cluster = %self.name, %error, "cannot record the members of the cluster; the list is read again");
                    return true;
                }
            }
        }
        true
    }
}
