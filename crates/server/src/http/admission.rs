//! Admission: who is served now, who waits for a moment, and who is told to come again. Owns how many requests of a kind are
//! under way; looks at nothing that somebody may or may not do, and comes before anybody asks who they are.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use bellwether_api::paths;
use bellwether_api::problem::Code;
use bellwether_core::access::RequiredAccess;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::listen::Peer;
use super::problem::Failure;

/// How long anybody waits for their turn: half of the time after which callers give up, so that what is served is still wanted.
const PATIENCE: Duration = Duration::from_secs(5);

/// A lane of requests. One that is full holds nobody up in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    /// What people and programs ask and change.
    People,
    /// Requests that hang until something changes.
    Watchers,
    /// What machines tell: reports, offers, logs, joining.
    Machines,
    /// The hanging requests of agents.
    Syncs,
}

/// How wide a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimit {
    /// Most that are served at once.
    pub served: usize,
    /// Most that wait until one of those is done.
    pub waiting: usize,
    /// When whoever finds no room is told to come again, in milliseconds.
    pub again_ms: u64,
}

/// The width of every lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// Of [`RequestClass::People`].
    pub people: ConcurrencyLimit,
    /// Of [`RequestClass::Watchers`].
    pub watchers: ConcurrencyLimit,
    /// Of [`RequestClass::Machines`].
    pub machines: ConcurrencyLimit,
    /// Of [`RequestClass::Syncs`].
    pub syncs: ConcurrencyLimit,
}

impl Default for ConcurrencyLimits {
    /// Machines: as many at once as fill the store's transactions at its best, and with those in wait as many as may be
    /// connected: ten thousand agents that were told something answer within a second. Hanging requests do no work, so none
    /// waits for another: they are bounded like the connections are.
    fn default() -> Self {
        Self {
            people: ConcurrencyLimit { served: 256, waiting: 1_024, again_ms: 1_000 },
            watchers: ConcurrencyLimit { served: 4_096, waiting: 0, again_ms: 5_000 },
            machines: ConcurrencyLimit { served: 1_024, waiting: 15_360, again_ms: 4_000 },
            syncs: ConcurrencyLimit { served: 16_384, waiting: 0, again_ms: 4_000 },
        }
    }
}

/// Requests that found no room, by lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusedRequests {
    class: &'static str,
}

/// The lanes of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admission {
    people: ClassQueue,
    watchers: ClassQueue,
    machines: ClassQueue,
    syncs: ClassQueue,
    refused: Family<RefusedRequests, Counter>,
}

#[derive(Debug, Clone)]
struct ClassQueue {
    width: ConcurrencyLimit,
    /// Room for all that are served or wait.
    room: Arc<Semaphore>,
    served: Arc<Semaphore>,
}

/// A place in a lane; dropped, it is another's.
#[derive(Debug)]
pub(crate) struct AdmissionPermit {
    _room: OwnedSemaphorePermit,
    _served: OwnedSemaphorePermit,
}

impl Admission {
    /// Lanes of these widths. Whoever finds no room is counted in `refused`.
    #[must_use]
    pub fn new(widths: ConcurrencyLimits, refused: Family<RefusedRequests, Counter>) -> Self {
        Self {
            people: ClassQueue::new(widths.people),
            watchers: ClassQueue::new(widths.watchers),
            machines: ClassQueue::new(widths.machines),
            syncs: ClassQueue::new(widths.syncs),
            refused,
        }
    }

    /// Waits for a place, if there is room to wait.
    ///
    /// # Errors
    /// When to come again, if there is none.
    pub(super) async fn enter(&self, class: RequestClass) -> Result<AdmissionPermit, Failure> {
        let gate = match class {
            RequestClass::People => &self.people,
            RequestClass::Watchers => &self.watchers,
            RequestClass::Machines => &self.machines,
            RequestClass::Syncs => &self.syncs,
        };
        if let Some(place) = gate.enter().await {
            return Ok(place);
        }
        self.refused.get_or_create(&RefusedRequests { class: class.as_str() }).inc();
        let ConcurrencyLimit { served, waiting, again_ms } = gate.width;
        let detail = format!(
            "could not take one more request {}: {served} are under way here and {waiting} wait",
            class.describe()
        );
        Err(Failure::new(Code::Busy, detail).hint("nothing was changed; try again").retry_after_ms(again_ms))
    }
}

