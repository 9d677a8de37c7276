//! External targets over HTTP: controllers report, and are answered what each target is to run.

use axum::extract::State;
use bellwether_api::v1::external::{ExpectedVersions, TargetReports};

use super::AppState;
use super::auth::Authenticated;
use super::input::{Entity, JsonAnswer, JsonBody, NamespacePath};
use super::problem::Failure;
use super::routes::Empty;
use crate::ops::external::{ExternalScope, absorb, expected};

/// Reports in, expected versions out.
pub(crate) async fn orchestrate(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(entity)): (NamespacePath, Entity),
    JsonBody(reports): JsonBody<TargetReports>,
) -> Result<JsonAnswer<ExpectedVersions>, Failure> {
    let actor = caller.actor();
    let of = ExternalScope { namespace: &namespace, entity: &entity, actor: &actor };
    let names = absorb(&app.transactor, of, &reports).await?;
    Ok(JsonAnswer(expected(&app.transactor, of, &names).await?))
}

/// Reports in; what follows from them is asked for another time.
pub(crate) async fn report(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(entity)): (NamespacePath, Entity),
    JsonBody(reports): JsonBody<TargetReports>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let actor = caller.actor();
    let of = ExternalScope { namespace: &namespace, entity: &entity, actor: &actor };
    absorb(&app.transactor, of, &reports).await?;
    Ok(JsonAnswer(Empty {}))
}
