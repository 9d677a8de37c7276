//! Freezes over HTTP: of one namespace, and of all of them.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_api::v1::page::Page;
use bellwether_core::words::name::FreezeName;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Freeze, Ns, Query};
use super::problem::{Failure, Set};
use super::routes::Nothing;
use crate::ops;
use crate::ops::freeze::Place;

/// Those that hold in every namespace.
fn everywhere(world: &World, now: Timestamp) -> Vec<FreezeView> {
    world.freezes.values().map(|kept| FreezeView::at(&kept.value, true, now)).collect()
}

pub(crate) async fn list(
    State(app): State<App>,
    Ns(namespace): Ns,
    query: Query,
) -> Result<Answer<Page<FreezeView>>, Failure> {
    query.only(&[])?;
    let (world, now) = (app.world(), app.clock.now());
    let own = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.freezes.values());
    let mut items: Vec<FreezeView> = own.map(|kept| FreezeView::at(&kept.value, false, now)).collect();
    items.extend(everywhere(&world, now));
    items.sort_by(|one, other| (&one.freeze.name, one.global).cmp(&(&other.freeze.name, other.global)));
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

pub(crate) async fn list_global(
    State(app): State<App>,
    query: Query,
) -> Result<Answer<Page<FreezeView>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let mut items = everywhere(&world, app.clock.now());
    items.sort_by(|one, other| one.freeze.name.cmp(&other.freeze.name));
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

fn one(app: &App, place: &Place, name: &FreezeName) -> Result<Answer<FreezeView>, Failure> {
    let world = app.world();
    let (found, global) = match place {
        Place::In(namespace) => {
            (world.fleets.get(namespace).and_then(|fleet| fleet.freezes.get(name)), false)
        }
        Place::Everywhere => (world.freezes.get(name), true),
    };
    let missing = || {
        let what = ops::freeze::missing(&world, place, name);
        Failure::new(Code::NotFound, format!("could not find {what}"))
            .hint("see which there are: bellwether freeze list")
    };
    found.map(|kept| Answer(FreezeView::at(&kept.value, global, app.clock.now()))).ok_or_else(missing)
}

pub(crate) async fn get(
    State(app): State<App>,
    (Ns(namespace), Freeze(name)): (Ns, Freeze),
) -> Result<Answer<FreezeView>, Failure> {
    one(&app, &Place::In(namespace), &name)
}

pub(crate) async fn get_global(
    State(app): State<App>,
    Freeze(name): Freeze,
) -> Result<Answer<FreezeView>, Failure> {
    one(&app, &Place::Everywhere, &name)
}

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Freeze(name)): (Ns, Freeze),
    Body(spec): Body<FreezeSpec>,
) -> Result<Set<FreezeView>, Failure> {
    let place = Place::In(namespace);
    let (value, is_new) = ops::freeze::put(&app.desk, &place, &caller.actor(), &name, &spec).await?;
    Ok(Set { is_new, value })
}

pub(crate) async fn put_global(
    State(app): State<App>,
    caller: Caller,
    Freeze(name): Freeze,
    Body(spec): Body<FreezeSpec>,
) -> Result<Set<FreezeView>, Failure> {
    let place = Place::Everywhere;
    let (value, is_new) = ops::freeze::put(&app.desk, &place, &caller.actor(), &name, &spec).await?;
    Ok(Set { is_new, value })
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Freeze(name)): (Ns, Freeze),
) -> Result<Answer<Nothing>, Failure> {
    ops::freeze::delete(&app.desk, &Place::In(namespace), &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn delete_global(
    State(app): State<App>,
    caller: Caller,
    Freeze(name): Freeze,
) -> Result<Answer<Nothing>, Failure> {
    ops::freeze::delete(&app.desk, &Place::Everywhere, &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}
