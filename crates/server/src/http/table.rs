//! The table of routes: every path with its need, its words and its shapes.

mod held;
mod people;

use axum::Router;
use axum::routing::get;
use bellwether_api::paths;
use bellwether_api::v1::access::{Joined, Renew};
use bellwether_api::v1::entity::{Entity, EntitySpec};
use bellwether_api::v1::event::Event;
use bellwether_api::v1::external::{ExpectedVersions, TargetReports};
use bellwether_api::v1::failure::Failures;
use bellwether_api::v1::http_sd::TargetGroup;
use bellwether_api::v1::log::{NewLog, NodeLog};
use bellwether_api::v1::node::{LabelChange, NodeView, Reason, SilentNode};
use bellwether_api::v1::order::OrderPoll;
use bellwether_api::v1::overview::Overview;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::Resumed;
use bellwether_api::v1::plan::{NewPlan, Plan};
use bellwether_api::v1::profile::{Profile, ProfilePatch, ProfileRevision, ProfileSpec};
use bellwether_api::v1::registrations::ServiceRegistrations;
use bellwether_api::v1::report::Report;
use bellwether_api::v1::rollout::{NewRollout, Rollout, RolloutOperation, RolloutView, StartedRollout};
use bellwether_api::v1::server::{ControlPlane, ServerTime};
use bellwether_api::v1::service::{ServiceSummary, ServiceView};
use bellwether_api::v1::status::Status;
use bellwether_api::v1::target::TargetView;
use bellwether_api::v1::why::Why;
use bellwether_core::access::RequiredAccess;
use http::header;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::HttpMethod::{self, Delete, Get, Patch, Post, Put};

use super::routes::{Empty, Route, Routes};
use super::{
    AppState, access, entities, events, expected, external, failures, logs, nodes, overview, plan, probes,
    profiles, reports, rollouts, routes, servers, services, sync, why,
};

/// A route as listed for tests and documents.
#[derive(Debug, Clone)]
pub struct ListedRoute {
    /// The method, upper case.
    pub method: &'static str,
    /// The path with its parameters.
    pub path: &'static str,
    /// What it needs.
    pub need: RequiredAccess,
}

/// Every route and what it needs.
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

const fn route(method: HttpMethod, path: &'static str, need: RequiredAccess, summary: &'static str) -> Route {
    Route { method, path, need, summary, query: &[], media: None }
}

pub(super) fn all(app: AppState) -> Routes {
    let routes = agents(nodes(Routes::new(app)));
    let routes = rolling(changes(offered(fleet(routes))));
    let routes = held::fleet_lock(held::turns(held::paused(held::frozen(routes))));
    people::people(configuration(routes))
        .add::<Empty, Empty, _, _>(
            route(Get, paths::HEALTHZ, RequiredAccess::Open, "The process answers").media("text/plain"),
            probes::healthz,
        )
        .add::<Empty, Empty, _, _>(
            route(Get, paths::READYZ, RequiredAccess::Open, "The store answers").media("text/plain"),
            probes::readyz,
        )
        .add::<Empty, ServerTime, _, _>(
            route(Get, paths::TIME, RequiredAccess::Open, "What time it is for the control plane"),
            servers::time,
        )
        .add::<Empty, ControlPlane, _, _>(
            route(Get, paths::SERVERS, RequiredAccess::Read, "The control plane: its servers and who leads"),
            servers::list,
        )
        .add::<Empty, Empty, _, _>(
            route(Get, paths::METRICS, RequiredAccess::Read, "Prometheus metrics").media("text/plain"),
            probes::metrics_page,
        )
}

/// The API's description as a route: it tells nothing of the fleet.
pub(super) fn document(document: String) -> Router<AppState> {
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
    Router::new().route(paths::OPENAPI, get(answer))
}

