//! The table of routes: every path with the right it requires, its summary and its shapes; one file per noun.

mod access;
mod clusters;
mod ensembles;
mod entities;
mod filters;
mod freezes;
mod nodes;
mod profiles;
mod rollouts;
mod secrets;
mod server;
mod services;
mod sinks;
mod slots;
mod workflows;

use axum::Router;
use axum::routing::get;
use bellwether_api::paths;
use bellwether_core::access::RequiredAccess;
use bytes::Bytes;
use http::header;
use utoipa::openapi::OpenApi;

use super::routes::{self, Routes};
use super::state::AppState;

/// The parts of the table. A new one is one line.
const PARTS: [fn(Routes) -> Routes; 44] = [
    nodes::nodes,
    nodes::runnable,
    nodes::params,
    nodes::facts,
    nodes::members,
    nodes::expected,
    nodes::statuses,
    nodes::output,
    nodes::agents,
    services::services,
    entities::entities,
    entities::external,
    rollouts::rollouts,
    rollouts::events,
    filters::filters,
    freezes::freezes,
    freezes::global_freezes,
    freezes::pauses,
    slots::slots,
    slots::acquisitions,
    slots::fleet_lock,
    profiles::profiles,
    profiles::revisions,
    profiles::params,
    clusters::clusters,
    clusters::members,
    ensembles::ensembles,
    workflows::tasks,
    workflows::stages,
    workflows::workflows,
    workflows::schedules,
    workflows::reactions,
    sinks::sinks,
    workflows::runs,
    workflows::jobs,
    workflows::job_logs,
    secrets::secrets,
    secrets::revealed,
    access::access,
    access::roles,
    server::server,
    server::backups,
    server::authorities,
    server::installation,
];

/// A route, for tests and documents.
#[derive(Debug, Clone)]
pub struct ListedRoute {
    /// The method, upper case.
    pub method: &'static str,
    /// The path with its parameters.
    pub path: &'static str,
    /// The right it requires.
    pub need: RequiredAccess,
}

/// Every route and the right it requires.
#[must_use]
pub fn table(app: &AppState) -> Vec<ListedRoute> {
    let needs = all(app.clone()).finish().needs;
    let listed = needs.into_iter().map(|(method, path, need)| ListedRoute {
        method: routes::name(&method),
        path,
        need,
    });
    listed.collect()
}

/// The API's description of itself.
#[must_use]
pub fn openapi(app: &AppState) -> OpenApi {
    all(app.clone()).finish().api
}

/// All routes.
pub(super) fn all(app: AppState) -> Routes {
    PARTS.iter().fold(Routes::new(app), |routes, part| part(routes))
}

/// The API's description as a route: it tells nothing of the fleet.
pub(super) fn document(document: String) -> Router<AppState> {
    // All answers share it.
    let document = Bytes::from(document);
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
    Router::new().route(paths::OPENAPI, get(answer))
}
