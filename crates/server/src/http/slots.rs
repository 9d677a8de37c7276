//! Slots over HTTP: who holds which, how many may, taking one, giving it back, and taking one from its holder.

use axum::extract::State;
use bellwether_api::shape::read;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::slot::{Acquire, Force, GiveBack, Grant, Renew, Slot, SlotSpec, SlotView};
use bellwether_core::records::key::Key;
use bellwether_core::records::slot::Slot as Record;
use bellwether_core::words::counter::FenceNumber;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Ns, Query, Turn};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

/// Those that somebody holds, and those of which something was said; with `all`, those that once were held too.
pub(crate) async fn list(
    State(app): State<App>,
    Ns(namespace): Ns,
    query: Query,
) -> Result<Answer<Page<Slot>>, Failure> {
    query.only(&["all"])?;
    let all: bool = query.get("all")?.unwrap_or(false);
    let world = app.world();
    let slots = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.slots.values());
    let items =
        slots.filter(|kept| all || !kept.value.is_idle()).map(|kept| Slot::from(&*kept.value)).collect();
    std::future::ready(Ok(Answer(Page { items, next: None, revision: world.revision.get() }))).await
}

/// One slot; with `wait`, once it is no longer what it was at `index`.
pub(crate) async fn get(
    State(app): State<App>,
    (Ns(namespace), Turn(name)): (Ns, Turn),
    query: Query,
) -> Result<Answer<SlotView>, Failure> {
    query.only(&["index", "wait"])?;
    let (index, wait, key) = (query.index()?, query.wait()?, Key::Slot(name.clone()));
    if !wait.is_zero() {
        let mut worlds = app.desk.follow();
        let news = worlds.wait_for(|world| world.revision(&namespace, &key) != index);
        // All arms only wait; the world is looked at again below.
        tokio::select! {
            _ = news => {}
            () = tokio::time::sleep(wait) => {}
            () = app.stop.cancelled() => {}
        }
    }
    let world = app.world();
    let kept = world.fleets.get(&namespace).and_then(|fleet| fleet.slots.get(&name));
    let slot = kept.map_or_else(|| Slot::from(&Record::fresh(name)), |kept| Slot::from(&*kept.value));
    Ok(Answer(SlotView { slot, revision: world.revision(&namespace, &key).get() }))
}

pub(crate) async fn acquire(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Turn(name)): (Ns, Turn),
    Body(acquire): Body<Acquire>,
) -> Result<Answer<Grant>, Failure> {
    let wish = ops::slot::wish(&caller.actor(), &acquire)?;
    let grant = ops::slot::acquire(&app.desk, (&namespace, &name), &wish).await?;
    Ok(Answer((&grant).into()))
}

pub(crate) async fn renew(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Turn(name)): (Ns, Turn),
    Body(renew): Body<Renew>,
) -> Result<Answer<Grant>, Failure> {
    let grant = ops::slot::renew(&app.desk, (&namespace, &name), &caller.actor(), &renew).await?;
    Ok(Answer((&grant).into()))
}

pub(crate) async fn give_back(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Turn(name)): (Ns, Turn),
    Body(back): Body<GiveBack>,
) -> Result<Answer<Nothing>, Failure> {
    let (holder, fence) = (read("holder", &back.holder)?, FenceNumber::new(back.fence));
    ops::slot::release(&app.desk, (&namespace, &name), &caller.actor(), (&holder, Some(fence))).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Turn(name)): (Ns, Turn),
) -> Result<Answer<Nothing>, Failure> {
    ops::slot::delete(&app.desk, (&namespace, &name), &caller.actor()).await?;
    Ok(Answer(Nothing {}))
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
