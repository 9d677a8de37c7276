//! Reloading the configuration over the socket.

use axum::Json;
use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::local::Reload;

use super::api::LocalApi;
use super::problem::LocalFailure;

/// Reads the configuration again; answers once it is known whether it is valid.
pub(super) async fn put(State(local): State<LocalApi>) -> Result<Json<Reload>, LocalFailure> {
    let number = local.reload.reload().await;
    let number = number.map_err(|reason| LocalFailure::new(Code::Refused, format!("cannot {reason}")))?;
    Ok(Json(Reload { number }))
}
