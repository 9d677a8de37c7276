//! The table of routes: every path with its need, its words and its shapes.

mod held;

use axum::Router;
use axum::routing::get;
use bellwether_api::paths;
use bellwether_api::v1::access::{
    Join, JoinTokenInfo, Joined, NewJoinToken, NewToken, Renew, Secret, TokenInfo, WhoAmI,
};
use bellwether_api::v1::entity::{Entity, EntitySpec};
use bellwether_api::v1::event::Event;
use bellwether_api::v1::external::{Orchestrated, Reports};
use bellwether_api::v1::failure::Failures;
use bellwether_api::v1::http_sd::TargetGroup;
use bellwether_api::v1::log::{NewLog, NodeLog};
use bellwether_api::v1::node::{Because, LabelChange, NodeView, Unaccounted};
use bellwether_api::v1::offers::Offers;
use bellwether_api::v1::order::Sync;
use bellwether_api::v1::overview::Overview;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::Resumed;
use bellwether_api::v1::plan::{NewPlan, Plan};
use bellwether_api::v1::profile::{Edition, Profile, ProfilePatch, ProfileSpec};
use bellwether_api::v1::report::Report;
use bellwether_api::v1::rollout::{Act, NewRollout, Rollout, RolloutView, Started};
use bellwether_api::v1::server::{ControlPlane, Time};
use bellwether_api::v1::service::{ServiceSummary, ServiceView};
use bellwether_api::v1::status::Status;
use bellwether_api::v1::target::TargetView;
use bellwether_api::v1::why::Why;
use bellwether_core::access::Need;
use http::header;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::HttpMethod::{self, Delete, Get, Patch, Post, Put};

use super::routes::{Nothing, Route, Routes};
use super::{
    App, access, entities, events, expected, external, failures, logs, nodes, overview, plan, probes,
    profiles, reports, rollouts, routes, servers, services, sync, why,
};

/// A route as listed for tests and documents.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The method, upper case.
    pub method: &'static str,
    /// The path with its parameters.
    pub path: &'static str,
    /// What it needs.
    pub need: Need,
}

/// Every route and what it needs.
#[must_use]
pub fn table(app: &App) -> Vec<Listed> {
    let needs = all(app.clone()).finish().needs;
    let listed =
        needs.into_iter().map(|(method, path, need)| Listed { method: routes::name(&method), path, need });
    listed.collect()
}

/// The API's description of itself.
#[must_use]
pub fn openapi(app: &App) -> OpenApi {
    all(app.clone()).finish().api
}

const fn route(method: HttpMethod, path: &'static str, need: Need, summary: &'static str) -> Route {
    Route { method, path, need, summary }
}

pub(super) fn all(app: App) -> Routes {
    people(configuration(held::turns(held::paused(held::frozen(changes(offered(fleet(nodes(
        Routes::new(app),
    )))))))))
    .add::<Nothing, Nothing, _, _>(
        route(Get, paths::HEALTHZ, Need::Open, "The process answers"),
        probes::healthz,
    )
    .add::<Nothing, Nothing, _, _>(route(Get, paths::READYZ, Need::Open, "The store answers"), probes::readyz)
    .add::<Nothing, Time, _, _>(
        route(Get, paths::TIME, Need::Open, "What time it is for the control plane"),
        servers::time,
    )
    .add::<Nothing, ControlPlane, _, _>(
        route(Get, paths::SERVERS, Need::Read, "The control plane: its servers and who leads"),
        servers::list,
    )
    .add::<Nothing, Nothing, _, _>(
        route(Get, paths::METRICS, Need::Read, "Prometheus metrics"),
        probes::metrics_page,
    )
}

/// The API's description as a route: it tells nothing of the fleet.
pub(super) fn document(document: String) -> Router<App> {
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], document) };
    Router::new().route(paths::OPENAPI, get(answer))
}

