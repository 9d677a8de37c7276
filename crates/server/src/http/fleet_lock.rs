//! The FleetLock protocol, revision 1, over slots: machines take turns to reboot. Its text is in
//! the documentation of Zincati, its client on CoreOS.
//!
//! Group `default` uses the slot in the path, any other group the slot `SLOT-GROUP`.

pub(super) mod error;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::slot::FleetLock;
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::decide::slots::SlotRequest;
use bellwether_core::words::name::{HolderName, Namespace, SlotName};
use http::HeaderMap;

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Turn};
use super::problem::Failure;
use super::route_object::FLEET_LOCK_NAMESPACE;
use super::routes::Empty;
use super::slots::{may_grant, may_release_all};
use super::state::AppState;
use crate::ops;
use crate::ops::scope::SlotScope;

/// The header that the protocol requires, with its value.
const HEADER: (&str, &[u8]) = ("fleet-lock-protocol", b"true");

/// The group of clients that are not configured with one.
const DEFAULT_GROUP: &str = "default";

/// The slot of paths that name none.
const DEFAULT_SLOT: &str = "reboot";

/// What acquiring and releasing a slot needs. The group names the slot, so that the path alone does not decide.
const HOLDERS: Right = Right::update_field(ObjectKind::Slot, "/holders");

/// A client's request, parsed.
struct FleetLockClient {
    slot: SlotName,
    holder: HolderName,
    group: String,
}

pub(crate) async fn pre_reboot(
    State(app): State<AppState>,
    caller: Authenticated,
    headers: HeaderMap,
    JsonBody(body): JsonBody<FleetLock>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let (namespace, slot) = defaults()?;
    lock(&app, &caller, &namespace, read_client(&headers, &slot, body)?).await
}

pub(crate) async fn steady_state(
    State(app): State<AppState>,
    caller: Authenticated,
    headers: HeaderMap,
    JsonBody(body): JsonBody<FleetLock>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let (namespace, slot) = defaults()?;
    unlock(&app, &caller, &namespace, read_client(&headers, &slot, body)?).await
}

pub(crate) async fn pre_reboot_of(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(slot)): (NamespacePath, Turn),
    headers: HeaderMap,
    JsonBody(body): JsonBody<FleetLock>,
) -> Result<JsonAnswer<Empty>, Failure> {
    lock(&app, &caller, &namespace, read_client(&headers, &slot, body)?).await
}

pub(crate) async fn steady_state_of(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Turn(slot)): (NamespacePath, Turn),
    headers: HeaderMap,
    JsonBody(body): JsonBody<FleetLock>,
) -> Result<JsonAnswer<Empty>, Failure> {
    unlock(&app, &caller, &namespace, read_client(&headers, &slot, body)?).await
}

async fn lock(
    app: &AppState,
    caller: &Authenticated,
    namespace: &Namespace,
    client: FleetLockClient,
) -> Result<JsonAnswer<Empty>, Failure> {
    let reason = format!("group {}", client.group);
    let request =
        SlotRequest { holder: client.holder, by: caller.actor(), reason, lease: None, capacity: None };
    caller.require(HOLDERS, Some(client.slot.as_str()), Some(namespace))?;
    let scope = SlotScope { namespace, slot: &client.slot, actor: &request.by };
    may_grant(app)?;
    ops::slot::acquire(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(Empty {}))
}

async fn unlock(
    app: &AppState,
    caller: &Authenticated,
    namespace: &Namespace,
    client: FleetLockClient,
) -> Result<JsonAnswer<Empty>, Failure> {
    caller.require(HOLDERS, Some(client.slot.as_str()), Some(namespace))?;
    let scope = SlotScope { namespace, slot: &client.slot, actor: &caller.actor() };
    let of_all = may_release_all(caller, namespace, &client.slot);
    ops::slot::release(&app.records.transactor, scope, &client.holder, None, of_all).await?;
    Ok(JsonAnswer(Empty {}))
}

fn defaults() -> Result<(Namespace, SlotName), Failure> {
    Ok((read("namespace", FLEET_LOCK_NAMESPACE)?, read("slot", DEFAULT_SLOT)?))
}

fn read_client(headers: &HeaderMap, slot: &SlotName, body: FleetLock) -> Result<FleetLockClient, Failure> {
    if headers.get(HEADER.0).is_none_or(|value| value.as_bytes() != HEADER.1) {
        let detail = format!("cannot answer: the header {} is missing, or is not \"true\"", HEADER.0);
        return Err(Failure::new(Code::Invalid, detail));
    }
    let params = body.client_params;
    let group = params.group;
    let well = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    if group.is_empty() || !group.chars().all(well) {
        let reason = "a group is letters, digits, '.' and '-'";
        return Err(ShapeError::at("client_params.group", reason).into());
    }
    let own = if group == DEFAULT_GROUP { slot.to_string() } else { format!("{slot}-{group}") };
    let slot = own.parse().map_err(|_| {
        let reason = format!("its slot would be {own}, which is not a valid name: lower-case letters, digits and '-', at most 63");
        Failure::from(ShapeError::at("client_params.group", reason))
    })?;
    Ok(FleetLockClient { slot, holder: read("client_params.id", &params.id)?, group })
}