fn nodes(routes: Routes) -> Routes {
    routes
        .add::<Empty, Overview, _, _>(
            route(Get, paths::STATUS, RequiredAccess::Read, "One screen about a namespace"),
            overview::get,
        )
        .add::<Empty, Page<NodeView>, _, _>(
            route(Get, paths::NODES, RequiredAccess::Read, "List nodes").query(&[
                "filter",
                "limit",
                "after",
                "decommissioned",
            ]),
            nodes::list,
        )
        .add::<Empty, NodeView, _, _>(
            route(Get, paths::NODE, RequiredAccess::OwnNodeOrRead, "Get a node"),
            nodes::get,
        )
        .add::<LabelChange, Empty, _, _>(
            route(Patch, paths::NODE_LABELS, RequiredAccess::Operate, "Change labels"),
            nodes::label,
        )
        .add::<Reason, Empty, _, _>(
            route(Post, paths::NODE_PAUSE, RequiredAccess::Operate, "Pause a node"),
            nodes::pause,
        )
        .add::<Reason, Empty, _, _>(
            route(Post, paths::NODE_CORDON, RequiredAccess::Operate, "Tell a node nothing new"),
            nodes::cordon,
        )
        .add::<Reason, Empty, _, _>(
            route(
                Post,
                paths::NODE_DRAIN,
                RequiredAccess::Operate,
                "Tell a node nothing new, and let it serve nobody",
            ),
            nodes::drain,
        )
        .add::<Empty, Empty, _, _>(
            route(Post, paths::NODE_UNCORDON, RequiredAccess::Operate, "End a cordon or a draining"),
            nodes::uncordon,
        )
        .add::<Empty, Resumed, _, _>(
            route(
                Post,
                paths::NODE_RESUME,
                RequiredAccess::Operate,
                "Resume a node, and hear what still holds it",
            ),
            nodes::resume,
        )
        .add::<Reason, Empty, _, _>(
            route(Post, paths::NODE_DECOMMISSION, RequiredAccess::Administer, "Take a node out for good"),
            nodes::decommission,
        )
}

/// What agents call.
fn agents(routes: Routes) -> Routes {
    routes
        .add::<Report, Empty, _, _>(
            route(Put, paths::NODE_REPORT, RequiredAccess::OwnNode, "Report what was seen"),
            reports::put,
        )
        .add::<Empty, OrderPoll, _, _>(
            route(Get, paths::NODE_ORDER, RequiredAccess::OwnNode, "Wait for a newer order").query(&[
                "generation",
                "catalogue",
                "servers",
                "wait",
            ]),
            sync::sync,
        )
        .add::<Renew, Joined, _, _>(
            route(Post, paths::RENEW, RequiredAccess::OwnNode, "Renew a certificate"),
            access::renew,
        )
}

/// What nodes say of themselves beside their reports, and who is missing.
fn fleet(routes: Routes) -> Routes {
    routes
        .add::<Reason, Empty, _, _>(
            route(Put, paths::NODE_EXPECTED, RequiredAccess::Operate, "Expect a node to join"),
            expected::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::NODE_EXPECTED, RequiredAccess::Operate, "Expect a node no longer"),
            expected::delete,
        )
        .add::<Empty, Page<SilentNode>, _, _>(
            route(Get, paths::SILENT_NODES, RequiredAccess::Read, "List nodes of whom nobody hears"),
            expected::unaccounted,
        )
        .add::<Status, Empty, _, _>(
            route(Put, paths::NODE_STATUS, RequiredAccess::OwnNodeOrOperate, "Set one status of a node"),
            nodes::set_status,
        )
        .add::<Empty, Failures, _, _>(
            route(
                Get,
                paths::FAILURES,
                RequiredAccess::Read,
                "Everything that failed, and everything silent",
            ),
            failures::list,
        )
        .add::<Empty, Page<NodeLog>, _, _>(
            route(Get, paths::NODE_LOGS, RequiredAccess::OwnNodeOrRead, "List the kept logs of a node"),
            logs::list,
        )
        .add::<Empty, NodeLog, _, _>(
            route(Get, paths::NODE_LOG, RequiredAccess::OwnNodeOrRead, "Get a kept log of a node"),
            logs::get,
        )
        .add::<NewLog, Empty, _, _>(
            route(Put, paths::NODE_LOG, RequiredAccess::OwnNode, "Keep the log of a failing run"),
            logs::put,
        )
}

/// What nodes offer, and the catalogue.
fn offered(routes: Routes) -> Routes {
    routes
        .add::<ServiceRegistrations, Empty, _, _>(
            route(Put, paths::NODE_REGISTRATIONS, RequiredAccess::OwnNode, "Say what a node offers"),
            services::registration,
        )
        .add::<Empty, Page<ServiceSummary>, _, _>(
            route(Get, paths::SERVICES, RequiredAccess::NodeOrRead, "List services")
                .query(&["index", "wait", "limit", "after"]),
            services::list,
        )
        .add::<Empty, ServiceView, _, _>(
            route(Get, paths::SERVICE, RequiredAccess::NodeOrRead, "Get a service").query(&["index", "wait"]),
            services::get,
        )
        .item::<TargetGroup>()
        .add::<Empty, Vec<TargetGroup>, _, _>(
            route(Get, paths::HTTP_SD, RequiredAccess::NodeOrRead, "A service's targets for Prometheus")
                .query(&["service", "tag"]),
            services::targets,
        )
}

