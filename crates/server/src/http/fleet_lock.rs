//! The FleetLock protocol, revision 1, over slots: machines take turns to reboot. Its text is in
//! the documentation of Zincati, its client on CoreOS.
//!
//! Group `default` takes turns over the slot of the path, any other group over one of its own, `SLOT-GROUP`.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bellwether_api::paths;
use bellwether_api::problem::{Code, Problem};
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::slot::{FleetLock, FleetLockError};
use bellwether_core::decide::slots::SlotRequest;
use bellwether_core::words::name::{HolderName, Namespace, SlotName};
use http::HeaderMap;

use super::AppState;
use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Turn};
use super::problem::Failure;
use super::routes::Empty;
use crate::ops;

/// The header by which a client says that it means it, and what it says.
const HEADER: (&str, &[u8]) = ("fleet-lock-protocol", b"true");

/// The group of whoever was told none.
const DEFAULT_GROUP: &str = "default";

/// The slot, and the namespace, of whoever names neither.
const DEFAULT_SLOT: &str = "reboot";
const DEFAULT_NAMESPACE: &str = "default";

/// Largest body taken, in bytes: two words and what later revisions of the protocol add.
const MAX_BODY_BYTES: usize = 16 << 10;

/// Whoever asks, and for what.
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
    let why = format!("group {}", client.group);
    let wish = SlotRequest { holder: client.holder, by: caller.actor(), why, lease: None, capacity: None };
    ops::slot::acquire(&app.transactor, (namespace, &client.slot), &wish).await?;
    Ok(JsonAnswer(Empty {}))
}

async fn unlock(
    app: &AppState,
    caller: &Authenticated,
    namespace: &Namespace,
    client: FleetLockClient,
) -> Result<JsonAnswer<Empty>, Failure> {
    let place = (namespace, &client.slot);
    ops::slot::release(&app.transactor, place, &caller.actor(), (&client.holder, None)).await?;
    Ok(JsonAnswer(Empty {}))
}

fn defaults() -> Result<(Namespace, SlotName), Failure> {
    Ok((read("namespace", DEFAULT_NAMESPACE)?, read("slot", DEFAULT_SLOT)?))
}

fn read_client(headers: &HeaderMap, slot: &SlotName, body: FleetLock) -> Result<FleetLockClient, Failure> {
    if headers.get(HEADER.0).is_none_or(|value| value.as_bytes() != HEADER.1) {
        let detail = format!("could not answer: the header {} is not there, or not \"true\"", HEADER.0);
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
        let reason = format!("its turns are those of slot {own}, which is no slot's name: lower-case letters, digits and '-', at most 63");
        Failure::from(ShapeError::at("client_params.group", reason))
    })?;
    Ok(FleetLockClient { slot, holder: read("client_params.id", &params.id)?, group })
}

/// Says problems in the protocol's words on its paths; elsewhere they stay as they are.
///
/// The body is read before anything else is looked at: over HTTP/2 a refusal that comes while the client still sends is an
/// error of the connection to some clients, which then have no words at all.
pub(crate) async fn in_its_words(request: Request, next: Next) -> Response {
    if !paths::is_fleet_lock(request.uri().path()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let mut response = match axum::body::to_bytes(body, MAX_BODY_BYTES).await {
        Ok(bytes) => next.run(Request::from_parts(parts, bytes.into())).await,
        Err(error) => {
            Failure::new(Code::Invalid, format!("could not read the body: {error}")).into_response()
        }
    };
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    // What is refused here is refused for want of room.
    let kind =
        if problem.code == Code::Refused { "failed_lock_semaphore_full" } else { problem.code.as_str() };
    let error = FleetLockError { kind: kind.to_owned(), value: problem.detail };
    let (mut parts, _) = response.into_parts();
    let (own, body) = axum::Json(error).into_response().into_parts();
    parts.headers.extend(own.headers);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, body)
}
