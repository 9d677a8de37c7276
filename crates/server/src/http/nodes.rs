//! Nodes over HTTP.

use std::collections::BTreeSet;

use axum::Extension;
use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::read_some;
use bellwether_api::v1;
use bellwether_api::v1::node::{
    AllowedServices, DecommissionRequest, DrainRequest, LabelChange, NodeView, Reason,
};
use bellwether_api::v1::not_runnable::Runnable;

use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::{Actor, Namespace, NodeName};

use super::auth::Authenticated;
use super::input::{
    CategoryText, JsonAnswer, JsonBody, NamedEnsemble, NamespacePath, Node, OptionalBody, QueryParams,
};
use super::list::node::{NodeRow, view};
use super::list::{ListAnswer, ListQuery};
use super::listen::Peer;
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::expectation::member_pointer;
use crate::ops::scope::NodeScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &NODES, &["decommissioned"])?;
    let after: Option<NodeName> = read_some("after", list.start())?;
    let all: bool = query.get("decommissioned")?.unwrap_or(false);
    let (world, now) = (app.world(), app.clock.now());
    let fleet = world.fleets.get(&namespace);
    // A filter that names its nodes costs what it matches.
    let named = list.filter.required_values("name", "").map(|names| {
        let names = names.into_iter().filter_map(|name| NodeName::parse(name).ok());
        names.collect::<BTreeSet<NodeName>>()
    });
    let rows = fleet.into_iter().flat_map(|fleet| {
        let found = named.iter().flatten().filter_map(|name| fleet.nodes.get(name));
        let each = fleet.nodes.values().filter(|_| named.is_none());
        found.chain(each).map(move |kept| NodeRow { fleet, node: &kept.value, now })
    });
    let rows = rows.filter(|row| all || row.node.decommissioned.is_none());
    let rows = rows.filter(|row| after.as_ref().is_none_or(|after| row.node.name > *after));
    list.answer(rows, |row, after| row.node.name.as_str() > after, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
) -> Result<JsonAnswer<NodeView>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| {
        let facts = fleet.facts.get(&name).map(|kept| (&*kept.value).into());
        let probes = fleet.probes.get(&name).map(|kept| (&*kept.value).into());
        Some(NodeView { facts, probes, ..view(fleet, &name)? })
    });
    let missing = || {
        Failure::new(Code::NotFound, format!("cannot find node {name}"))
            .hint("list them: bellwether node list")
    };
    Ok(JsonAnswer(found.ok_or_else(missing)?))
}

