//! Rollout plans over HTTP. Simulations run on the blocking threads.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::plan::{NewPlan, Plan};
use bellwether_core::trial::plan;
use tokio::sync::Semaphore;

use super::auth::Authenticated;
use super::input::{Entity, JsonAnswer, JsonBody, NamespacePath};
use super::problem::Failure;
use super::readable::Readable;
use super::state::AppState;
use crate::ops;
use crate::ops::scope::EntityScope;

/// Admits one simulation at a time: each may occupy a core for seconds, and any reader may request one.
static TURN: Semaphore = Semaphore::const_new(1);

pub(crate) async fn plan(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(name)): (NamespacePath, Entity),
    readable: Readable,
    JsonBody(request): JsonBody<NewPlan>,
) -> Result<JsonAnswer<Plan>, Failure> {
    app.hooks.permit(&request.policy)?;
    let (world, now) = (app.world(), app.records.transactor.now());
    let scope = EntityScope { namespace: &namespace, entity: &name, actor: &caller.actor() };
    let (version, case) = ops::plan::case(&world, scope, &request, now)?;
    let source = case.board.entity().source.clone();
    let turn = TURN.acquire().await;
    let work = move || {
        let plan = plan::RolloutPlan::of(&case);
        // The permit is released when the simulation ends, also when the client has hung up.
        drop(turn);
        plan
    };
    let plan = tokio::task::spawn_blocking(work).await;
    let lost = |_| Failure::new(Code::Internal, "the simulation did not finish".to_owned());
    let mut plan = Plan::of(version.as_str(), &plan.map_err(lost)?);
    for batch in &mut plan.batches {
        batch.first.take_if(|first| !readable.has_target(&source, first));
        batch.last.take_if(|last| !readable.has_target(&source, last));
    }
    Ok(JsonAnswer(plan))
}
