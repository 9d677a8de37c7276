//! External targets over HTTP: controllers send reports and get the expected version of each target.

use axum::extract::State;
use bellwether_api::v1::external::{ExpectedVersions, TargetReports};

use super::auth::Authenticated;
use super::input::{Entity, JsonAnswer, JsonBody, NamespacePath};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops::external::{absorb, expected};
use crate::ops::scope::EntityScope;

/// Takes reports, returns the expected versions.
pub(crate) async fn orchestrate(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(entity)): (NamespacePath, Entity),
    JsonBody(reports): JsonBody<TargetReports>,
) -> Result<JsonAnswer<ExpectedVersions>, Failure> {
    let actor = caller.actor();
    let of = EntityScope { namespace: &namespace, entity: &entity, actor: &actor };
    let names = absorb(&app.records.transactor, of, &reports).await?;
    Ok(JsonAnswer(expected(&app.records.transactor, of, &names).await?))
}

/// Takes reports, without waiting for the decisions that follow.
pub(crate) async fn report(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(entity)): (NamespacePath, Entity),
    JsonBody(reports): JsonBody<TargetReports>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let actor = caller.actor();
    let of = EntityScope { namespace: &namespace, entity: &entity, actor: &actor };
    absorb(&app.records.transactor, of, &reports).await?;
    Ok(JsonAnswer(Empty {}))
}
