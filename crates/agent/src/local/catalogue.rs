//! The copy of the catalogue, over the socket. An agent that kept none until now keeps one from then on.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::service::CatalogueUpdate;

use super::Local;
use super::problem::Failure;

/// How long the first copy may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn get(State(local): State<Local>) -> Result<Json<CatalogueUpdate>, Failure> {
    local.wants_catalogue.send_if_modified(|wants| !std::mem::replace(wants, true));
    let mut picture = local.picture.clone();
    let found = tokio::time::timeout(PATIENCE, picture.wait_for(|picture| picture.index > 0)).await;
    match found {
        Ok(Ok(picture)) => Ok(Json(picture.whole())),
        Ok(Err(_)) | Err(_) => {
            let reason = "could not tell what is offered: the control plane has not sent its catalogue yet";
            Err(Failure::new(Code::Store, reason))
        }
    }
}
