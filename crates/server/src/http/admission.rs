//! Admission: concurrency limits by class of request, with a share for each requester. The body of a request is read before it takes
//! a permit to run, so that nobody holds one by sending slowly. Independent of what the caller may do, except that what stops and
//! freezes, and changes of admins, have a class of their own.

mod class;
mod shares;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bellwether_api::problem::Code;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

pub use self::class::RequestClass;
pub(super) use self::class::{Requester, may_wait};
use self::shares::{HeldShare, Shares};
use super::body::{self, BODY_DEADLINE, LARGE_BODY_DEADLINE};
use super::limits::{
    BACKUPS, ConcurrencyLimit, ConcurrencyLimits, DRY_RUNS, LARGE_BODIES, MAX_BODY_BYTES, Share,
};
use super::problem::Failure;
use crate::metrics::RefusedRequests;
use crate::metrics::durations::RequestDurations;

/// Longest wait for a permit: half of the time after which clients give up, so that a response still has a reader.
const PATIENCE: Duration = Duration::from_secs(5);

/// When a client whose large body or dry run found no permit may retry, in milliseconds.
const LARGE_REQUEST_RETRY_MS: u64 = 2_000;

/// The permits of all classes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admission {
    urgent: ClassQueue,
    people: ClassQueue,
    watchers: ClassQueue,
    machines: ClassQueue,
    syncs: ClassQueue,
    joins: ClassQueue,
    /// Permits of dry runs of an apply.
    dry_runs: Arc<Semaphore>,
    /// Permits of backups.
    backups: Arc<Semaphore>,
    refused: Family<RefusedRequests, Counter>,
}

#[derive(Debug, Clone)]
struct ClassQueue {
    limit: ConcurrencyLimit,
    /// Permits of requests that run, wait or are read.
    room: Arc<Semaphore>,
    /// Permits of bodies that are read.
    reading: Arc<Semaphore>,
    /// Permits of bodies above the usual limit.
    large: Arc<Semaphore>,
    served: Arc<Semaphore>,
    shares: Shares,
}

/// A request's permit; dropping it admits the next request.
#[derive(Debug)]
pub(crate) struct AdmissionPermit {
    _room: OwnedSemaphorePermit,
    class: RequestClass,
    /// When all of the request had arrived.
    arrived: Instant,
    /// Held until the response, since what was read of the body is.
    large: Option<OwnedSemaphorePermit>,
    served: Option<OwnedSemaphorePermit>,
    share: HeldShare,
}

/// What has no room for another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    /// The class.
    Class,
    /// The requester's share of it.
    Share,
}

impl AdmissionPermit {
    /// Whether it is of a person or a program, and stops nothing.
    pub(super) fn is_of_people(&self) -> bool {
        match self.class {
            RequestClass::People | RequestClass::Watchers => true,
            RequestClass::Urgent | RequestClass::Machines | RequestClass::Syncs | RequestClass::Joins => {
                false
            }
        }
    }

    /// Counts how long a request took that is answered now: from when all of it had arrived, so with its wait for a permit. A poll for
    /// an order and a blocking read are not counted, since they take as long as nothing happens.
    pub(super) fn observe(&self, durations: &RequestDurations) {
        match self.class {
            RequestClass::Syncs | RequestClass::Watchers => {}
            class @ (RequestClass::Urgent
            | RequestClass::People
            | RequestClass::Machines
            | RequestClass::Joins) => durations.observe_since(class.as_str(), self.arrived),
        }
    }
}

impl Admission {
    /// Admission with these limits, which counts refused requests in `refused`.
    #[must_use]
    pub fn new(limits: ConcurrencyLimits, refused: Family<RefusedRequests, Counter>) -> Self {
        for class in RequestClass::ALL {
            drop(refused.get_or_create(&RefusedRequests { class: class.as_str() }));
        }
        Self {
            urgent: ClassQueue::new(limits.urgent),
            people: ClassQueue::new(limits.people),
            watchers: ClassQueue::new(limits.watchers),
            machines: ClassQueue::new(limits.machines),
            syncs: ClassQueue::new(limits.syncs),
            joins: ClassQueue::new(limits.joins),
            dry_runs: Arc::new(Semaphore::new(DRY_RUNS)),
            backups: Arc::new(Semaphore::new(BACKUPS)),
            refused,
        }
    }

    /// Waits for the permit of a dry run of an apply.
    ///
    /// # Errors
    /// When to retry, if none is free in time.
    pub(super) async fn dry_run(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = tokio::time::timeout(PATIENCE, Arc::clone(&self.dry_runs).acquire_owned()).await;
        let busy = || format!("cannot compare the documents: {DRY_RUNS} dry runs are in progress");
        permit.ok().and_then(Result::ok).ok_or_else(|| busy_with_large(busy()))
    }

    /// The permit of a backup.
    ///
    /// # Errors
    /// When to retry, if another one is taken or sent: that may take long.
    pub(super) fn backup(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permit = Arc::clone(&self.backups).try_acquire_owned();
        let busy = "cannot take a backup: this server takes or sends another one";
        permit.map_err(|_| busy_with_large(busy.to_owned()))
    }

