//! HTTP requests as agents and people send them.

use axum::body::Body;
use http::Request;
use serde::Serialize;

/// A request with a JSON body.
pub(crate) fn json(method: &str, path: &str, body: &impl Serialize) -> Request<Body> {
    let body = serde_json::to_vec(body).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    request.body(Body::from(body)).expect("a path of ours is a URI")
}

/// A request without a body.
pub(crate) fn bare(method: &str, path: &str) -> Request<Body> {
    Request::builder().method(method).uri(path).body(Body::empty()).expect("a path of ours is a URI")
}
