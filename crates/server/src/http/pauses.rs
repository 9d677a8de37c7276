//! Pauses of nodes by selector, over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::PAUSES;
use bellwether_api::problem::Code;
use bellwether_api::v1::pause::{PauseSpec, PauseView};
use bellwether_core::records::pause::NodePause as Record;
use bellwether_core::words::name::{Namespace, PauseName};
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Pause, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

fn view(fleet: &Fleet, pause: &Record) -> PauseView {
    let active = fleet.nodes.values().filter(|node| node.value.decommissioned.is_none());
    let held = active.filter(|node| pause.holds(&node.value, fleet.data_of(&node.value.name))).count();
    PauseView { pause: pause.into(), held: held as u64 }
}

fn one(app: &AppState, namespace: &Namespace, name: &PauseName) -> Result<PauseView, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(namespace);
    let found = fleet.and_then(|fleet| Some(view(fleet, &fleet.pauses.get(name)?.value)));
    found.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("cannot find pause {name}"))
            .hint("list them: bellwether pause list")
    })
}

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &PAUSES, &[])?;
    let world = app.world();
    let of = |fleet: &Fleet| -> Vec<PauseView> {
        fleet.pauses.values().map(|kept| view(fleet, &kept.value)).collect()
    };
    let pauses = world.fleets.get(&namespace).map(of).unwrap_or_default();
    list.answer_json((&PAUSES, app.clock.now()), pauses.into_iter(), world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), Pause(name)): (NamespacePath, Pause),
) -> Result<JsonAnswer<PauseView>, Failure> {
    one(&app, &namespace, &name).map(JsonAnswer)
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Pause(name)): (NamespacePath, Pause),
    JsonBody(spec): JsonBody<PauseSpec>,
) -> Result<SetResponse<PauseView>, Failure> {
    let is_new = ops::pause::put(&app.records.transactor, &namespace, &caller.actor(), &name, &spec).await?;
    Ok(SetResponse { is_new, value: one(&app, &namespace, &name)? })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Pause(name)): (NamespacePath, Pause),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::pause::delete(&app.records.transactor, &namespace, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}
