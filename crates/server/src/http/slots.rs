//! Slots over HTTP: list, read, configure, acquire, renew, release.

use axum::extract::State;
use bellwether_api::list::tables::SLOTS;
use bellwether_api::problem::Code;
use bellwether_api::shape::read;
use bellwether_api::v1::slot::{
    AcquireSlot, ForceRelease, ReleaseSlot, RenewSlot, Slot, SlotGrant, SlotSpec, SlotView,
};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::key::{AnyKey, Key};
use bellwether_core::words::counter::FenceNumber;
use bellwether_core::words::name::{Actor, Namespace, SlotName};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, QueryParams, Turn};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::scope::SlotScope;
use crate::timing::judge::Standing;

/// Slots that are held or configured; with `all`, also those that were held before.
pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &SLOTS, &["all"])?;
    let all: bool = query.get("all")?.unwrap_or(false);
    let world = app.world();
    let slots = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.slots.values());
    let slots = slots.filter(|kept| all || !kept.value.is_idle()).map(|kept| Slot::from(&*kept.value));
    list.answer_json((&SLOTS, app.clock.now()), slots, world.revision)
}

/// One slot; with `wait`, once it changed after `index`.
pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
    query: QueryParams,
) -> Result<JsonAnswer<SlotView>, Failure> {
    query.only(&["index", "wait"])?;
    let (index, wait, key) = (query.index()?, query.wait()?, AnyKey::from(Key::Slot(name.clone())));
    if !wait.is_zero() {
        let mut worlds = app.records.transactor.follow();
        let news = worlds.wait_for(|world| world.revision(&namespace, &key) != index);
        // All arms only wait; the world is read below.
        tokio::select! {
            _ = news => {}
            () = tokio::time::sleep(wait) => {}
            () = app.stop.cancelled() => {}
        }
    }
    let world = app.world();
    let kept = world.fleets.get(&namespace).and_then(|fleet| fleet.slots.get(&name));
    let slot = kept.map_or_else(
        || Slot::from(&bellwether_core::records::slot::Slot::fresh(name)),
        |kept| Slot::from(&*kept.value),
    );
    Ok(JsonAnswer(SlotView { slot, revision: world.revision(&namespace, &key).get() }))
}

pub(crate) async fn acquire(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
    JsonBody(acquire): JsonBody<AcquireSlot>,
) -> Result<JsonAnswer<SlotGrant>, Failure> {
    may_grant(&app)?;
    let request = ops::slot::request(&caller.actor(), &acquire)?;
    let grant =
        ops::slot::acquire(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &request)
            .await?;
    Ok(JsonAnswer((&grant).into()))
}

pub(crate) async fn renew(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
    JsonBody(renew): JsonBody<RenewSlot>,
) -> Result<JsonAnswer<SlotGrant>, Failure> {
    may_grant(&app)?;
    let grant =
        ops::slot::renew(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &renew).await?;
    Ok(JsonAnswer((&grant).into()))
}

/// Refuses to grant a slot by a clock that differs from those of the other servers: two would hold it.
pub(super) fn may_grant(app: &AppState) -> Result<(), Failure> {
    match app.cluster.clocks.borrow().standing {
        Standing::TakesPart => Ok(()),
        Standing::Beyond { .. } => {
            let what = "cannot grant a slot: the time of this server differs from that of the others";
            Err(Failure::new(Code::Store, what)
                .hint("ask another server: bellwether server list")
                .retry_after_ms(1_000))
        }
    }
}

pub(crate) async fn release(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
    JsonBody(back): JsonBody<ReleaseSlot>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let (holder, fence) = (read("holder", &back.holder)?, FenceNumber::new(back.fence));
    ops::slot::release(
        &app.records.transactor,
        scope(&namespace, &name, &caller.actor()),
        &holder,
        Some(fence),
        may_release_all(&caller, &namespace, &name),
    )
    .await?;
    Ok(JsonAnswer(Empty {}))
}

/// Whether the caller may release what another token acquired.
pub(super) fn may_release_all(caller: &Authenticated, namespace: &Namespace, name: &SlotName) -> bool {
    caller.require(Right::update(ObjectKind::Slot), Some(name.as_str()), Some(namespace)).is_ok()
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::slot::delete(&app.records.transactor, scope(&namespace, &name, &caller.actor())).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
    JsonBody(spec): JsonBody<SlotSpec>,
) -> Result<JsonAnswer<Slot>, Failure> {
    Ok(JsonAnswer(
        ops::slot::set(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &spec).await?,
    ))
}

pub(crate) async fn force_release(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(name)): (NamespacePath, Turn),
    JsonBody(force): JsonBody<ForceRelease>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::slot::force(&app.records.transactor, scope(&namespace, &name, &caller.actor()), &force).await?;
    Ok(JsonAnswer(Empty {}))
}

const fn scope<'a>(namespace: &'a Namespace, slot: &'a SlotName, actor: &'a Actor) -> SlotScope<'a> {
    SlotScope { namespace, slot, actor }
}