impl ClassQueue {
    fn new(width: ConcurrencyLimit) -> Self {
        let room = Arc::new(Semaphore::new(width.served.saturating_add(width.waiting)));
        Self { width, room, served: Arc::new(Semaphore::new(width.served)) }
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
    /// The lane of a request to the route `path` that needs `need`. None for those that say how the server is: they are
    /// answered at any time.
    pub(super) fn of((path, need): (&'static str, RequiredAccess), request: &Request) -> Option<Self> {
        let is_machine = || request.extensions().get::<Peer>().is_some_and(|peer| peer.bearer.is_some());
        let hangs = || {
            request.uri().query().is_some_and(|query| query.split('&').any(|part| part.starts_with("wait=")))
        };
        match path {
            paths::NODE_ORDER => Some(Self::Syncs),
            paths::JOIN => Some(Self::Machines),
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
            Self::Watchers => "that waits for a change",
            Self::Machines => "of machines",
            Self::Syncs => "of an agent that waits for its order",
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
        let width = ConcurrencyLimit { served: 1, waiting: 1, again_ms: 1_500 };
        let widths = ConcurrencyLimits { people: width, watchers: width, machines: width, syncs: width };
        Admission::new(widths, Family::default())
    }

    #[tokio::test]
    async fn one_is_served_one_waits_and_the_third_is_told_when_to_come_again() {
        let admission = narrow();
        let first = admission.enter(RequestClass::Machines).await.unwrap();
        let mut second = Box::pin(admission.enter(RequestClass::Machines));
        assert!(second.as_mut().now_or_never().is_none());
        let third = admission.enter(RequestClass::Machines).await.unwrap_err().into_response();
        assert_eq!(third.status(), 429);
        assert_eq!(third.headers()[http::header::RETRY_AFTER], "2", "whole seconds, rounded up");
        assert!(admission.enter(RequestClass::People).await.is_ok(), "another lane has room");
        drop(first);
        drop(second.await.unwrap());
        assert!(admission.enter(RequestClass::Machines).await.is_ok());
        let refused = |class| admission.refused.get_or_create(&RefusedRequests { class }).get();
        assert_eq!((refused("machines"), refused("people")), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waited_too_long_is_told_to_come_again() {
        let admission = narrow();
        let first = admission.enter(RequestClass::People).await.unwrap();
        assert!(admission.enter(RequestClass::People).await.is_err());
        drop(first);
        assert!(admission.enter(RequestClass::People).await.is_ok());
    }

    #[tokio::test]
    async fn whoever_hangs_up_while_they_wait_gives_their_place_back() {
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

    #[test]
    fn each_request_has_its_lane() {
        let bearer = |is_machine: bool| {
            is_machine.then(|| CertificateIdentity {
                namespace: "default".parse().unwrap(),
                node: "web-1".parse().unwrap(),
                key_fingerprint: String::new(),
            })
        };
        let class = |path, need, uri: &str, is_machine| {
            let mut request = Request::builder().uri(uri).body(Body::empty()).unwrap();
            request.extensions_mut().insert(Peer { bearer: bearer(is_machine) });
            RequestClass::of((path, need), &request)
        };
        assert_eq!(class(paths::HEALTHZ, RequiredAccess::Open, "/healthz", false), None);
        assert_eq!(class(paths::METRICS, RequiredAccess::Read, "/metrics", false), None);
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
            class(paths::EVENTS, RequiredAccess::Read, "/e?after=1&wait=9s", false),
            Some(RequestClass::Watchers)
        );
        assert_eq!(
            class(paths::EVENTS, RequiredAccess::Read, "/e?after=1", false),
            Some(RequestClass::People)
        );
    }
}
