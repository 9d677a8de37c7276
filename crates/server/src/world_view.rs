//! The newest world, published, and waiters for a revision. A waiter is woken once its revision is published, not by each
//! world before: thousands wait when a whole fleet reports at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::words::counter::Revision;
use bellwether_core::world::World;
use tokio::sync::{oneshot, watch};

/// Waiters, by the revision they wait for.
#[derive(Debug, Default)]
struct RevisionWaiters {
    by_revision: BTreeMap<Revision, Vec<oneshot::Sender<()>>>,
    /// Whether the publisher is gone.
    is_over: bool,
}

/// Publishes worlds.
#[derive(Debug)]
pub struct WorldPublisher {
    world: watch::Sender<Arc<World>>,
    // A std mutex: held for a map update, never across an await.
    waiting: Arc<Mutex<RevisionWaiters>>,
}

/// Reads published worlds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PublishedWorld {
    world: watch::Receiver<Arc<World>>,
    waiting: Arc<Mutex<RevisionWaiters>>,
}

impl WorldPublisher {
    /// A publisher of `first`, and its reader.
    #[must_use]
    pub fn new(first: Arc<World>) -> (Self, PublishedWorld) {
        let (sender, receiver) = watch::channel(first);
        let waiting = Arc::<Mutex<RevisionWaiters>>::default();
        (Self { world: sender, waiting: waiting.clone() }, PublishedWorld { world: receiver, waiting })
    }

    /// Publishes a world.
    pub fn publish(&self, world: World) {
        let revision = world.revision;
        self.world.send_replace(Arc::new(world));
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let later = waiting.by_revision.split_off(&revision.next());
        let shown = std::mem::replace(&mut waiting.by_revision, later);
        drop(waiting);
        let gone = shown.into_values().flatten().filter_map(|waiter| waiter.send(()).err()).count();
        tracing::trace!(%revision, gone, "a world is shown");
    }
}

impl Drop for WorldPublisher {
    /// Nothing will be published any more: the waiters are released.
    fn drop(&mut self) {
        let over = RevisionWaiters { is_over: true, ..RevisionWaiters::default() };
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = over;
    }
}

impl PublishedWorld {
    /// The newest world.
    #[must_use]
    pub fn world(&self) -> Arc<World> {
        self.world.borrow().clone()
    }

    /// A receiver of every published world.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Arc<World>> {
        self.world.clone()
    }

    /// Waits until a world that contains `revision` is published. False when none will be.
    pub async fn reaches(&self, revision: Revision) -> bool {
        let shown = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            // Under the lock: a world published from here on finds this waiter.
            if self.world.borrow().revision >= revision {
                return true;
            }
            if waiting.is_over {
                return false;
            }
            let (waiter, shown) = oneshot::channel();
            waiting.by_revision.entry(revision).or_default().push(waiter);
            shown
        };
        shown.await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(revision: u64) -> World {
        World { revision: Revision::new(revision), ..World::default() }
    }

    #[tokio::test]
    async fn a_waiter_sees_its_revision_or_a_later_one() {
        let (publisher, published) = WorldPublisher::new(Arc::new(at(1)));
        assert!(published.reaches(Revision::new(1)).await, "it is shown already");
        let waiters = [2, 3, 5].map(|revision| {
            let published = published.clone();
            async move {
                published.reaches(Revision::new(revision)).await.then(|| published.world().revision.get())
            }
        });
        let [two, three, five] = waiters;
        let (mut two, mut three, mut five) = (Box::pin(two), Box::pin(three), Box::pin(five));
        assert!(futures_util::poll!(&mut two).is_pending());
        assert!(futures_util::poll!(&mut three).is_pending());
        assert!(futures_util::poll!(&mut five).is_pending());
        publisher.publish(at(3));
        assert_eq!((two.await, three.await), (Some(3), Some(3)));
        assert!(futures_util::poll!(&mut five).is_pending(), "its world is not shown yet");
        publisher.publish(at(9));
        assert_eq!(five.await, Some(9));
    }

    #[tokio::test]
    async fn waiters_are_released_when_the_publisher_is_gone() {
        let (publisher, published) = WorldPublisher::new(Arc::new(at(1)));
        let mut before = Box::pin(published.reaches(Revision::new(2)));
        assert!(futures_util::poll!(&mut before).is_pending());
        drop(publisher);
        assert!(!before.await);
        assert!(!published.reaches(Revision::new(2)).await);
        assert!(published.reaches(Revision::new(1)).await, "the last world is still there");
    }
}
