//! Logs of failed runs over HTTP.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::log::{NewLog, NodeLog};
use bellwether_api::v1::page::Page;
use bellwether_core::records::key::{Key, Record};
use bellwether_store::Range;

use super::input::{CategoryName, Entity, JsonAnswer, JsonBody, NamespacePath, Node};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::log::LogSource;
use crate::records::{encoding, key_text};

pub(crate) async fn put(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(node), CategoryName(category), Entity(entity)): (
        NamespacePath,
        Node,
        CategoryName,
        Entity,
    ),
    JsonBody(new): JsonBody<NewLog>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let source = LogSource { node: &node, category: &category, entity: &entity };
    ops::log::keep(&app.records.transactor, &namespace, source, new).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn list(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
) -> Result<JsonAnswer<Page<NodeLog>>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    if fleet.is_none_or(|fleet| fleet.nodes.get(&node).is_none()) {
        return Err(Failure::new(Code::NotFound, format!("cannot find node {node}"))
            .hint("list them: bellwether node list"));
    }
    let logs = fleet.into_iter().flat_map(|fleet| fleet.logs_of(&node));
    let items = logs.map(|kept| (&*kept.value).into()).collect();
    Ok(JsonAnswer(Page { items, next: None, count: None, revision: world.revision.get() }))
}

/// One log. Its text is read from the store: the world contains only that it exists.
pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(node), CategoryName(category), Entity(entity)): (
        NamespacePath,
        Node,
        CategoryName,
        Entity,
    ),
) -> Result<JsonAnswer<NodeLog>, Failure> {
    let missing = format!("cannot find a log of {category} of {entity} on {node}");
    let key = Key::Log(node, category, entity);
    let page = app.records.store.list(Range::one(key_text::of(&namespace, &key)), None, 1).await;
    let page = page.map_err(|error| Failure::new(Code::Store, format!("cannot {error}")))?;
    let mut found = None;
    for entry in page.entries {
        if let Record::Log(log) = encoding::read(&key, &entry.value)? {
            found = Some(NodeLog::from(&log));
        }
    }
    let missing = || Failure::new(Code::NotFound, missing).hint("list them: bellwether node logs NODE");
    Ok(JsonAnswer(found.ok_or_else(missing)?))
}
