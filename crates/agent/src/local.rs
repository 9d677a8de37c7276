//! The agent's local API, for programs on this node: HTTP on a Unix socket in the data directory.
//!
//! Only root and the agent's own user and group are served. To add a noun: its paths in
//! `bellwether_api::paths` below `/v1/agent/`, a file here with its handlers, a line in [`routes`], and what it needs in
//! [`LocalApi`].

mod api;
mod catalogue;
pub mod client;
mod listen;
pub(crate) mod problem;
mod reload;
mod services;
mod socket_path;
mod status;
pub(crate) mod status_sink;
mod statuses;

use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, put};
use bellwether_api::paths;
use tower_http::timeout::RequestBodyTimeoutLayer;

pub(crate) use api::LocalApi;
pub use socket_path::socket;

/// Largest request body, in bytes: statuses and definitions are short.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Deadline of a request body, against clients that hold a connection open.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// All routes.
fn routes(local: LocalApi) -> Router {
    Router::new()
        .route(paths::AGENT_STATUS, get(status::get))
        .route(paths::AGENT_RELOAD, put(reload::put))
        .route(paths::AGENT_STATUSES, put(statuses::put).delete(statuses::delete))
        .route(paths::AGENT_CATALOGUE, get(catalogue::get))
        .route(paths::AGENT_SERVICES, get(services::list).put(services::register))
        .route(paths::AGENT_SERVICE, delete(services::deregister))
        .route(paths::AGENT_TTL_UPDATE, put(services::update_only_check))
        .route(paths::AGENT_CHECK_TTL_UPDATE, put(services::update_named_check))
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(RequestBodyTimeoutLayer::new(BODY_DEADLINE))
        .with_state(local)
}

/// Serves until the agent stops. A socket that cannot be created does not keep the agent from its other work.
pub(crate) async fn serve(local: LocalApi, data_dir: PathBuf, tasks: bellwether_rt::tasks::Tasks) {
    let path = socket(&data_dir);
    match listen::bind(&path) {
        Ok(listener) => {
            listen::serve(listener, routes(local), tasks).await;
            listen::remove(&path);
        }
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "cannot listen on the local socket");
        }
    }
}