fn changes(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Entity>, _, _>(
            route(Get, paths::ENTITIES, RequiredAccess::Read, "List entities"),
            entities::list,
        )
        .add::<Empty, Entity, _, _>(
            route(Get, paths::ENTITY, RequiredAccess::Read, "Get an entity"),
            entities::get,
        )
        .add::<NewPlan, Plan, _, _>(
            route(Post, paths::PLAN, RequiredAccess::Read, "Say what a rollout would bring"),
            plan::plan,
        )
        .add::<EntitySpec, Empty, _, _>(
            route(Put, paths::ENTITY, RequiredAccess::Operate, "Set an entity"),
            entities::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::ENTITY, RequiredAccess::Administer, "Delete an entity and its history"),
            entities::delete,
        )
        .add::<Empty, Page<TargetView>, _, _>(
            route(Get, paths::TARGETS, RequiredAccess::Read, "List targets")
                .query(&["limit", "after", "group"]),
            rollouts::targets,
        )
        .add::<TargetReports, ExpectedVersions, _, _>(
            route(
                Post,
                paths::ORCHESTRATE,
                RequiredAccess::Operate,
                "Report external targets, and hear what each is to run",
            ),
            external::orchestrate,
        )
        .add::<TargetReports, Empty, _, _>(
            route(Post, paths::REPORTS, RequiredAccess::Operate, "Report external targets"),
            external::report,
        )
}

/// Rollouts and their events.
fn rolling(routes: Routes) -> Routes {
    routes
        .add::<NewRollout, StartedRollout, _, _>(
            route(Post, paths::ROLLOUTS, RequiredAccess::Operate, "Start a rollout"),
            rollouts::start,
        )
        .add::<Empty, Page<Rollout>, _, _>(
            route(Get, paths::ROLLOUTS, RequiredAccess::Read, "List rollouts").query(&["limit", "after"]),
            rollouts::list,
        )
        .add::<Empty, Rollout, _, _>(
            route(Get, paths::ROLLOUT, RequiredAccess::Read, "Get a rollout"),
            rollouts::get,
        )
        .add::<Empty, RolloutView, _, _>(
            route(Get, paths::ROLLOUT_CURRENT, RequiredAccess::Read, "The rollout that runs, or the last")
                .query(&["index", "wait"]),
            rollouts::current,
        )
        .add::<RolloutOperation, Empty, _, _>(
            route(
                Post,
                paths::ROLLOUT_OPERATION,
                RequiredAccess::Operate,
                "Pause, resume, approve, abort, undo or retry",
            ),
            rollouts::act,
        )
        .add::<Empty, Page<Event>, _, _>(
            route(Get, paths::EVENTS, RequiredAccess::Read, "List events").query(&["after", "limit", "wait"]),
            events::list,
        )
        .add::<Empty, Empty, _, _>(
            route(Get, paths::EVENTS_STREAM, RequiredAccess::Read, "Stream events")
                .query(&["after"])
                .media("text/event-stream"),
            events::stream,
        )
        .add::<Empty, Why, _, _>(
            route(Get, paths::WHY, RequiredAccess::Read, "Why something waits"),
            why::get,
        )
}

fn configuration(routes: Routes) -> Routes {
    routes
        .add::<Empty, Page<Profile>, _, _>(
            route(Get, paths::PROFILES, RequiredAccess::Read, "List profiles"),
            profiles::list,
        )
        .add::<Empty, ProfileRevision, _, _>(
            route(Get, paths::PROFILE, RequiredAccess::Read, "Get a profile's newest revision"),
            profiles::get,
        )
        .add::<ProfilePatch, ProfileRevision, _, _>(
            route(Patch, paths::PROFILE, RequiredAccess::Operate, "Change single params of a profile"),
            profiles::patch,
        )
        .add::<ProfileSpec, ProfileRevision, _, _>(
            route(Put, paths::PROFILE, RequiredAccess::Operate, "Set all params of a profile"),
            profiles::put,
        )
        .add::<Empty, Empty, _, _>(
            route(Delete, paths::PROFILE, RequiredAccess::Administer, "Delete a profile and its revisions"),
            profiles::delete,
        )
        .add::<Empty, Page<ProfileRevision>, _, _>(
            route(Get, paths::PROFILE_REVISIONS, RequiredAccess::Read, "List a profile's revisions"),
            profiles::profile_revisions,
        )
        .add::<Empty, ProfileRevision, _, _>(
            route(Get, paths::PROFILE_REVISION, RequiredAccess::NodeOrRead, "Get one revision of a profile"),
            profiles::profile_revision,
        )
}
