//! Answers from the catalogue: at once, or when they are no longer what the client has seen.
//!
//! The index that clients are given is this agent's own: the moment of the change by this machine's clock, and at least one
//! more than the last. It is never zero, goes on rising over restarts, and does not follow a server whose backup was restored
//! back in time.

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
use super::settings::{CatalogueHttp, HttpSources};
use crate::catalogue::CatalogueSnapshot;
use crate::link::contact::ServerContact;

/// Where answers are made. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct CatalogueApi(Arc<ApiParts>);

#[derive(Debug)]
struct ApiParts {
    http: CatalogueHttp,
    seen: watch::Receiver<SeenCatalogue>,
    contact: watch::Receiver<ServerContact>,
    clock: Clock,
    seed: u64,
    started: Timestamp,
    stop: Tasks,
}

/// The catalogue, and what it is called.
#[derive(Debug, Clone)]
struct SeenCatalogue {
    snapshot: Arc<CatalogueSnapshot>,
    index: u64,
}

impl CatalogueApi {
    /// A desk that follows the catalogue until the level stops.
    pub(super) fn start(http: CatalogueHttp, sources: HttpSources, level: &Tasks) -> Self {
        let HttpSources { mut snapshot, contact, clock, seed } = sources;
        let started = clock.now();
        let first = SeenCatalogue {
            snapshot: snapshot.borrow_and_update().clone(),
            index: started.as_millis().max(1),
        };
        let (sender, seen) = watch::channel(first);
        level.spawn("http index", follow(snapshot, sender, clock.clone(), level.clone()));
        Self(Arc::new(ApiParts { http, seen, contact, clock, seed, started, stop: level.clone() }))
    }

    /// What it is made of.
    pub(super) fn http(&self) -> &CatalogueHttp {
        &self.0.http
    }

    /// How the contact with the servers is.
    pub(super) fn contact(&self) -> ServerContact {
        self.0.contact.borrow().clone()
    }

    /// The catalogue as it is now.
    pub(super) fn snapshot(&self) -> Result<Arc<CatalogueSnapshot>, ConsulRefusal> {
        let snapshot = self.0.seen.borrow().snapshot.clone();
        if snapshot.index == 0 { Err(ConsulRefusal::NothingKnown) } else { Ok(snapshot) }
    }

    /// Answers what `say` makes of the catalogue; if the client has seen the present one, once that would be something else.
    pub(super) async fn answer<T: Serialize>(
        &self,
        query: &ConsulQuery,
        say: impl Fn(View<'_>) -> T,
    ) -> Result<Response, ConsulRefusal> {
        let parts = &self.0;
        query.here(&parts.http.datacentre)?;
        let (known, wait) = (query.index()?, query.wait(parts.seed)?);
        let write = |seen: &SeenCatalogue| {
            if seen.snapshot.index == 0 {
                return Err(ConsulRefusal::NothingKnown);
            }
            let view = View { catalogue: &seen.snapshot.catalogue, datacentre: &parts.http.datacentre };
            serde_json::to_vec(&say(view)).map_err(|error| ConsulRefusal::Broken(error.to_string()))
        };
        let mut seen = parts.seen.clone();
        let mut now = seen.borrow_and_update().clone();
        let mut body = write(&now)?;
        // An index from before is answered at once, and so is one from a clock that went ahead: clients begin anew then.
        if known == Some(now.index) {
            let deadline = tokio::time::Instant::now() + wait;
            let before = body.clone();
            while body == before {
                // All arms only wait; the catalogue is looked at below.
                let over = tokio::select! {
                    changed = seen.changed() => changed.is_err(),
                    () = tokio::time::sleep_until(deadline) => true,
                    () = parts.stop.cancelled() => true,
                };
                now = seen.borrow_and_update().clone();
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
        let last = if known { now } else { contact.last_contact.unwrap_or(self.0.started) };
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
    seen: watch::Sender<SeenCatalogue>,
    clock: Clock,
    stop: Tasks,
) {
    loop {
        // Both only wait; the value is looked at below.
        tokio::select! {
            () = stop.cancelled() => return,
            changed = snapshot.changed() => if changed.is_err() { return },
        }
        let snapshot = snapshot.borrow_and_update().clone();
        seen.send_modify(|seen| {
            let index = clock.now().as_millis().max(seen.index.saturating_add(1));
            *seen = SeenCatalogue { snapshot, index };
        });
    }
}
