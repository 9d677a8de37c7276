//! The copy of the catalogue, over the socket. An agent that kept none until now keeps one from then on.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::service::CatalogueUpdate;

use super::api::LocalApi;
use super::problem::LocalFailure;

/// How long the first copy may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn get(State(local): State<LocalApi>) -> Result<Json<CatalogueUpdate>, LocalFailure> {
    local.wants_catalogue.send_if_modified(|wants| !std::mem::replace(wants, true));
    let mut snapshot = local.snapshot.clone();
    let found = tokio::time::timeout(PATIENCE, snapshot.wait_for(|snapshot| snapshot.index > 0)).await;
    match found {
        Ok(Ok(snapshot)) => Ok(Json(snapshot.whole())),
        Ok(Err(_)) | Err(_) => {
            let reason = "could not tell what is offered: the control plane has not sent its catalogue yet";
            Err(LocalFailure::new(Code::Store, reason))
        }
    }
}
