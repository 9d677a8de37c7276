//! Namespaces over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::NAMESPACES;

use super::auth::Authenticated;
use super::input::{JsonAnswer, NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

pub(crate) async fn list(State(app): State<AppState>, query: QueryParams) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &NAMESPACES, &[])?;
    let world = app.world();
    let namespaces = ops::namespace::list(&world);
    list.answer_json((&NAMESPACES, app.clock.now()), namespaces.into_iter(), world.revision)
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::namespace::delete(&app.records.transactor, &namespace, &caller.actor()).await?;
    Ok(JsonAnswer(Empty {}))
}
