//! Freezes over HTTP: of one namespace, and of all namespaces.

use axum::extract::State;
use bellwether_api::list::tables::FREEZES;
use bellwether_api::problem::Code;
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_core::words::name::{FreezeName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use super::auth::Authenticated;
use super::input::{Freeze, JsonAnswer, JsonBody, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::freeze::FreezeNamespace;

/// The freezes of all namespaces.
fn everywhere(world: &World, now: Timestamp) -> Vec<FreezeView> {
    world.freezes.values().map(|kept| FreezeView::at(&kept.value, true, now)).collect()
}

/// The freezes of a namespace and those of all namespaces, by name.
pub(crate) fn of_namespace(world: &World, namespace: &Namespace, now: Timestamp) -> Vec<FreezeView> {
    let own = world.fleets.get(namespace).into_iter().flat_map(|fleet| fleet.freezes.values());
    let mut items: Vec<FreezeView> = own.map(|kept| FreezeView::at(&kept.value, false, now)).collect();
    items.extend(everywhere(world, now));
    items.sort_by(|one, other| (&one.freeze.name, one.global).cmp(&(&other.freeze.name, other.global)));
    items
}

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &FREEZES, &[])?;
    let (world, now) = (app.world(), app.clock.now());
    let freezes = of_namespace(&world, &namespace, now);
    list.answer_json((&FREEZES, now), freezes.into_iter(), world.revision)
}

pub(crate) async fn list_global(
    State(app): State<AppState>,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &FREEZES, &[])?;
    let (world, now) = (app.world(), app.clock.now());
    let mut freezes = everywhere(&world, now);
    freezes.sort_by(|one, other| one.freeze.name.cmp(&other.freeze.name));
    list.answer_json((&FREEZES, now), freezes.into_iter(), world.revision)
}

fn one(
    app: &AppState,
    place: &FreezeNamespace,
    name: &FreezeName,
) -> Result<JsonAnswer<FreezeView>, Failure> {
    let world = app.world();
    let (found, global) = match place {
        FreezeNamespace::In(namespace) => {
            (world.fleets.get(namespace).and_then(|fleet| fleet.freezes.get(name)), false)
        }
        FreezeNamespace::Everywhere => (world.freezes.get(name), true),
    };
    let missing = || {
        let what = ops::freeze::missing(&world, place, name);
        Failure::new(Code::NotFound, format!("cannot find {what}")).hint("list them: bellwether freeze list")
    };
    found.map(|kept| JsonAnswer(FreezeView::at(&kept.value, global, app.clock.now()))).ok_or_else(missing)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), Freeze(name)): (NamespacePath, Freeze),
) -> Result<JsonAnswer<FreezeView>, Failure> {
    one(&app, &FreezeNamespace::In(namespace), &name)
}

pub(crate) async fn get_global(
    State(app): State<AppState>,
    Freeze(name): Freeze,
) -> Result<JsonAnswer<FreezeView>, Failure> {
    one(&app, &FreezeNamespace::Everywhere, &name)
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Freeze(name)): (NamespacePath, Freeze),
    JsonBody(spec): JsonBody<FreezeSpec>,
) -> Result<SetResponse<FreezeView>, Failure> {
    let place = FreezeNamespace::In(namespace);
    let (value, is_new) =
        ops::freeze::put(&app.records.transactor, &place, &caller.actor(), &name, &spec).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn put_global(
    State(app): State<AppState>,
    caller: Authenticated,
    Freeze(name): Freeze,
    JsonBody(spec): JsonBody<FreezeSpec>,
) -> Result<SetResponse<FreezeView>, Failure> {
    let place = FreezeNamespace::Everywhere;
    let (value, is_new) =
        ops::freeze::put(&app.records.transactor, &place, &caller.actor(), &name, &spec).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Freeze(name)): (NamespacePath, Freeze),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::freeze::delete(&app.records.transactor, &FreezeNamespace::In(namespace), &caller.actor(), &name)
        .await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn delete_global(
    State(app): State<AppState>,
    caller: Authenticated,
    Freeze(name): Freeze,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::freeze::delete(&app.records.transactor, &FreezeNamespace::Everywhere, &caller.actor(), &name)
        .await?;
    Ok(JsonAnswer(Empty {}))
}
