//! Kept logs over HTTP.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::log::{NewLog, NodeLog};
use bellwether_api::v1::page::Page;
use bellwether_core::records::key::{Key, Record};
use bellwether_store::Range;

use super::App;
use super::input::{Answer, Body, CategoryName, Entity, Node, Ns};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;
use crate::records::{form, keys};

pub(crate) async fn put(
    State(app): State<App>,
    (Ns(namespace), Node(node), CategoryName(category), Entity(entity)): (Ns, Node, CategoryName, Entity),
    Body(new): Body<NewLog>,
) -> Result<Answer<Nothing>, Failure> {
    ops::log::keep(&app.desk, &namespace, &node, (&category, &entity), new).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn list(
    State(app): State<App>,
    (Ns(namespace), Node(node)): (Ns, Node),
) -> Result<Answer<Page<NodeLog>>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    if fleet.is_none_or(|fleet| fleet.nodes.get(&node).is_none()) {
        return Err(Failure::new(Code::NotFound, format!("could not find node {node}"))
            .hint("see which there are: bellwether node list"));
    }
    let logs = fleet.into_iter().flat_map(|fleet| fleet.logs_of(&node));
    let items = logs.map(|kept| (&*kept.value).into()).collect();
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

/// What it says is read from the store: the world only knows that it is there.
pub(crate) async fn get(
    State(app): State<App>,
    (Ns(namespace), Node(node), CategoryName(category), Entity(entity)): (Ns, Node, CategoryName, Entity),
) -> Result<Answer<NodeLog>, Failure> {
    let missing = format!("could not find a log of {entity} failing to {category} on {node}");
    let key = Key::Log(node, category, entity);
    let page = app.store.list(Range::one(keys::of(&namespace, &key)), None, 1).await;
    let page = page.map_err(|error| Failure::new(Code::Store, format!("could not {error}")))?;
    let mut found = None;
    for entry in page.entries {
        if let Record::Log(log) = form::read(&key, &entry.value)? {
            found = Some(NodeLog::from(&log));
        }
    }
    let missing =
        || Failure::new(Code::NotFound, missing).hint("see which there are: bellwether node logs NODE");
    Ok(Answer(found.ok_or_else(missing)?))
}
