//! Refusals in Consul's way: a status and a line of text.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, Uri, header};

/// Why a request is not answered with what it asked for.
#[derive(Debug)]
pub(super) enum ConsulRefusal {
    /// It makes no sense.
    Invalid(String),
    /// There is no such thing.
    NotFound(String),
    /// It is about another datacentre.
    OtherDatacentre(String),
    /// Nothing is known here yet: that is no "no".
    NothingKnown,
    /// An answer has no JSON form.
    Broken(String),
}

impl IntoResponse for ConsulRefusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Invalid(reason) => (StatusCode::BAD_REQUEST, reason),
            Self::NotFound(what) => (StatusCode::NOT_FOUND, format!("could not find {what}")),
            // The words, and the status, that Consul has for it.
            Self::OtherDatacentre(name) => {
                let text = format!("No path to datacenter: {name:?} is not the one of this agent");
                (StatusCode::INTERNAL_SERVER_ERROR, text)
            }
            Self::NothingKnown => {
                let text = "No cluster leader: this agent has not heard of the catalogue yet";
                (StatusCode::INTERNAL_SERVER_ERROR, text.to_owned())
            }
            Self::Broken(reason) => (StatusCode::INTERNAL_SERVER_ERROR, reason),
        };
        (status, format!("{text}\n")).into_response()
    }
}

/// Nothing is there.
pub(super) async fn nowhere(uri: Uri) -> ConsulRefusal {
    std::future::ready(ConsulRefusal::NotFound(format!(
        "{}: this agent serves a part of Consul's catalogue, for reading",
        uri.path()
    )))
    .await
}

/// Refuses everything but reading.
pub(super) async fn only_get(request: Request, next: Next) -> Response {
    if request.method() == Method::GET {
        return next.run(request).await;
    }
    let text = format!("could not {}: this port is for reading, by GET\n", request.method());
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")], text).into_response()
}
