//! Expected nodes, and nodes that are not up, over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::SILENT_NODES;
use bellwether_api::v1::annotation::Annotation;
use bellwether_api::v1::node::{Reason, SilentNode, SilentState};
use bellwether_core::records::node::{Presence, PresenceState};
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{JsonAnswer, NamespacePath, Node, OptionalBody, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
    OptionalBody(because): OptionalBody<Reason>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::expect::expect(&app.records.transactor, &namespace, &caller.actor(), &name, &because.reason).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::expect::unexpect(&app.records.transactor, &namespace, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn unaccounted(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &SILENT_NODES, &[])?;
    let world = app.world();
    let nodes = world.fleets.get(&namespace).map(silent).unwrap_or_default();
    list.answer_json((&SILENT_NODES, app.clock.now()), nodes.into_iter(), world.revision)
}

/// Expected nodes, and joined nodes that are not up, by name.
fn silent(fleet: &Fleet) -> Vec<SilentNode> {
    let expected = fleet.expected.iter().map(|(name, kept)| SilentNode {
        node: name.to_string(),
        state: SilentState::Expected,
        since_ms: kept.value.at.as_millis(),
        expected: Some(Annotation::from(&*kept.value)),
    });
    let joined = fleet.nodes.iter();
    let joined =
        joined.filter(|(_, kept)| kept.value.decommissioned.is_none() && kept.value.logical.is_none());
    let quiet = joined.filter_map(|(name, kept)| {
        let never = Presence { contact: PresenceState::Never, since: kept.value.joined_at, server: None };
        let presence = fleet.presences.get(name).map_or(never, |kept| (*kept.value).clone());
        let state = match presence.contact {
            PresenceState::Up => return None,
            PresenceState::Never => SilentState::Never,
            PresenceState::Suspect => SilentState::Suspect,
            PresenceState::Unreachable => SilentState::Unreachable,
        };
        Some(SilentNode {
            node: name.to_string(),
            state,
            since_ms: presence.since.as_millis(),
            expected: None,
        })
    });
    let mut all: Vec<SilentNode> = expected.chain(quiet).collect();
    all.sort_by(|a, b| a.node.cmp(&b.node));
    all
}
