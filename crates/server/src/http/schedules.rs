//! Schedules of workflows over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::SCHEDULES;
use bellwether_api::problem::Code;
use bellwether_api::v1::schedule::{Schedule, ScheduleSpec};

use super::auth::Authenticated;
use super::input::{AtRevision, JsonAnswer, JsonBody, NamedSchedule, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::schedule::ScheduleScope;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &SCHEDULES, &[])?;
    let world = app.world();
    let all = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.schedules.values());
    let schedules = all.map(|kept| Schedule::from(&*kept.value));
    list.answer_json((&SCHEDULES, app.clock.now()), schedules, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedSchedule(name)): (NamespacePath, NamedSchedule),
) -> Result<JsonAnswer<Schedule>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).and_then(|fleet| fleet.schedules.get(&name));
    let shown = found.map(|kept| JsonAnswer(Schedule::from(&*kept.value)));
    shown.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("cannot find schedule {name}"))
            .hint("list them: bellwether schedule list")
    })
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSchedule(name)): (NamespacePath, NamedSchedule),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<ScheduleSpec>,
) -> Result<SetResponse<Schedule>, Failure> {
    ops::schedule::grantable(caller.rights()?, &namespace, &spec.workflow, "write a schedule")?;
    let scope = ScheduleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    let (schedule, is_new) = ops::schedule::set(&app.records.transactor, scope, &spec).await?;
    Ok(SetResponse { is_new, value: Schedule::from(&schedule) })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSchedule(name)): (NamespacePath, NamedSchedule),
    AtRevision(only_at): AtRevision,
) -> Result<JsonAnswer<Empty>, Failure> {
    let scope = ScheduleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    ops::schedule::delete(&app.records.transactor, scope).await?;
    Ok(JsonAnswer(Empty {}))
}
