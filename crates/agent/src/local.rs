//! The agent's own API, for programs on this machine: HTTP on a unix socket in the data directory.
//!
//! Root and the agent's own user and group may ask; nobody else gets an answer. To add a noun: its paths in
//! `bellwether_api::paths` below `/v1/agent/`, a file here with its handlers, a line in [`routes`], and what it needs in
//! [`LocalApi`].

mod api;
mod catalogue;
pub mod client;
mod listen;
mod problem;
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

/// Largest body taken, in bytes: what programs say of themselves is short.
const MAX_BODY_BYTES: usize = 64 << 10;

/// A body that takes longer to arrive is somebody holding a socket open.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// Everything that is answered here.
fn routes(local: LocalApi) -> Router {
    Router::new()
        .route(paths::AGENT_STATUS, get(status::get))
        .route(paths::AGENT_STATUSES, put(statuses::put))
        .route(paths::AGENT_CATALOGUE, get(catalogue::get))
        .route(paths::AGENT_SERVICES, get(services::list).put(services::register))
        .route(paths::AGENT_SERVICE, delete(services::deregister))
        .route(paths::AGENT_TTL_UPDATE, put(services::pulse))
        .route(paths::AGENT_CHECK_TTL_UPDATE, put(services::pulse_of))
        .fallback(problem::nowhere)
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(RequestBodyTimeoutLayer::new(BODY_DEADLINE))
        .with_state(local)
}

/// Answers until the level stops. A socket that cannot be made is no reason not to run what is to run here.
pub(crate) async fn serve(local: LocalApi, data_dir: PathBuf, level: bellwether_rt::tasks::Tasks) {
    let path = socket(&data_dir);
    match listen::bind(&path) {
        Ok(listener) => {
            listen::serve(listener, routes(local), level).await;
            listen::remove(&path);
        }
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "could not listen for programs on this machine");
        }
    }
}
