//! Plans over HTTP. The rehearsals run off the runtime's threads.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::plan::{NewPlan, Plan};
use bellwether_core::trial::plan;
use tokio::sync::Semaphore;

use super::AppState;
use super::auth::Authenticated;
use super::input::{Entity, JsonAnswer, JsonBody, NamespacePath};
use super::problem::Failure;
use crate::ops;

/// Rehearsals made at once by this server: each may take a core for seconds, and whoever may read may ask for one.
static TURN: Semaphore = Semaphore::const_new(1);

pub(crate) async fn plan(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    JsonBody(request): JsonBody<NewPlan>,
) -> Result<JsonAnswer<Plan>, Failure> {
    let (world, now) = (app.world(), app.transactor.now());
    let (version, case) = ops::plan::case(&world, (&namespace, &name), &caller.actor(), &request, now)?;
    let turn = TURN.acquire().await;
    let work = move || {
        let plan = plan::RolloutPlan::of(&case);
        // The turn ends with the work, also when whoever asked has hung up.
        drop(turn);
        plan
    };
    let plan = tokio::task::spawn_blocking(work).await;
    let lost = |_| Failure::new(Code::Internal, "could not finish the rehearsal".to_owned());
    Ok(JsonAnswer(Plan::of(version.as_str(), &plan.map_err(lost)?)))
}
