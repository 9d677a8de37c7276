//! Admission: concurrency limits by class of request. A request runs, waits for a permit, or is refused with a time to retry
//! after. This happens before authentication and is independent of what the caller may do.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use bellwether_api::paths;
use bellwether_api::problem::Code;
use bellwether_core::access::RequiredAccess;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{ConcurrencyLimit, ConcurrencyLimits, DRY_RUNS, LARGE_BODIES};
use super::listen::Peer;
use super::problem::Failure;
use crate::metrics::RefusedRequests;

/// Longest wait for a permit: half of the time after which clients give up, so that a response still has a reader.
const PATIENCE: Duration = Duration::from_secs(5);

/// When a client whose large body or dry run found no permit may retry, in milliseconds.
const LARGE_REQUEST_RETRY_MS: u64 = 2_000;

/// The class of a request. Classes do not share limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    /// Requests of people and programs.
    People,
    /// Blocking reads.
    Watchers,
    /// Reports, registrations, logs and joins of nodes.
    Machines,
    /// Order polls of agents.
    Syncs,
}

/// The permits of all classes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admission {
    people: ClassQueue,
    watchers: ClassQueue,
    machines: ClassQueue,
    syncs: ClassQueue,
    /// Permits of bodies above the usual limit.
    large_bodies: Arc<Semaphore>,
    /// Permits of dry runs of an apply.
    dry_runs: Arc<Semaphore>,
    refused: Family<RefusedRequests, Counter>,
}

#[derive(Debug, Clone)]
struct ClassQueue {
    limit: ConcurrencyLimit,
    /// Permits of requests that run or wait.
    room: Arc<Semaphore>,
    served: Arc<Semaphore>,
}

/// A request's permit; dropping it admits the next request.
#[derive(Debug)]
pub(crate) struct AdmissionPermit {
    _room: OwnedSemaphorePermit,
    _served: OwnedSemaphorePermit,
}

impl Admission {
    /// Admission with these limits, which counts refused requests in `refused`.
    #[must_use]
    pub fn new(limits: ConcurrencyLimits, refused: Family<RefusedRequests, Counter>) -> Self {
        Self {
            people: ClassQueue::new(limits.people),
            watchers: ClassQueue::new(limits.watchers),
            machines: ClassQueue::new(limits.machines),
            syncs: ClassQueue::new(limits.syncs),
            large_bodies: Arc::new(Semaphore::new(LARGE_BODIES)),
            dry_runs: Arc::new(Semaphore::new(DRY_RUNS)),
            refused,
        }
    }

    /// Waits for the permit of a body above the usual limit.
    ///
    /// # Errors
    /// When to retry, if none is free in time.
    pub(super) async fn large_body(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let busy = || format!("cannot read the body: {LARGE_BODIES} large bodies are in progress");
        patiently(&self.large_bodies, busy).await
    }

    /// Waits for the permit of a dry run of an apply.
    ///
    /// # Errors
    /// When to retry, if none is free in time.
    pub(super) async fn dry_run(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let busy = || format!("cannot compare the documents: {DRY_RUNS} dry runs are in progress");
        patiently(&self.dry_runs, busy).await
    }

    /// Waits for a permit, if not too many requests wait already.
    ///
    /// # Errors
    /// When to retry, if too many wait.
    pub(super) async fn enter(&self, class: RequestClass) -> Result<AdmissionPermit, Failure> {
        let queue = match class {
            RequestClass::People => &self.people,
            RequestClass::Watchers => &self.watchers,
            RequestClass::Machines => &self.machines,
            RequestClass::Syncs => &self.syncs,
        };
        if let Some(place) = queue.enter().await {
            return Ok(place);
        }
        self.refused.get_or_create(&RefusedRequests { class: class.as_str() }).inc();
        let ConcurrencyLimit { served, waiting, retry_after_ms } = queue.limit;
        let detail = format!(
            "cannot accept another request {}: {served} are in flight and {waiting} wait",
            class.describe()
        );
        Err(Failure::new(Code::Busy, detail)
            .hint("nothing was changed; retry")
            .retry_after_ms(retry_after_ms))
    }
}

/// Waits for one of few permits of requests that cost much.
async fn patiently(
    permits: &Arc<Semaphore>,
    busy: impl FnOnce() -> String,
) -> Result<OwnedSemaphorePermit, Failure> {
    let permit = tokio::time::timeout(PATIENCE, Arc::clone(permits).acquire_owned()).await;
    permit.ok().and_then(Result::ok).ok_or_else(|| {
        let failure = Failure::new(Code::Busy, busy()).hint("nothing was changed; retry");
        failure.retry_after_ms(LARGE_REQUEST_RETRY_MS)
    })
}

impl ClassQueue {
    fn new(limit: ConcurrencyLimit) -> Self {
        let room = Arc::new(Semaphore::new(limit.served.saturating_add(limit.waiting)));
        Self { limit, room, served: Arc::new(Semaphore::new(limit.served)) }
    }

    async fn enter(&self) -> Option<AdmissionPermit> {
        let room = self.room.clone().try_acquire_owned().ok()?;
        let served = match self.served.clone().try_acquire_owned() {
            Ok(served) => served,
            Err(_) => tokio::time::timeout(PATIENCE, self.served.clone().acquire_owned()).await.ok()?.ok()?,
        };
        Some(AdmissionPermit { _room: room, _served: served })
    }
}

