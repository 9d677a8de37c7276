//! Slots over HTTP: who holds which, how many may, and taking one from its holder.

use axum::extract::State;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::slot::{Force, Slot, SlotSpec};

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Ns, Query, Turn};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

/// Those that somebody holds, and those of which something was said.
pub(crate) async fn list(
    State(app): State<App>,
    Ns(namespace): Ns,
    query: Query,
) -> Result<Answer<Page<Slot>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let slots = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.slots.values());
    let items = slots.map(|kept| Slot::from(&*kept.value)).collect();
    std::future::ready(Ok(Answer(Page { items, next: None, revision: world.revision.get() }))).await
}

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Turn(name)): (Ns, Turn),
    Body(spec): Body<SlotSpec>,
) -> Result<Answer<Slot>, Failure> {
    Ok(Answer(ops::slot::set(&app.desk, (&namespace, &name), &caller.actor(), &spec).await?))
}

pub(crate) async fn release(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Turn(name)): (Ns, Turn),
    Body(force): Body<Force>,
) -> Result<Answer<Nothing>, Failure> {
    ops::slot::force(&app.desk, (&namespace, &name), &caller.actor(), &force).await?;
    Ok(Answer(Nothing {}))
}
