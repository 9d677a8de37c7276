//! Statuses over the socket: a program sets or deletes one of this machine.

use axum::Json;
use axum::extract::{Path, Request, State};
use bellwether_api::shape::read;
use bellwether_api::v1;
use bellwether_core::local::statuses::StatusUpdate;
use bellwether_core::records::status::Status;
use bellwether_core::words::name::Category;

use super::api::{Empty, LocalApi};
use super::problem::{LocalFailure, body};

pub(super) async fn put(
    State(local): State<LocalApi>,
    Path(category): Path<String>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let category: Category = read("category", &category)?;
    let new: v1::local::NewStatus = body(request).await?;
    let v1::local::NewStatus { state, reason, lifetime_ms } = new;
    let shape = v1::status::Status { reason, lifetime_ms, ..state.into() };
    let Status { state, reason, lifetime, .. } = shape.try_into()?;
    let lifetime = lifetime.map(|lifetime| lifetime.lasts);
    let update = StatusUpdate { state, reason, lifetime, at: local.clock.now(), update: 0 };
    local.statuses.say(category, Some(update)).await?;
    Ok(Json(Empty {}))
}

pub(super) async fn delete(
    State(local): State<LocalApi>,
    Path(category): Path<String>,
) -> Result<Json<Empty>, LocalFailure> {
    local.statuses.say(read("category", &category)?, None).await?;
    Ok(Json(Empty {}))
}
