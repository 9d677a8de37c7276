//! Entities over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::ENTITIES;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::patch::{EntityPatch, EntityWarning, PatchedEntity};
use bellwether_api::v1::entity::{Entity as Shape, EntitySpec};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::words::name::{EntityName, Namespace};

use super::auth::Authenticated;
use super::input::{Entity, IfMatch, JsonAnswer, JsonBody, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::readable::Readable;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::scope::EntityScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &ENTITIES, &[])?;
    let world = app.world();
    let fleets = world.fleets.get(&namespace).into_iter();
    // Runs of workflows have a list of their own.
    let own = fleets.flat_map(|fleet| {
        fleet.entities.iter().filter(|(name, _)| !fleet.runs.contains_key(*name)).map(|(_, kept)| kept)
    });
    let entities = own.map(|kept| Shape::at(&kept.value, kept.revision));
    list.answer_json((&ENTITIES, app.clock.now()), entities, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    readable: Readable,
) -> Result<JsonAnswer<Shape>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| fleet.entities.get(&name));
    let found = found.ok_or_else(|| missing(&name))?;
    let mut entity = Shape::at(&found.value, found.revision);
    entity.nodes.retain(|node| readable.has_object(ObjectKind::Node, node));
    Ok(JsonAnswer(entity))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    JsonBody(spec): JsonBody<EntitySpec>,
) -> Result<JsonAnswer<EntityWarning>, Failure> {
    app.hooks.permit(&spec.policy)?;
    may_name(&app, &caller, (&namespace, &name), spec.profile.as_deref())?;
    let actor = caller.actor();
    let warning = ops::entity::set(&app.records.transactor, &namespace, &actor, &name, &spec).await?;
    Ok(JsonAnswer(EntityWarning { warning }))
}

pub(crate) async fn patch(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(name)): (NamespacePath, Entity),
    IfMatch(only_at): IfMatch,
    JsonBody(patch): JsonBody<EntityPatch>,
) -> Result<JsonAnswer<PatchedEntity>, Failure> {
    app.hooks.permit(&patch.policy)?;
    may_name(&app, &caller, (&namespace, &name), patch.profile.as_deref())?;
    let actor = caller.actor();
    let scope = EntityScope { namespace: &namespace, entity: &name, actor: &actor };
    let mut patched = ops::entity::patch(&app.records.transactor, scope, &patch, only_at).await?;
    let world = app.world();
    let now = world.fleets.get(&namespace).and_then(|fleet| fleet.entities.get(&name));
    // Another change may have followed; its revision is not that of this answer.
    let same = now.filter(|kept| Shape::from(&*kept.value) == patched.after);
    patched.after.revision = same.map(|kept| kept.revision.get());
    Ok(JsonAnswer(patched))
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::entity::delete(&app.records.transactor, &namespace, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

/// Refuses a new entity of a profile to who may not change that: its nodes read the params, and the secrets in them.
fn may_name(
    app: &AppState,
    caller: &Authenticated,
    (namespace, name): (&Namespace, &EntityName),
    profile: Option<&str>,
) -> Result<(), Failure> {
    let world = app.world();
    let known = world.fleets.get(namespace).is_some_and(|fleet| fleet.entities.contains_key(name));
    match profile.filter(|_| !known) {
        Some(profile) => caller.require(Right::update(ObjectKind::Profile), Some(profile), Some(namespace)),
        None => Ok(()),
    }
}

/// The error for an entity that does not exist.
pub(crate) fn missing(name: &EntityName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find entity {name}"))
        .hint("list them: bellwether entity list   (or runs of workflows: bellwether run list)")
}
