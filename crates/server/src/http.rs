//! The HTTP API: routes, authorisation, and the conversion between wire shapes and operations. Decides nothing.

mod accepted;
mod access;
mod admission;
mod apply;
mod audit;
mod auth;
mod authentication_failures;
mod authorities;
mod backup;
mod body;
mod cluster_wait;
mod clusters;
mod connections;
mod consistency;
mod credential;
mod currency;
mod definitions;
mod ensembles;
mod entities;
mod event_chain;
mod events;
mod expected;
mod external;
mod failures;
mod filters;
mod fleet_lock;
mod freezes;
mod handshakes;
mod idle;
mod input;
mod job_logs;
mod jobs;
mod json_change;
pub mod limits;
mod list;
mod listen;
mod logs;
mod namespaces;
mod node_certificate;
mod node_params;
mod node_quota;
mod nodes;
mod overview;
mod params;
mod past_view;
mod pauses;
mod plan;
mod probes;
mod problem;
mod process_logs;
mod profiles;
mod reactions;
mod readable;
pub mod reads;
mod reports;
mod roles;
mod rollouts;
mod route_object;
mod routes;
mod runs;
mod schedules;
mod secrets;
mod server_join;
mod servers;
mod services;
mod sinks;
mod slots;
mod state;
mod stranger_log;
mod sync;
mod table;
mod taken_body;
mod waited;
mod why;
mod why_ensemble;
mod why_reaction;
mod why_sink;
mod why_store;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn;
use tower::util::MapResponseLayer;

pub use admission::{Admission, RequestClass};
pub use authentication_failures::AuthenticationFailures;
pub use limits::{ConcurrencyLimit, ConcurrencyLimits, Share};
pub(crate) use list::node::matching_names;
pub use listen::from_peer;
pub(crate) use listen::{Transport, serve};
pub use state::{AppContext, AppState, ClusterContext, RecordContext, ServerIdentity, TrafficContext};
pub(crate) use stranger_log::LoadLog;
pub use table::{ListedRoute, openapi, table};

/// All routes. Each layer costs one allocation per request, for as long as it waits.
pub fn router(app: &AppState) -> Router {
    let table = table::all(app.clone()).finish();
    let counting = app.clone();
    let document = table.api.to_pretty_json().unwrap_or_default();
    table
        .router
        .merge(table::document(document))
        .fallback(problem::unknown_path.layer(from_fn(fleet_lock::error::as_fleet_lock_error)))
        .method_not_allowed_fallback(
            problem::unknown_method.layer(from_fn(fleet_lock::error::as_fleet_lock_error)),
        )
        .layer(MapResponseLayer::new(move |response| probes::count(&counting.traffic.metrics, response)))
        .with_state(app.clone())
}
