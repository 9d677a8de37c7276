//! Discovery over HTTP on this node: the catalogue in Consul's form and targets for Prometheus, from this node's own copy,
//! also while no server can be reached; and the agent's metrics. Read only, and without authentication.
//!
//! To add a path: its text in `bellwether_api::paths`, a handler in a file here, a line in [`routes`].

mod api;
mod consul;
pub(crate) mod host;
mod listen;
mod metrics;
mod query;
mod refusal;
pub(crate) mod serve;
pub(crate) mod settings;
mod sources;
mod targets;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use bellwether_api::paths;
use bellwether_rt::tasks::Tasks;

use api::CatalogueApi;
use host::KnownHosts;
use settings::CatalogueHttp;
pub(crate) use sources::HttpSources;

/// All routes.
fn routes(api: CatalogueApi) -> Router {
    let hosts = KnownHosts::new(api.http());
    Router::new()
        .route(paths::CONSUL_SERVICES, get(consul::services))
        .route(paths::CONSUL_SERVICE, get(consul::service))
        .route(paths::CONSUL_NODES, get(consul::nodes))
        .route(paths::CONSUL_NODE, get(consul::node))
        .route(paths::CONSUL_DATACENTRES, get(consul::datacentres))
        .route(paths::CONSUL_HEALTH_SERVICE, get(consul::health_of_service))
        .route(paths::CONSUL_HEALTH_NODE, get(consul::health_of_node))
        .route(paths::CONSUL_SELF, get(consul::this_agent))
        .route(paths::CONSUL_LEADER, get(consul::leader))
        .route(paths::METRICS, get(metrics::page))
        .route(paths::AGENT_HTTP_SD, get(targets::groups))
        .fallback(refusal::not_found)
        .layer(DefaultBodyLimit::max(0))
        .layer(from_fn(refusal::only_get))
        .layer(from_fn_with_state(hosts, host::only_known))
        .with_state(api)
}

/// Serves until the agent stops. A port that is not available does not keep the agent from its other work.
pub(crate) async fn serve(http: CatalogueHttp, sources: HttpSources, tasks: Tasks) {
    let mut listeners = Vec::new();
    for address in &http.listen {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            Err(error) => return tracing::error!(%address, %error, "cannot listen for HTTP"),
        }
    }
    tracing::info!(addresses = ?http.listen, "serving discovery over HTTP");
    let api = CatalogueApi::start(http, sources, &tasks);
    for listener in listeners {
        tasks.spawn("http", listen::serve(listener, routes(api.clone()), tasks.clone()));
    }
}
