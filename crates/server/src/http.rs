//! HTTP: routes, who may use them, and the translation between shapes and operations. Decides nothing.

mod access;
mod admission;
mod auth;
mod consistency;
mod entities;
mod events;
mod expected;
mod external;
mod failures;
mod fleet_lock;
mod freezes;
mod handshakes;
mod idle;
mod input;
mod listen;
mod logs;
mod nodes;
mod overview;
mod pauses;
mod plan;
mod probes;
mod problem;
mod profiles;
mod reports;
mod rollouts;
mod routes;
mod servers;
mod services;
mod slots;
mod sync;
mod table;
mod why;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::middleware::from_fn;
use bellwether_core::words::name::{Namespace, ServerName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_store::Store;
use tokio_util::sync::CancellationToken;
use tower::util::MapResponseLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

use crate::installation::Installation;
use crate::leadership::Memberships;
use crate::metrics::Metrics;
use crate::pki::Pki;
use crate::sessions::Sessions;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

pub use admission::{Admission, ConcurrencyLimit, ConcurrencyLimits, RefusedRequests, RequestClass};
pub use listen::to_peer;
pub(crate) use listen::{Transport, serve};
pub use table::{ListedRoute, openapi, table};

/// Largest body taken, in bytes: a report of 256 entities with evidence fits.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// A body that takes longer to arrive is somebody holding a socket open.
const BODY_DEADLINE: Duration = Duration::from_secs(30);

/// Longest a blocking read waits before it answers what is there.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// Everything handlers need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState(Arc<AppParts>);

/// What an [`AppState`] is made of.
#[derive(Debug)]
pub struct AppParts {
    /// Where operations are done.
    pub transactor: Transactor,
    /// Makes sure of what the world shows.
    pub lister: RelistHandle,
    /// Agents' sessions.
    pub sessions: Sessions,
    /// The authority.
    pub pki: Pki,
    /// The clock.
    pub clock: Clock,
    /// For reading old events.
    pub store: Store,
    /// How many requests of a kind are under way.
    pub admission: Admission,
    /// What is counted.
    pub metrics: Metrics,
    /// Which server this is.
    pub me: ServerName,
    /// What the store belongs to.
    pub installation: Installation,
    /// What this server holds.
    pub seats: Memberships,
    /// Cancelled when the server stops: hanging requests answer at once.
    pub stop: CancellationToken,
}

impl AppState {
    /// An app of these parts.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The world as it is known now.
    pub(crate) fn world(&self) -> Arc<World> {
        self.0.transactor.world()
    }

    /// A namespace that exists: `default`, or one with records in it.
    pub(crate) fn known(&self, namespace: &Namespace) -> bool {
        namespace.as_str() == "default" || self.world().fleets.contains_key(namespace)
    }
}

impl std::ops::Deref for AppState {
    type Target = AppParts;
    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// The whole router. What lies around every route is one layer: each is a box for every request, for as long as it hangs.
pub fn router(app: &AppState) -> Router {
    let table = table::all(app.clone()).finish();
    let counting = app.clone();
    let document = table.api.to_pretty_json().unwrap_or_default();
    table
        .router
        .merge(table::document(document))
        .fallback(problem::nowhere.layer(from_fn(fleet_lock::in_its_words)))
        .method_not_allowed_fallback(problem::no_such_method.layer(from_fn(fleet_lock::in_its_words)))
        .layer((
            MapResponseLayer::new(move |response| probes::count(&counting.metrics, response)),
            RequestBodyTimeoutLayer::new(BODY_DEADLINE),
            DefaultBodyLimit::max(MAX_BODY_BYTES),
        ))
        .with_state(app.clone())
}
