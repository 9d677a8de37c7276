//! Errors in the format of the FleetLock protocol.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bellwether_api::paths;
use bellwether_api::problem::{Code, Problem};
use bellwether_api::v1::slot::FleetLockError;

use crate::http::problem::Failure;

/// Largest body, in bytes: two strings and what later revisions of the protocol add.
const MAX_BODY_BYTES: usize = 16 << 10;

/// Converts error responses on the protocol's paths to the protocol's format; others are unchanged.
///
/// The body is read first: some HTTP/2 clients treat a response that arrives while they still send as a connection error,
/// and never see its text.
pub(crate) async fn as_fleet_lock_error(request: Request, next: Next) -> Response {
    if !paths::is_fleet_lock(request.uri().path()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let mut response = match axum::body::to_bytes(body, MAX_BODY_BYTES).await {
        Ok(bytes) => next.run(Request::from_parts(parts, bytes.into())).await,
        Err(error) => Failure::new(Code::Invalid, format!("cannot read the body: {error}")).into_response(),
    };
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    // On these paths the only refusal is that the slot is full.
    let kind =
        if problem.code == Code::Refused { "failed_lock_semaphore_full" } else { problem.code.as_str() };
    let error = FleetLockError { kind: kind.to_owned(), value: problem.detail };
    let (mut parts, _) = response.into_parts();
    let (own, body) = axum::Json(error).into_response().into_parts();
    parts.headers.extend(own.headers);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, body)
}
