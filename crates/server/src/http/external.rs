//! External targets over HTTP: controllers report, and are answered what each target is to run.

use axum::extract::State;
use bellwether_api::v1::external::{Orchestrated, Reports};

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Entity, Ns};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops::external::{Of, absorb, expected};

/// Reports in, expected versions out.
pub(crate) async fn orchestrate(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Entity(entity)): (Ns, Entity),
    Body(reports): Body<Reports>,
) -> Result<Answer<Orchestrated>, Failure> {
    let actor = caller.actor();
    let of = Of { namespace: &namespace, entity: &entity, actor: &actor };
    let names = absorb(&app.desk, of, &reports).await?;
    Ok(Answer(expected(&app.desk, of, &names).await?))
}

/// Reports in; what follows from them is asked for another time.
pub(crate) async fn report(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Entity(entity)): (Ns, Entity),
    Body(reports): Body<Reports>,
) -> Result<Answer<Nothing>, Failure> {
    let actor = caller.actor();
    let of = Of { namespace: &namespace, entity: &entity, actor: &actor };
    absorb(&app.desk, of, &reports).await?;
    Ok(Answer(Nothing {}))
}
