//! Services over the socket: a program registers one, reports its health, and deregisters it.

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
use bellwether_core::words::name::{CheckName, InstanceName, ServiceName};

use super::api::{Empty, LocalApi};
use super::listen::Peer;
use super::problem::{LocalFailure, body};
use crate::service::registered::is_registered;
use crate::service::registry::KnownDefinition;
use crate::service::request::{CheckUpdate, RegistryRefusal};

/// All services of this node.
pub(super) async fn list(State(local): State<LocalApi>) -> Json<Vec<LocalService>> {
    let (shown, board) = (local.services.borrow().clone(), local.board.borrow().clone());
    let known = local.registry.known.borrow().clone();
    let order = local.sources.orders.borrow().clone();
    let all = known.into_iter().map(|(key, KnownDefinition { definition, source })| {
        let shown = shown.get(&key);
        let refusal = order.as_ref().and_then(|order| order.content.refuses(&key.0));
        let (status, reason) = match shown {
            _ if refusal.is_some() => (LocalServiceStatus::Refused, refusal.unwrap_or_default()),
            Some(shown) if !is_registered(shown, &board) => {
                (LocalServiceStatus::Held, "the static part of its entity is not done yet".to_owned())
            }
            Some(shown) => (CheckStatus::from(&shown.serving).into(), shown.serving.reason().to_owned()),
            None => (LocalServiceStatus::Failing, "starting".to_owned()),
        };
        LocalService { definition, source: source.to_string(), status, reason }
    });
    std::future::ready(Json(all.collect())).await
}

/// Registers a service, or changes a registered one.
pub(super) async fn register(
    State(local): State<LocalApi>,
    Extension(Peer { pid, is_own }): Extension<Peer>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let definition: ServiceDefinition = body(request).await?;
    if !is_own {
        runs_nothing(&definition)?;
    }
    let order = local.sources.orders.borrow().clone();
    let name: ServiceName = read("name", &definition.name)?;
    if let Some(refusal) = order.as_ref().and_then(|order| order.content.refuses(&name)) {
        let next = "an administrator allows it with 'bellwether node allow-services'";
        return Err(LocalFailure::new(Code::Forbidden, format!("cannot register: {refusal}; {next}")));
    }
    local.registry.register(definition, pid).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

/// Refuses a definition with a command: who is only of the agent's group may not run one as the agent's user.
fn runs_nothing(definition: &ServiceDefinition) -> Result<(), LocalFailure> {
    if definition.checks.iter().all(|check| check.exec.is_none()) {
        return Ok(());
    }
    let reason = "cannot register: a check by exec runs as the agent's user, and only root and that user may register one; \
                  use http, tcp or ttl, or a file of the agent's configuration";
    Err(LocalFailure::new(Code::Forbidden, reason.to_owned()))
}

/// Deregisters a service.
pub(super) async fn deregister(
    State(local): State<LocalApi>,
    Path(id): Path<String>,
) -> Result<Json<Empty>, LocalFailure> {
    let id: InstanceName = read("id", &id)?;
    local.registry.deregister(id).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

/// Sets the state of the only TTL check of a service.
pub(super) async fn update_only_check(
    State(local): State<LocalApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    update_check(local, &id, None, request).await
}

/// Sets the state of one TTL check of a service.
pub(super) async fn update_named_check(
    State(local): State<LocalApi>,
    Path((id, check)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let check: CheckName = read("check", &check)?;
    update_check(local, &id, Some(check), request).await
}

async fn update_check(
    local: LocalApi,
    id: &str,
    check: Option<CheckName>,
    request: Request,
) -> Result<Json<Empty>, LocalFailure> {
    let id: InstanceName = read("id", id)?;
    let Shape { status, note } = body(request).await?;
    let state = match status {
        CheckStatus::Passing => TtlUpdate::Passing,
        CheckStatus::Warning => TtlUpdate::Warning,
        CheckStatus::Failing => TtlUpdate::Failing,
    };
    if note.len() > MAX_WORD_BYTES || note.chars().any(char::is_control) {
        let reason = format!("must be one line of at most {MAX_WORD_BYTES} bytes");
        return Err(ShapeError::at("note", reason).into());
    }
    local.registry.update_check(id, check, CheckUpdate { state, note }).await.map_err(refused)?;
    Ok(Json(Empty {}))
}

fn refused((code, reason): RegistryRefusal) -> LocalFailure {
    let reason = if code == Code::Store { reason } else { format!("cannot {reason}") };
    LocalFailure::new(code, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_only_of_the_agents_group_registers_no_command() {
        let with = |check: &str| -> ServiceDefinition {
            serde_json::from_str(&format!(r#"{{"name": "web", "check": [{check}]}}"#)).unwrap()
        };
        assert!(runs_nothing(&with(r#"{"name": "port", "tcp": "127.0.0.1:80"}"#)).is_ok());
        let both = r#"{"name": "port", "tcp": "127.0.0.1:80"}, {"name": "it", "exec": ["id"]}"#;
        assert!(runs_nothing(&with(both)).is_err());
    }
}