fn nodes(routes: Routes) -> Routes {
    routes
        .add::<Nothing, Overview, _, _>(
            route(Get, paths::STATUS, Need::Read, "One screen about a namespace"),
            overview::get,
        )
        .add::<Nothing, Page<NodeView>, _, _>(route(Get, paths::NODES, Need::Read, "List nodes"), nodes::list)
        .add::<Nothing, NodeView, _, _>(
            route(Get, paths::NODE, Need::OwnNodeOrRead, "Get a node"),
            nodes::get,
        )
        .add::<LabelChange, Nothing, _, _>(
            route(Patch, paths::NODE_LABELS, Need::Operate, "Change labels"),
            nodes::label,
        )
        .add::<Because, Nothing, _, _>(
            route(Post, paths::NODE_PAUSE, Need::Operate, "Pause a node"),
            nodes::pause,
        )
        .add::<Because, Nothing, _, _>(
            route(Post, paths::NODE_CORDON, Need::Operate, "Tell a node nothing new"),
            nodes::cordon,
        )
        .add::<Because, Nothing, _, _>(
            route(Post, paths::NODE_DRAIN, Need::Operate, "Tell a node nothing new, and let it serve nobody"),
            nodes::drain,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Post, paths::NODE_UNCORDON, Need::Operate, "End a cordon or a draining"),
            nodes::uncordon,
        )
        .add::<Nothing, Resumed, _, _>(
            route(Post, paths::NODE_RESUME, Need::Operate, "Resume a node, and hear what still holds it"),
            nodes::resume,
        )
        .add::<Because, Nothing, _, _>(
            route(Post, paths::NODE_DECOMMISSION, Need::Administer, "Take a node out for good"),
            nodes::decommission,
        )
        .add::<Report, Nothing, _, _>(
            route(Put, paths::NODE_REPORT, Need::OwnNode, "Report what was seen"),
            reports::put,
        )
        .add::<Nothing, Sync, _, _>(
            route(Get, paths::NODE_SYNC, Need::OwnNode, "Wait for a newer order"),
            sync::sync,
        )
        .add::<Renew, Joined, _, _>(
            route(Post, paths::RENEW, Need::OwnNode, "Renew a certificate"),
            access::renew,
        )
}

/// What nodes say of themselves beside their reports, and who is missing.
fn fleet(routes: Routes) -> Routes {
    routes
        .add::<Because, Nothing, _, _>(
            route(Put, paths::NODE_EXPECTED, Need::Operate, "Expect a node to join"),
            expected::put,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::NODE_EXPECTED, Need::Operate, "Expect a node no longer"),
            expected::delete,
        )
        .add::<Nothing, Page<Unaccounted>, _, _>(
            route(Get, paths::UNACCOUNTED, Need::Read, "List nodes of whom nobody hears"),
            expected::unaccounted,
        )
        .add::<Status, Nothing, _, _>(
            route(Put, paths::NODE_STATUS, Need::OwnNodeOrOperate, "Set one status of a node"),
            nodes::set_status,
        )
        .add::<Nothing, Failures, _, _>(
            route(Get, paths::FAILURES, Need::Read, "Everything that failed, and everything silent"),
            failures::list,
        )
        .add::<Nothing, Page<NodeLog>, _, _>(
            route(Get, paths::NODE_LOGS, Need::OwnNodeOrRead, "List the kept logs of a node"),
            logs::list,
        )
        .add::<Nothing, NodeLog, _, _>(
            route(Get, paths::NODE_LOG, Need::OwnNodeOrRead, "Get a kept log of a node"),
            logs::get,
        )
        .add::<NewLog, Nothing, _, _>(
            route(Put, paths::NODE_LOG, Need::OwnNode, "Keep the log of a failing run"),
            logs::put,
        )
}

/// What nodes offer, and the catalogue.
fn offered(routes: Routes) -> Routes {
    routes
        .add::<Offers, Nothing, _, _>(
            route(Put, paths::NODE_OFFERS, Need::OwnNode, "Say what a node offers"),
            services::offer,
        )
        .add::<Nothing, Page<ServiceSummary>, _, _>(
            route(Get, paths::SERVICES, Need::NodeOrRead, "List services"),
            services::list,
        )
        .add::<Nothing, ServiceView, _, _>(
            route(Get, paths::SERVICE, Need::NodeOrRead, "Get a service"),
            services::get,
        )
        .add::<Nothing, Vec<TargetGroup>, _, _>(
            route(Get, paths::HTTP_SD, Need::NodeOrRead, "A service's targets for Prometheus"),
            services::targets,
        )
}