    /// Reads the body of a request, of at most `largest` bytes, in place of which it has what was read; then waits for a permit, if not
    /// too many requests of its class or its requester wait already.
    ///
    /// # Errors
    /// When to retry, if too many wait; or what is wrong with the body.
    pub(super) async fn enter(
        &self,
        class: RequestClass,
        requester: Requester,
        request: &mut Request,
        largest: usize,
    ) -> Result<Box<AdmissionPermit>, Failure> {
        let queue = self.queue(class);
        let mut permit = queue.wait(class, requester).map_err(|full| self.busy(class, full))?;
        if !request.body().is_end_stream() {
            // Boxed, so that requests without a body do not reserve its space.
            let read = Box::pin(queue.read(&mut permit, request, largest));
            read.await.map_err(|refused| refused.unwrap_or_else(|| self.busy(class, Full::Class)))?;
            permit.arrived = Instant::now();
        }
        match queue.run(&mut permit).await {
            Ok(()) => Ok(permit),
            Err(full) => Err(self.busy(class, full)),
        }
    }

    const fn queue(&self, class: RequestClass) -> &ClassQueue {
        match class {
            RequestClass::Urgent => &self.urgent,
            RequestClass::People => &self.people,
            RequestClass::Watchers => &self.watchers,
            RequestClass::Machines => &self.machines,
            RequestClass::Syncs => &self.syncs,
            RequestClass::Joins => &self.joins,
        }
    }

    fn busy(&self, class: RequestClass, full: Full) -> Failure {
        self.refused.get_or_create(&RefusedRequests { class: class.as_str() }).inc();
        let ConcurrencyLimit { served, waiting, share, retry_after_ms } = self.queue(class).limit;
        let (whose, served, waiting) = match full {
            Full::Class => ("", served, waiting),
            // One client may have all of the class.
            Full::Share if share == (Share { served, waiting }) => ("", served, waiting),
            Full::Share => (" of this client", share.served, share.waiting),
        };
        let detail = format!(
            "cannot accept another request {}: {served}{whose} are in flight and {waiting} wait",
            class.describe()
        );
        Failure::new(Code::Busy, detail).hint("nothing was changed; retry").retry_after_ms(retry_after_ms)
    }
}

fn busy_with_large(detail: String) -> Failure {
    let failure = Failure::new(Code::Busy, detail).hint("nothing was changed; retry");
    failure.retry_after_ms(LARGE_REQUEST_RETRY_MS)
}

impl ClassQueue {
    fn new(limit: ConcurrencyLimit) -> Self {
        Self {
            limit,
            room: Arc::new(Semaphore::new(limit.served.saturating_add(limit.waiting))),
            reading: Arc::new(Semaphore::new(limit.served)),
            large: Arc::new(Semaphore::new(LARGE_BODIES)),
            served: Arc::new(Semaphore::new(limit.served)),
            shares: Shares::new(limit.share),
        }
    }

    /// Lets a request wait, unless too many do.
    fn wait(&self, class: RequestClass, requester: Requester) -> Result<Box<AdmissionPermit>, Full> {
        let share = self.shares.take(requester).ok_or(Full::Share)?;
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Full::Class)?;
        let arrived = Instant::now();
        Ok(Box::new(AdmissionPermit { _room: room, class, arrived, large: None, served: None, share }))
    }

    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it; none if it found no permit to be read in time.
    async fn read(
        &self,
        permit: &mut AdmissionPermit,
        request: &mut Request,
        largest: usize,
    ) -> Result<(), Option<Failure>> {
        let is_large = largest > MAX_BODY_BYTES
            && body::declared_length(request).is_none_or(|length| length > MAX_BODY_BYTES);
        let bytes = if is_large {
            let large = tokio::time::timeout(PATIENCE, async {
                permit.share.take_large().await;
                Arc::clone(&self.large).acquire_owned().await.ok()
            });
            let busy = || format!("cannot read the body: {LARGE_BODIES} large bodies are in progress");
            permit.large = large.await.ok().flatten();
            if permit.large.is_none() {
                return Err(Some(busy_with_large(busy())));
            }
            body::read(request, largest, LARGE_BODY_DEADLINE).await
        } else {
            let reading = tokio::time::timeout(PATIENCE, async {
                let own = permit.share.reading().await;
                (own, self.reading.acquire().await.ok())
            });
            let _reading = reading.await.map_err(|_| None)?;
            body::read(request, largest, BODY_DEADLINE).await
        };
        *request.body_mut() = Body::from(bytes.map_err(Some)?);
        Ok(())
    }

    /// Waits until the request may run.
    async fn run(&self, permit: &mut AdmissionPermit) -> Result<(), Full> {
        if permit.share.try_run()
            && let Ok(served) = Arc::clone(&self.served).try_acquire_owned()
        {
            permit.served = Some(served);
            return Ok(());
        }
        let waiting = tokio::time::timeout(PATIENCE, async {
            permit.share.run().await;
            permit.served = Arc::clone(&self.served).acquire_owned().await.ok();
        });
        match waiting.await {
            Ok(()) => Ok(()),
            Err(_) if permit.share.runs() => Err(Full::Class),
            Err(_) => Err(Full::Share),
        }
    }
}

#[cfg(test)]
mod tests;
