//! What this agent is about, over the socket: what its status file says.

use axum::Json;
use axum::extract::State;

use super::api::LocalApi;
use crate::status::AgentStatus;

pub(super) async fn get(State(local): State<LocalApi>) -> Json<AgentStatus> {
    let mut sources = local.sources.clone();
    std::future::ready(Json(sources.status(local.clock.now()))).await
}
