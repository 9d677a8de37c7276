//! Nodes over HTTP.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1;
use bellwether_api::v1::node::{Because, LabelChange, NodeView};
use bellwether_api::v1::page::Page;
use bellwether_core::records::node::{Contact, Presence};
use bellwether_core::words::name::NodeName;
use bellwether_core::words::selector::Selector;
use bellwether_core::world::fleet::Fleet;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, CategoryText, Node, Ns, Query};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

pub(crate) async fn list(
    State(app): State<App>,
    Ns(namespace): Ns,
    query: Query,
) -> Result<Answer<Page<NodeView>>, Failure> {
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
    Ok(Answer(Page { items, next, revision: world.revision.get() }))
}

pub(crate) async fn get(
    State(app): State<App>,
    Ns(namespace): Ns,
    Node(name): Node,
) -> Result<Answer<NodeView>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| view(fleet, &name));
    let missing = || {
        Failure::new(Code::NotFound, format!("could not find node {name}"))
            .hint("see which there are: bellwether node list")
    };
    Ok(Answer(found.ok_or_else(missing)?))
}

/// Everything known about one node.
pub(crate) fn view(fleet: &Fleet, name: &NodeName) -> Option<NodeView> {
    let node = &fleet.nodes.get(name)?.value;
    let never = Presence { contact: Contact::Never, since: node.joined_at, server: None };
    let presence = fleet.presences.get(name).map_or(never, |kept| (*kept.value).clone());
    let report = fleet.reports.get(name).map(|kept| &kept.value);
    let running = report.into_iter().flat_map(|report| &report.entities);
    let running =
        running.filter_map(|(name, entity)| Some((name.to_string(), entity.running.as_ref()?.to_string())));
    let told = fleet.contents.get(name).into_iter().flat_map(|content| &content.entities);
    let statuses = report.into_iter().flat_map(|report| &report.statuses);
    Some(NodeView {
        node: (&**node).into(),
        presence: (&presence).into(),
        pauses: fleet.pauses_of(node).map(v1::pause::Pause::from).collect(),
        running: running.collect(),
        told: told.map(|(name, told)| (name.to_string(), told.version.to_string())).collect(),
        statuses: statuses.map(|(name, status)| (name.to_string(), status.into())).collect(),
        agent_version: report.map(|report| report.agent_version.clone()),
        reported_at_ms: report.map(|report| report.received_at.as_millis()),
    })
}

pub(crate) async fn label(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
    Body(change): Body<LabelChange>,
) -> Result<Answer<Nothing>, Failure> {
    ops::node::label(&app.desk, &namespace, &caller.actor(), &name, change).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn pause(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
    Body(because): Body<Because>,
) -> Result<Answer<Nothing>, Failure> {
    ops::node::pause(&app.desk, &namespace, &caller.actor(), &name, &because.why).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn resume(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
) -> Result<Answer<v1::pause::Resumed>, Failure> {
    Ok(Answer(ops::node::resume(&app.desk, &namespace, &caller.actor(), &name).await?))
}

pub(crate) async fn cordon(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
    Body(because): Body<Because>,
) -> Result<Answer<Nothing>, Failure> {
    ops::node::cordon(&app.desk, &namespace, &caller.actor(), &name, (&because.why, false)).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn drain(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
    Body(because): Body<Because>,
) -> Result<Answer<Nothing>, Failure> {
    ops::node::cordon(&app.desk, &namespace, &caller.actor(), &name, (&because.why, true)).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn uncordon(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
) -> Result<Answer<Nothing>, Failure> {
    ops::node::uncordon(&app.desk, &namespace, &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn decommission(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Node(name): Node,
    Body(because): Body<Because>,
) -> Result<Answer<Nothing>, Failure> {
    ops::node::decommission(&app.desk, &namespace, &caller.actor(), &name, &because.why).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn set_status(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Node(name), CategoryText(category)): (Ns, Node, CategoryText),
    Body(status): Body<v1::status::Status>,
) -> Result<Answer<Nothing>, Failure> {
    let subject = (&name, category.as_str());
    ops::report::set_status(&app.desk, &namespace, &caller.actor(), subject, status).await?;
    Ok(Answer(Nothing {}))
}
