//! Services over the socket: a program registers itself, says how it does, and goes.

use axum::extract::{Path, Request, State};
use axum::{Extension, Json};
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::registrations::CheckStatus;
use bellwether_api::v1::service::definition::{
    LocalService, LocalServiceStatus, ServiceDefinition, TtlUpdate as Shape,
};
use bellwether_core::local::ttl::TtlUpdate;
use bellwether_core::records::registrations::MAX_WORD_BYTES;
use bellwether_core::words::name::{CheckName, InstanceName};

use super::api::{Empty, LocalApi};
use super::listen::Peer;
use super::problem::{LocalFailure, body};
use crate::service::registered::is_registered;
use crate::service::request::RegistryRefusal;

/// Everything this machine offers.
pub(super) async fn list(State(local): State<LocalApi>) -> Json<Vec<LocalService>> {
    let (shown, board) = (local.services.borrow().clone(), local.board.borrow().clone());
    let known = local.registry.known.borrow().clone();
    let all = known.into_iter().map(|(key, (definition, source))| {
        let shown = shown.get(&key);
        let (status, reason) = match shown {
            Some(shown) if !is_registered(shown, &board) => {
                (LocalServiceStatus::Held, "its entity's static part was not done here yet".to_owned())
            }
            Some(shown) => (CheckStatus::from(&shown.serving).into(), shown.serving.reason().to_owned()),
            None => (LocalServiceStatus::Failing, "it begins".to_owned()),
        };
        LocalService { definition, source, status, reason }
    });
    std::future::ready(Json(all.collect())).await
}

/// Registers a service, or changes one that was registered.
pub(super) async fn register(
    State(local): State<LocalApi>,
    Extension(Peer(pid)): Extension<Peer>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let definition: ServiceDefinition = body(request).await?;
    local.registry.register(definition, pid).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

/// Takes a service back.
pub(super) async fn deregister(
    State(local): State<LocalApi>,
    Path(id): Path<String>,
) -> Result<Json<Empty>, LocalFailure> {
    let id: InstanceName = read("id", &id)?;
    local.registry.deregister(id).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

/// A program says how it does, for its only check with a ttl.
pub(super) async fn pulse(
    State(local): State<LocalApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    hear(local, &id, None, request).await
}

/// A program says how it does, for one of its checks.
pub(super) async fn pulse_of(
    State(local): State<LocalApi>,
    Path((id, check)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let check: CheckName = read("check", &check)?;
    hear(local, &id, Some(check), request).await
}

async fn hear(
    local: LocalApi,
    id: &str,
    check: Option<CheckName>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let id: InstanceName = read("id", id)?;
    let Shape { status, note } = body(request).await?;
    let pulse = match status {
        CheckStatus::Passing => TtlUpdate::Passing,
        CheckStatus::Warning => TtlUpdate::Warning,
        CheckStatus::Failing => TtlUpdate::Failing,
    };
    if note.len() > MAX_WORD_BYTES || note.chars().any(char::is_control) {
        let reason = format!("write one line of at most {MAX_WORD_BYTES} bytes");
        return Err(ShapeError::at("note", reason).into());
    }
    local.registry.pulse(id, check, (pulse, note)).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

fn refused((code, reason): RegistryRefusal) -> LocalFailure {
    let reason = if code == Code::Store { reason } else { format!("could not {reason}") };
    LocalFailure::new(code, reason)
}
