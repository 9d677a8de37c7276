//! Answers from the catalogue: at once, or when they differ from what the client has seen (a blocking query).
//!
//! The index that clients get is this agent's own: the time of the change by this node's clock, and at least one more than
//! the last index. It is never zero, rises across restarts, and does not go back when a server's store is restored from a
//! backup.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use bellwether_api::consul::View;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use tokio::sync::watch;

use super::query::ConsulQuery;
use super::refusal::ConsulRefusal;
use super::settings::CatalogueHttp;
use super::sources::HttpSources;
use crate::catalogue::CatalogueSnapshot;
use crate::link::contact::ServerContact;
use crate::metrics::{self, MetricSources};

/// The state of the catalogue API. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct CatalogueApi(Arc<ApiState>);

#[derive(Debug)]
struct ApiState {
    http: CatalogueHttp,
    indexed: watch::Receiver<IndexedCatalogue>,
    contact: watch::Receiver<ServerContact>,
    metrics: MetricSources,
    clock: Clock,
    seed: u64,
    started: Timestamp,
    stop: Tasks,
}

/// The catalogue with its index.
#[derive(Debug, Clone)]
struct IndexedCatalogue {
    snapshot: Arc<CatalogueSnapshot>,
    index: u64,
}

impl CatalogueApi {
    /// Follows the catalogue until the agent stops.
    pub(super) fn start(http: CatalogueHttp, sources: HttpSources, tasks: &Tasks) -> Self {
        let HttpSources { mut snapshot, contact, metrics, clock, seed } = sources;
        let started = clock.now();
        let first = IndexedCatalogue {
            snapshot: snapshot.borrow_and_update().clone(),
            index: started.as_millis().max(1),
        };
        let (sender, indexed) = watch::channel(first);
        tasks.spawn("http index", follow(snapshot, sender, clock.clone(), tasks.clone()));
        Self(Arc::new(ApiState {
            http,
            indexed,
            contact,
            metrics,
            clock,
            seed,
            started,
            stop: tasks.clone(),
        }))
    }

    /// The configuration.
    pub(super) fn http(&self) -> &CatalogueHttp {
        &self.0.http
    }

    /// The contact with the servers.
    pub(super) fn contact(&self) -> ServerContact {
        self.0.contact.borrow().clone()
    }

    /// The agent's metrics in the OpenMetrics text format.
    pub(super) fn metrics(&self) -> String {
        metrics::page(&self.0.metrics, self.0.clock.now())
    }

    /// The current catalogue.
    pub(super) fn snapshot(&self) -> Result<Arc<CatalogueSnapshot>, ConsulRefusal> {
        let snapshot = self.0.indexed.borrow().snapshot.clone();
        if snapshot.index == 0 { Err(ConsulRefusal::NothingKnown) } else { Ok(snapshot) }
    }

    /// Answers what `say` makes of the catalogue; a blocking query waits until that differs from what the client has.
    pub(super) async fn answer<T: Serialize>(
        &self,
        query: &ConsulQuery,
        say: impl Fn(View<'_>) -> T,
    ) -> Result<Response, ConsulRefusal> {
        let parts = &self.0;
        query.here(&parts.http.datacentre)?;
        let (known, wait) = (query.index()?, query.wait(parts.seed)?);
        let write = |indexed: &IndexedCatalogue| {
            if indexed.snapshot.index == 0 {
                return Err(ConsulRefusal::NothingKnown);
            }
            let view = View { catalogue: &indexed.snapshot.catalogue, datacentre: &parts.http.datacentre };
            serde_json::to_vec(&say(view)).map_err(|error| ConsulRefusal::Broken(error.to_string()))
        };
        let mut indexed = parts.indexed.clone();
        let mut now = indexed.borrow_and_update().clone();
        let mut body = write(&now)?;
        // Any other index than the current one is answered at once: an old one, or one from a clock that was ahead.
        if known == Some(now.index) {
            let deadline = tokio::time::Instant::now() + wait;
            let before = body.clone();
            while body == before {
                // All arms only wait; the catalogue is read below.
                let over = tokio::select! {
                    changed = indexed.changed() => changed.is_err(),
                    () = tokio::time::sleep_until(deadline) => true,
                    () = parts.stop.cancelled() => true,
                };
                now = indexed.borrow_and_update().clone();
                body = write(&now)?;
                if over {
                    break;
                }
            }
        }
        Ok((self.headers(now.index), body).into_response())
    }

    fn headers(&self, index: u64) -> HeaderMap {
        let contact = self.contact();
        let known = contact.connected_since.is_some();
        let now = self.0.clock.now();
        let stored_at = self.0.indexed.borrow().snapshot.stored_at;
        let last = if known { now } else { contact.last_contact.or(stored_at).unwrap_or(self.0.started) };
        let quiet = now.since(last).as_millis();
        HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::HeaderName::from_static("x-consul-index"), index.into()),
            (
                header::HeaderName::from_static("x-consul-knownleader"),
                HeaderValue::from_static(if known { "true" } else { "false" }),
            ),
            (header::HeaderName::from_static("x-consul-lastcontact"), quiet.into()),
        ])
    }
}

/// Gives every catalogue its index.
async fn follow(
    mut snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    indexed: watch::Sender<IndexedCatalogue>,
    clock: Clock,
    stop: Tasks,
) {
    loop {
        // Both arms only wait; the value is read below.
        tokio::select! {
            () = stop.cancelled() => return,
            changed = snapshot.changed() => if changed.is_err() { return },
        }
        let snapshot = snapshot.borrow_and_update().clone();
        indexed.send_modify(|indexed| {
            let index = clock.now().as_millis().max(indexed.index.saturating_add(1));
            *indexed = IndexedCatalogue { snapshot, index };
        });
    }
}
