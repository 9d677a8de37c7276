//! Requests that wait for news: whoever asked is examined again before the answer, which would else tell what happened after their token was
//! deleted.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{Method, header};

use super::admission::may_wait;
use super::listen::Peer;

/// What is examined again of a request that waits with a token. A node's own waits keep nothing: there are thousands of them.
pub(super) fn kept(request: &Request) -> Option<Box<Request>> {
    let is_read = request.method() == Method::GET;
    if !is_read || !may_wait(request) || !request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    let mut kept = Request::new(Body::empty());
    request.uri().clone_into(kept.uri_mut());
    request.headers().clone_into(kept.headers_mut());
    if let Some(peer) = request.extensions().get::<Peer>() {
        kept.extensions_mut().insert(peer.clone());
    }
    Some(Box::new(kept))
}

/// The answer to a request, if who waited for it may still have it; else the refusal.
pub(super) fn answered(
    kept: Option<Box<Request>>,
    refusal: impl FnOnce(&Request) -> Option<Response>,
    response: Response,
) -> Response {
    kept.and_then(|kept| refusal(&kept)).unwrap_or(response)
}