fn changes(routes: Routes) -> Routes {
    routes
        .add::<Nothing, Page<Entity>, _, _>(
            route(Get, paths::ENTITIES, Need::Read, "List entities"),
            entities::list,
        )
        .add::<Nothing, Entity, _, _>(route(Get, paths::ENTITY, Need::Read, "Get an entity"), entities::get)
        .add::<NewPlan, Plan, _, _>(
            route(Post, paths::PLAN, Need::Read, "Say what a rollout would bring"),
            plan::plan,
        )
        .add::<EntitySpec, Nothing, _, _>(
            route(Put, paths::ENTITY, Need::Operate, "Set an entity"),
            entities::put,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::ENTITY, Need::Administer, "Delete an entity and its history"),
            entities::delete,
        )
        .add::<Nothing, Page<TargetView>, _, _>(
            route(Get, paths::TARGETS, Need::Read, "List targets"),
            rollouts::targets,
        )
        .add::<Reports, Orchestrated, _, _>(
            route(
                Post,
                paths::ORCHESTRATE,
                Need::Operate,
                "Report external targets, and hear what each is to run",
            ),
            external::orchestrate,
        )
        .add::<Reports, Nothing, _, _>(
            route(Post, paths::REPORTS, Need::Operate, "Report external targets"),
            external::report,
        )
        .add::<NewRollout, Started, _, _>(
            route(Post, paths::ROLLOUTS, Need::Operate, "Start a rollout"),
            rollouts::start,
        )
        .add::<Nothing, Page<Rollout>, _, _>(
            route(Get, paths::ROLLOUTS, Need::Read, "List rollouts"),
            rollouts::list,
        )
        .add::<Nothing, Rollout, _, _>(route(Get, paths::ROLLOUT, Need::Read, "Get a rollout"), rollouts::get)
        .add::<Nothing, RolloutView, _, _>(
            route(Get, paths::ROLLOUT_CURRENT, Need::Read, "The rollout that runs, or the last"),
            rollouts::current,
        )
        .add::<Act, Nothing, _, _>(
            route(Post, paths::ROLLOUT_VERB, Need::Operate, "Pause, resume, approve, abort, undo or retry"),
            rollouts::act,
        )
        .add::<Nothing, Page<Event>, _, _>(route(Get, paths::EVENTS, Need::Read, "List events"), events::list)
        .add::<Nothing, Nothing, _, _>(
            route(Get, paths::EVENTS_STREAM, Need::Read, "Stream events"),
            events::stream,
        )
        .add::<Nothing, Why, _, _>(route(Get, paths::WHY, Need::Read, "Why something waits"), why::get)
}

fn configuration(routes: Routes) -> Routes {
    routes
        .add::<Nothing, Page<Profile>, _, _>(
            route(Get, paths::PROFILES, Need::Read, "List profiles"),
            profiles::list,
        )
        .add::<Nothing, Edition, _, _>(
            route(Get, paths::PROFILE, Need::Read, "Get a profile's newest revision"),
            profiles::get,
        )
        .add::<ProfilePatch, Edition, _, _>(
            route(Patch, paths::PROFILE, Need::Operate, "Change single params of a profile"),
            profiles::patch,
        )
        .add::<ProfileSpec, Edition, _, _>(
            route(Put, paths::PROFILE, Need::Operate, "Set all params of a profile"),
            profiles::put,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::PROFILE, Need::Administer, "Delete a profile and its revisions"),
            profiles::delete,
        )
        .add::<Nothing, Page<Edition>, _, _>(
            route(Get, paths::EDITIONS, Need::Read, "List a profile's revisions"),
            profiles::editions,
        )
        .add::<Nothing, Edition, _, _>(
            route(Get, paths::EDITION, Need::NodeOrRead, "Get one revision of a profile"),
            profiles::edition,
        )
}

fn people(routes: Routes) -> Routes {
    routes
        .add::<Join, Joined, _, _>(
            route(Post, paths::JOIN, Need::Open, "Join with a join token"),
            access::join,
        )
        .add::<Nothing, WhoAmI, _, _>(route(Get, paths::WHOAMI, Need::Read, "Who am I"), access::who_am_i)
        .add::<Nothing, Page<TokenInfo>, _, _>(
            route(Get, paths::TOKENS, Need::Administer, "List tokens"),
            access::tokens,
        )
        .add::<NewToken, Secret, _, _>(
            route(Post, paths::TOKENS, Need::Administer, "Make a token"),
            access::create_token,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::TOKEN, Need::Administer, "Delete a token"),
            access::delete_token,
        )
        .add::<Nothing, Page<JoinTokenInfo>, _, _>(
            route(Get, paths::JOIN_TOKENS, Need::Administer, "List join tokens"),
            access::join_tokens,
        )
        .add::<NewJoinToken, Secret, _, _>(
            route(Post, paths::JOIN_TOKENS, Need::Administer, "Make a join token"),
            access::create_join_token,
        )
        .add::<Nothing, Nothing, _, _>(
            route(Delete, paths::JOIN_TOKEN, Need::Administer, "Revoke a join token"),
            access::delete_join_token,
        )
}
