//! Queues of comparisons with a record: those of one server wait for each other, instead of each making the others decide again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Number of queues. Records that share one by chance wait for each other too.
const QUEUES: usize = 256;

/// The queues of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RecordQueues {
    turns: Arc<Vec<Semaphore>>,
    hasher: RandomState,
}

impl Default for RecordQueues {
    fn default() -> Self {
        let turns = (0..QUEUES).map(|_| Semaphore::new(1)).collect();
        Self { turns: Arc::new(turns), hasher: RandomState::new() }
    }
}

impl RecordQueues {
    /// Waits for the turn of a caller on the record under a key of the store; it lasts until it is dropped.
    pub(super) async fn turn(&self, key: &[u8]) -> Option<SemaphorePermit<'_>> {
        let hash = usize::try_from(self.hasher.hash_one(key)).unwrap_or_default();
        self.turns.get(hash % QUEUES)?.acquire().await.ok()
    }
}
