//! Namespaces over HTTP.

use axum::extract::State;
use bellwether_api::v1::namespace::NamespaceView;
use bellwether_api::v1::page::Page;

use super::auth::Authenticated;
use super::input::{JsonAnswer, NamespacePath, QueryParams};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

pub(crate) async fn list(
    State(app): State<AppState>,
    query: QueryParams,
) -> Result<JsonAnswer<Page<NamespaceView>>, Failure> {
    query.only(&[])?;
    let world = app.world();
    let items = ops::namespace::list(&world);
    Ok(JsonAnswer(Page { items, next: None, revision: world.revision.get() }))
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::namespace::delete(&app.records.transactor, &namespace, &caller.actor()).await?;
    Ok(JsonAnswer(Empty {}))
}
