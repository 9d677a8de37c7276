//! The shares of requesters in the limits of a class: however many requests one sends, others find room.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::super::limits::Share;
use super::class::Requester;

/// The shares of the requesters that have a request in this class. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    limit: Share,
    present: Arc<Mutex<BTreeMap<Requester, Arc<ShareQueue>>>>,
}

/// The requests of one requester.
#[derive(Debug)]
struct ShareQueue {
    /// Requests that run, wait or are read.
    requests: AtomicUsize,
    reading: Semaphore,
    large: Semaphore,
    served: Semaphore,
}

/// The part of one request in its requester's share; returned when dropped.
#[derive(Debug)]
pub(super) struct HeldShare {
    shares: Shares,
    requester: Requester,
    queue: Arc<ShareQueue>,
    runs: bool,
    is_large: bool,
}

impl Shares {
    pub(super) fn new(limit: Share) -> Self {
        Self { limit, present: Arc::default() }
    }

    /// Room for one more request of the requester; none if it has as many as it may have.
    pub(super) fn take(&self, requester: Requester) -> Option<HeldShare> {
        let Share { served, waiting } = self.limit;
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            Arc::new(ShareQueue {
                requests: AtomicUsize::new(0),
                reading: Semaphore::new(served),
                large: Semaphore::new(1),
                served: Semaphore::new(served),
            })
        };
        let queue = Arc::clone(present.entry(requester.clone()).or_insert_with(new));
        // Counted under the lock, as it is below.
        if queue.requests.load(Ordering::Relaxed) >= served.saturating_add(waiting) {
            return None;
        }
        queue.requests.fetch_add(1, Ordering::Relaxed);
        Some(HeldShare { shares: self.clone(), requester, queue, runs: false, is_large: false })
    }

    /// Number of requesters that have a request.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl HeldShare {
    /// Waits until the body may be read.
    pub(super) async fn reading(&self) -> Option<SemaphorePermit<'_>> {
        self.queue.reading.acquire().await.ok()
    }

    /// Waits until the body, which is larger than others, may be read.
    pub(super) async fn take_large(&mut self) {
        if !self.is_large
            && let Ok(permit) = self.queue.large.acquire().await
        {
            permit.forget();
            self.is_large = true;
        }
    }

    /// Whether the request may run now.
    pub(super) fn try_run(&mut self) -> bool {
        if let Ok(permit) = self.queue.served.try_acquire() {
            permit.forget();
            self.runs = true;
        }
        self.runs
    }

    /// Waits until the request may run.
    pub(super) async fn run(&mut self) {
        if !self.runs
            && let Ok(permit) = self.queue.served.acquire().await
        {
            permit.forget();
            self.runs = true;
        }
    }

    /// Whether the request may run, as far as its requester's share goes.
    pub(super) const fn runs(&self) -> bool {
        self.runs
    }
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        if self.runs {
            self.queue.served.add_permits(1);
        }
        if self.is_large {
            self.queue.large.add_permits(1);
        }
        let mut present = self.shares.present.lock().unwrap_or_else(PoisonError::into_inner);
        if self.queue.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            present.remove(&self.requester);
        }
    }
}
