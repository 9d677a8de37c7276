//! Entities over HTTP.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::{Entity as Shape, EntitySpec};
use bellwether_api::v1::page::Page;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Entity, Ns, Query};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

pub(crate) async fn list(
    State(app): State<App>,
    Ns(namespace): Ns,
    query: Query,
) -> Result<Answer<Page<Shape>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let entities = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.entities.values());
    let items = entities.map(|kept| (&*kept.value).into()).collect();
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

pub(crate) async fn get(
    State(app): State<App>,
    Ns(namespace): Ns,
    Entity(name): Entity,
) -> Result<Answer<Shape>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| fleet.entities.get(&name));
    found.map(|kept| Answer((&*kept.value).into())).ok_or_else(|| missing(&name))
}

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Entity(name): Entity,
    Body(spec): Body<EntitySpec>,
) -> Result<Answer<Nothing>, Failure> {
    ops::entity::set(&app.desk, &namespace, &caller.actor(), &name, &spec).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Ns(namespace): Ns,
    Entity(name): Entity,
) -> Result<Answer<Nothing>, Failure> {
    ops::entity::delete(&app.desk, &namespace, &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}

/// There is no such entity.
pub(crate) fn missing(name: &bellwether_core::words::name::EntityName) -> Failure {
    Failure::new(Code::NotFound, format!("could not find entity {name}"))
        .hint(format!("make it: bellwether entity set {name} --selector all"))
}
