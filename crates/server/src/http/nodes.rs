//! Nodes over HTTP.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1;
use bellwether_api::v1::node::{DrainRequest, LabelChange, NodeView, Reason};
use bellwether_api::v1::page::Page;
use bellwether_core::records::node::{Presence, PresenceState};
use bellwether_core::words::name::{Actor, Namespace, NodeName};
use bellwether_core::words::selector::Selector;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{CategoryText, JsonAnswer, JsonBody, NamespacePath, Node, OptionalBody, QueryParams};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::scope::NodeScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<JsonAnswer<Page<NodeView>>, Failure> {
    query.only(&["filter", "limit", "after", "decommissioned"])?;
    let filter: Option<Selector> = query.get("filter")?;
    let after: Option<NodeName> = query.get("after")?;
    let all: bool = query.get("decommissioned")?.unwrap_or(false);
    let limit = query.limit()?;
    let world = app.world();
    let mut items = Vec::new();
    let mut next = None;
    if let Some(fleet) = world.fleets.get(&namespace) {
        let wanted = fleet
            .nodes
            .iter()
            .filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after))
            .filter(|(_, kept)| all || kept.value.decommissioned.is_none())
            .filter(|(name, kept)| {
                filter.as_ref().is_none_or(|filter| filter.picks(name.as_str(), &kept.value.labels))
            });
        for (name, _) in wanted {
            if items.len() == limit {
                next = items.last().map(|view: &NodeView| view.node.name.clone());
                break;
            }
            items.extend(view(fleet, name));
        }
    }
    Ok(JsonAnswer(Page { items, next, revision: world.revision.get() }))
}

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
) -> Result<JsonAnswer<NodeView>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| view(fleet, &name));
    let missing = || {
        Failure::new(Code::NotFound, format!("cannot find node {name}"))
            .hint("list them: bellwether node list")
    };
    Ok(JsonAnswer(found.ok_or_else(missing)?))
}

/// One node with its report, presence and statuses.
pub(crate) fn view(fleet: &Fleet, name: &NodeName) -> Option<NodeView> {
    let node = &fleet.nodes.get(name)?.value;
    let never = Presence { contact: PresenceState::Never, since: node.joined_at, server: None };
    let presence = fleet.presences.get(name).map_or(never, |kept| (*kept.value).clone());
    let report = fleet.reports.get(name).map(|kept| &kept.value);
    let running = report.into_iter().flat_map(|report| &report.entities);
    let running =
        running.filter_map(|(name, entity)| Some((name.to_string(), entity.running.as_ref()?.to_string())));
    let assigned = fleet.contents.get(name).into_iter().flat_map(|content| &content.entities);
    let statuses = report.into_iter().flat_map(|report| &report.statuses);
    let mut shown = v1::node::Node::from(&**node);
    if let Some(v1::node::Drain::Waiting { reason, .. }) =
        shown.cordon.as_mut().and_then(|cordon| cordon.drain.as_mut())
    {
        *reason = fleet.why_drain_waits(name);
    }
    Some(NodeView {
        node: shown,
        presence: (&presence).into(),
        pauses: fleet.pauses_of(node).map(v1::pause::Pause::from).collect(),
        running: running.collect(),
        assigned: assigned.map(|(name, assigned)| (name.to_string(), assigned.version.to_string())).collect(),
        statuses: statuses.map(|(name, status)| (name.to_string(), status.into())).collect(),
        agent_version: report.map(|report| report.agent_version.clone()),
        reported_at_ms: report.map(|report| report.received_at.as_millis()),
    })
}

pub(crate) async fn label(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(change): JsonBody<LabelChange>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::node::label(&app.records.transactor, scope(&namespace, &name, &caller.actor()), change).await?;
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

pub(crate) async fn decommission(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    OptionalBody(because): OptionalBody<Reason>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::node::decommission(
        &app.records.transactor,
        scope(&namespace, &name, &caller.actor()),
        &because.reason,
    )
    .await?;
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
