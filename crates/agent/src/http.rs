//! Discovery over HTTP on this machine: the catalogue in Consul's form and targets for Prometheus, from this machine's own
//! copy, also while no server can be reached. Reads only; whoever reaches the port may ask.
//!
//! To add a path: its text in `bellwether_api::paths`, a handler in a file here, a line in [`routes`].

mod api;
mod consul;
mod listen;
mod query;
mod refusal;
pub(crate) mod serve;
mod settings;
mod targets;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use axum::routing::get;
use bellwether_api::paths;
use bellwether_rt::tasks::Tasks;

use api::CatalogueApi;
pub use settings::CatalogueHttp;
pub(crate) use settings::HttpSources;

/// Everything that is answered here.
fn routes(desk: CatalogueApi) -> Router {
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
        .route(paths::AGENT_HTTP_SD, get(targets::groups))
        .fallback(refusal::nowhere)
        .layer(DefaultBodyLimit::max(0))
        .layer(from_fn(refusal::only_get))
        .with_state(desk)
}

/// Answers until the level stops. A port that cannot be had is no reason not to run what is to run here.
pub(crate) async fn serve(http: CatalogueHttp, sources: HttpSources, level: Tasks) {
    let mut listeners = Vec::new();
    for address in &http.listen {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            Err(error) => return tracing::error!(%address, %error, "could not listen for HTTP"),
        }
    }
    tracing::info!(addresses = ?http.listen, "answering discovery over HTTP");
    let desk = CatalogueApi::start(http, sources, &level);
    for listener in listeners {
        level.spawn("http", listen::serve(listener, routes(desk.clone()), level.clone()));
    }
}