pub(crate) async fn label(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(change): JsonBody<LabelChange>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let right = Right::update_field(ObjectKind::Node, "/labels");
    let keys = change.set.keys().chain(&change.remove);
    let fields: Vec<String> = keys.map(|key| format!("/labels{}", member_pointer(key))).collect();
    caller.require_fields(right, &fields, (name.as_str(), &namespace))?;
    ops::node::label(&app.records.transactor, scope(&namespace, &name, &caller.actor()), change).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn allow_services(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(request): JsonBody<AllowedServices>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let actor = caller.actor();
    ops::node::allow_services(&app.records.transactor, scope(&namespace, &name, &actor), &request).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn pause(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    OptionalBody(because): OptionalBody<Reason>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::node::pause(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &because.reason)
        .await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn resume(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
) -> Result<JsonAnswer<v1::pause::Resumed>, Failure> {
    Ok(JsonAnswer(
        ops::node::resume(&app.records.transactor, scope(&namespace, &name, &caller.actor())).await?,
    ))
}

pub(crate) async fn cordon(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    OptionalBody(because): OptionalBody<Reason>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::node::cordon(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &because.reason)
        .await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn drain(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    OptionalBody(request): OptionalBody<DrainRequest>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::drain::request(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &request).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn uncordon(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::node::uncordon(&app.records.transactor, scope(&namespace, &name, &caller.actor())).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn runnable(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    OptionalBody(request): OptionalBody<Runnable>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::runnable::set(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &request).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn put_facts(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(facts): JsonBody<v1::facts::NodeFacts>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::facts::absorb_facts(&app.records.transactor, &namespace, &name, facts).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn put_probes(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(probes): JsonBody<v1::probes::NodeProbes>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::probes::absorb_probes(&app.records.transactor, &namespace, &name, probes).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn put_members(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(members): JsonBody<v1::ensemble::reports::NodeMembers>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::members::absorb_members(&app.records.transactor, &namespace, &name, members).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn certify_member(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
    NamedEnsemble(ensemble): NamedEnsemble,
    peer: Option<Extension<Peer>>,
    JsonBody(request): JsonBody<v1::ensemble::certificates::MemberCertificateRequest>,
) -> Result<JsonAnswer<v1::ensemble::certificates::MemberCertificates>, Failure> {
    let of = (&namespace, &name, &ensemble);
    let from = peer.and_then(|Extension(peer)| peer.address).map(|address| address.ip().to_canonical());
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    Ok(JsonAnswer(ops::ensemble_certificates::certify_member(transactor, pki, of, &request, from)?))
}

pub(crate) async fn member_keys(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
    NamedEnsemble(ensemble): NamedEnsemble,
    JsonBody(request): JsonBody<v1::ensemble::keys::MemberKeysRequest>,
) -> Result<JsonAnswer<v1::ensemble::keys::MemberKeys>, Failure> {
    let of = (&namespace, &name, &ensemble);
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    Ok(JsonAnswer(ops::ensemble_keys::keys(transactor, pki, of, &request)?))
}

pub(crate) async fn member_passwords(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
    NamedEnsemble(ensemble): NamedEnsemble,
    JsonBody(request): JsonBody<v1::ensemble::passwords::MemberPasswordsRequest>,
) -> Result<JsonAnswer<v1::ensemble::passwords::MemberPasswords>, Failure> {
    let of = (&namespace, &name, &ensemble);
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    Ok(JsonAnswer(ops::ensemble_passwords::give(transactor, pki, of, request)?))
}

pub(crate) async fn osd_keys(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
    NamedEnsemble(ensemble): NamedEnsemble,
    JsonBody(request): JsonBody<v1::ensemble::keys::OsdKeysRequest>,
) -> Result<JsonAnswer<v1::ensemble::keys::OsdKeys>, Failure> {
    let of = (&namespace, &name, &ensemble);
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    Ok(JsonAnswer(ops::ensemble_osds::keys(transactor, pki, of, &request)?))
}

pub(crate) async fn rescan(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
) -> Result<JsonAnswer<v1::facts::RequestedRescan>, Failure> {
    let requested =
        ops::facts::rescan(&app.records.transactor, scope(&namespace, &name, &caller.actor())).await?;
    Ok(JsonAnswer(requested))
}

pub(crate) async fn decommission(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    OptionalBody(request): OptionalBody<DecommissionRequest>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let (actor, transactor) = (caller.actor(), &app.records.transactor);
    ops::node::decommission::decommission(transactor, scope(&namespace, &name, &actor), &request).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn set_status(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(name), CategoryText(category)): (NamespacePath, Node, CategoryText),
    JsonBody(status): JsonBody<v1::status::Status>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let actor = caller.actor();
    ops::report::set_status(&app.records.transactor, scope(&namespace, &name, &actor), &category, status)
        .await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn delete_status(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(name), CategoryText(category)): (NamespacePath, Node, CategoryText),
) -> Result<JsonAnswer<Empty>, Failure> {
    let actor = caller.actor();
    ops::report::delete_status(&app.records.transactor, scope(&namespace, &name, &actor), &category).await?;
    Ok(JsonAnswer(Empty {}))
}

const fn scope<'a>(namespace: &'a Namespace, node: &'a NodeName, actor: &'a Actor) -> NodeScope<'a> {
    NodeScope { namespace, node, actor }
}
