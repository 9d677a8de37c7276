//! What a caller shows of who it is, and whether that is looked at. Decides on no identity.

use std::net::SocketAddr;

use axum::extract::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::problem::Code;
use http::header;

use super::authentication_failures::AuthenticationFailures;
use super::listen::Peer;
use super::problem::Failure;

/// When a caller may retry whose token was not looked at, in milliseconds: as long as one answer is delayed.
const BUSY_MS: u64 = 1_000;

/// The token in an `Authorization` header. It is accepted as a password only where clients have no other way to send it: a
/// browser that stored it would send it along with the requests of any page.
pub(super) fn token(header: &str, may_be_password: bool) -> Option<String> {
    if let Some(token) = header.strip_prefix("Bearer ") {
        return Some(token.to_owned());
    }
    let encoded = header.strip_prefix("Basic ").filter(|_| may_be_password)?;
    let pair = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

/// What a caller has shown.
pub(super) fn credential(request: &Request) -> Option<&'static str> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return Some("token");
    }
    let peer = request.extensions().get::<Peer>();
    peer.is_some_and(|peer| peer.bearer.is_some()).then_some("certificate")
}

/// The answer to a token that nobody has while too many answers of its network are delayed; `None` if it is delayed itself, or given at once.
pub(super) fn too_many(
    failures: &AuthenticationFailures,
    shown: Option<&'static str>,
    address: Option<SocketAddr>,
) -> Option<Failure> {
    let is_token = shown == Some("token");
    if !is_token || address.is_none_or(|address| failures.admits(address.ip())) {
        return None;
    }
    let detail = "too many authentications from this address failed lately";
    Some(Failure::new(Code::Busy, detail).hint("retry").retry_after_ms(BUSY_MS))
}