impl RequestClass {
    /// The class of a request to the route `path`. None for requests about the state of the server itself, which are always
    /// admitted.
    pub(super) fn of((path, need): (&'static str, RequiredAccess), request: &Request) -> Option<Self> {
        let is_machine = || request.extensions().get::<Peer>().is_some_and(|peer| peer.bearer.is_some());
        let hangs = || {
            request.uri().query().is_some_and(|query| query.split('&').any(|part| part.starts_with("wait=")))
        };
        match path {
            paths::NODE_ORDER => Some(Self::Syncs),
            paths::JOIN | paths::SERVER_JOIN => Some(Self::Machines),
            paths::METRICS => None,
            _ if need == RequiredAccess::Open => None,
            _ if is_machine() => Some(Self::Machines),
            _ if hangs() => Some(Self::Watchers),
            _ => Some(Self::People),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::People => "people",
            Self::Watchers => "watchers",
            Self::Machines => "machines",
            Self::Syncs => "syncs",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::People => "of people",
            Self::Watchers => "that waits for changes",
            Self::Machines => "of nodes",
            Self::Syncs => "that polls for an order",
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::response::IntoResponse;
    use futures_util::FutureExt;

    use super::*;
    use crate::pki::CertificateIdentity;

    fn narrow() -> Admission {
        let limit = ConcurrencyLimit { served: 1, waiting: 1, retry_after_ms: 1_500 };
        let limits = ConcurrencyLimits { people: limit, watchers: limit, machines: limit, syncs: limit };
        Admission::new(limits, Family::default())
    }

    #[tokio::test]
    async fn one_request_runs_one_waits_and_the_third_is_refused_with_a_retry_time() {
        let admission = narrow();
        let first = admission.enter(RequestClass::Machines).await.unwrap();
        let mut second = Box::pin(admission.enter(RequestClass::Machines));
        assert!(second.as_mut().now_or_never().is_none());
        let third = admission.enter(RequestClass::Machines).await.unwrap_err().into_response();
        assert_eq!(third.status(), 429);
        assert_eq!(third.headers()[http::header::RETRY_AFTER], "2", "whole seconds, rounded up");
        assert!(admission.enter(RequestClass::People).await.is_ok(), "another class has room");
        drop(first);
        drop(second.await.unwrap());
        assert!(admission.enter(RequestClass::Machines).await.is_ok());
        let refused = |class| admission.refused.get_or_create(&RefusedRequests { class }).get();
        assert_eq!((refused("machines"), refused("people")), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_too_long_is_refused() {
        let admission = narrow();
        let first = admission.enter(RequestClass::People).await.unwrap();
        assert!(admission.enter(RequestClass::People).await.is_err());
        drop(first);
        assert!(admission.enter(RequestClass::People).await.is_ok());
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_while_it_waits_releases_its_permit() {
        let admission = narrow();
        let first = admission.enter(RequestClass::People).await.unwrap();
        let mut second = Box::pin(admission.enter(RequestClass::People));
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        let mut third = Box::pin(admission.enter(RequestClass::People));
        assert!(third.as_mut().now_or_never().is_none(), "it waits, and is not refused");
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn few_dry_runs_of_an_apply_run_at_the_same_time() {
        let admission = narrow();
        let first = admission.dry_run().await.unwrap();
        let _second = admission.dry_run().await.unwrap();
        assert_eq!(admission.dry_run().await.unwrap_err().into_response().status(), 429);
        drop(first);
        assert!(admission.dry_run().await.is_ok());
    }

    #[test]
    fn each_request_has_its_class() {
        let bearer = |is_machine: bool| {
            is_machine.then(|| CertificateIdentity {
                namespace: "default".parse().unwrap(),
                node: "web-1".parse().unwrap(),
                key_fingerprint: String::new(),
            })
        };
        let class = |path, need, uri: &str, is_machine| {
            let mut request = Request::builder().uri(uri).body(Body::empty()).unwrap();
            request.extensions_mut().insert(Peer { bearer: bearer(is_machine), address: None });
            RequestClass::of((path, need), &request)
        };
        assert_eq!(class(paths::HEALTHZ, RequiredAccess::Open, "/healthz", false), None);
        assert_eq!(class(paths::METRICS, RequiredAccess::Token, "/metrics", false), None);
        assert_eq!(class(paths::JOIN, RequiredAccess::Open, "/v1/join", false), Some(RequestClass::Machines));
        assert_eq!(
            class(paths::NODE_ORDER, RequiredAccess::OwnNode, "/s?wait=1s", true),
            Some(RequestClass::Syncs)
        );
        assert_eq!(
            class(paths::NODE_REPORT, RequiredAccess::OwnNode, "/r", true),
            Some(RequestClass::Machines)
        );
        assert_eq!(
            class(paths::EVENTS, RequiredAccess::Token, "/e?after=1&wait=9s", false),
            Some(RequestClass::Watchers)
        );
        assert_eq!(
            class(paths::EVENTS, RequiredAccess::Token, "/e?after=1", false),
            Some(RequestClass::People)
        );
    }
}
