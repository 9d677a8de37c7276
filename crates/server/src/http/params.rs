//! Declared params over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::PARAMS;
use bellwether_api::problem::Code;
use bellwether_api::v1::param::{Param, ParamSpec};
use bellwether_core::words::name::ParamKey;

use super::auth::Authenticated;
use super::input::{DeclaredParam, JsonAnswer, JsonBody, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &PARAMS, &[])?;
    let world = app.world();
    let params = world.fleets.get(&namespace).map(ops::param::list).transpose()?.unwrap_or_default();
    list.answer_json((&PARAMS, app.clock.now()), params.into_iter(), world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    DeclaredParam(key): DeclaredParam,
) -> Result<JsonAnswer<Param>, Failure> {
    let world = app.world();
    let found = world.fleets.get(&namespace).map(|fleet| ops::param::get(fleet, &key)).transpose()?;
    found.flatten().map(JsonAnswer).ok_or_else(|| missing(&key))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), DeclaredParam(key)): (NamespacePath, DeclaredParam),
    JsonBody(spec): JsonBody<ParamSpec>,
) -> Result<SetResponse<Param>, Failure> {
    let (value, is_new) =
        ops::param::declare(&app.records.transactor, (&namespace, &caller.0), &key, &spec).await?;
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), DeclaredParam(key)): (NamespacePath, DeclaredParam),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::param::undeclare(&app.records.transactor, (&namespace, &caller.0), &key).await?;
    Ok(JsonAnswer(Empty {}))
}

fn missing(key: &ParamKey) -> Failure {
    Failure::new(Code::NotFound, format!("param {key} is not declared"))
        .hint("list those that are: bellwether param list")
}
