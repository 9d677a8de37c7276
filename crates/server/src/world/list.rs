//! Listing everything, after a gap or a failure of the watch.

use std::time::Duration;

use bellwether_core::words::counter::Revision;
use bellwether_core::world::World;
use bellwether_store::{CommitOutcome, Store, Txn, Watch, WatchError};
use tokio::sync::oneshot;

use super::load::load;
use super::{RETRY, RelistRequests, WatchedWorld, WorldUpdater, answer_all, fold, open};

/// Longest time for a new watch, after a list, to reach the revision that was published before.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(2);

impl WorldUpdater {
    /// Lists everything, as often as needed, publishes the result and answers the `waiting` requests. Follows `watch` meanwhile.
    /// Returns the watch from the new revision on.
    pub(super) async fn list(
        &self,
        store: &Store,
        asked: &mut RelistRequests,
        watched: WatchedWorld<'_>,
        mut waiting: Vec<oneshot::Sender<()>>,
    ) -> Option<Watch> {
        let WatchedWorld { world, mut watch } = watched;
        loop {
            // Requests made before a list begins are answered by it.
            waiting.extend(std::iter::from_fn(|| asked.try_recv().ok()));
            let before = world.revision;
            let Some(fresh) = self.read(store, world, &mut watch).await else { continue };
            if fresh.revision < before {
                // A member of the store that is behind, or a store that was set back.
                let (was, is) = (before.get(), fresh.revision.get());
                tracing::error!(was, is, "the store is at an earlier revision; listing everything again");
                if self.is_set_back(store, before).await {
                    // Nothing of it is published: this server ends.
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(RETRY).await;
                continue;
            }
            let at_least = world.revision;
            let Some((fresh, next)) = self.catch_up(store, fresh, at_least).await else {
                watch = None;
                continue;
            };
            *world = fresh;
            self.publisher.publish(world.clone());
            self.sessions.wake_all();
            answer_all(&mut waiting);
            return next;
        }
    }

    /// Lists everything, and follows `watch` meanwhile. None, after a pause, if the store fails.
    async fn read(&self, store: &Store, world: &mut World, watch: &mut Option<Watch>) -> Option<World> {
        let known = world.clone();
        let reading = async {
            match load(store, &known).await {
                Ok(fresh) => Some(fresh),
                Err(error) => {
                    tracing::error!(%error, "cannot read the records");
                    tokio::time::sleep(RETRY).await;
                    None
                }
            }
        };
        self.meanwhile(reading, world, watch).await
    }

    /// Brings a listed world to at least the published revision, so that no published change is undone: by a watch of
    /// its own, which may have what the former one missed. None if that takes too long.
    async fn catch_up(
        &self,
        store: &Store,
        mut fresh: World,
        at_least: Revision,
    ) -> Option<(World, Option<Watch>)> {
        let Some(mut watch) = open(store, &fresh).await else {
            return (fresh.revision >= at_least).then_some((fresh, None));
        };
        // After a list all sessions are woken, so the nodes collected here are not used.
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

    /// Whether the store as a whole is at an earlier revision than one that it has answered; tells it. A commit says so for certain,
    /// unlike a list, which a member may answer that is behind.
    async fn is_set_back(&self, store: &Store, before: Revision) -> bool {
        let Ok(CommitOutcome::Committed(now)) = store.commit(Txn::default()).await else { return false };
        let is_back = now.0 < before.get();
        if is_back {
            self.set_back.tell(before, Revision::new(now.0));
        }
        is_back
    }
}
