//! Errors in Consul's form: a status and a line of text.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, Uri, header};

/// Why a request failed.
#[derive(Debug)]
pub(super) enum ConsulRefusal {
    /// The request is not valid.
    Invalid(String),
    /// The request is for another host.
    OtherHost(String),
    /// The object does not exist.
    NotFound(String),
    /// The request is for another datacentre.
    OtherDatacentre(String),
    /// The catalogue has not arrived yet, so its absence proves nothing.
    NothingKnown,
    /// The answer cannot be encoded.
    Broken(String),
}

impl IntoResponse for ConsulRefusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Invalid(reason) => (StatusCode::BAD_REQUEST, reason),
            Self::OtherHost(host) => {
                let text = format!(
                    "this is not {host:?}: use an address, localhost, the name of the node, or a name in hosts of [http] in agent.toml"
                );
                (StatusCode::MISDIRECTED_REQUEST, text)
            }
            Self::NotFound(what) => (StatusCode::NOT_FOUND, format!("cannot find {what}")),
            // Consul's own text and status.
            Self::OtherDatacentre(name) => {
                let text = format!("No path to datacenter: {name:?} is not the datacentre of this agent");
                (StatusCode::INTERNAL_SERVER_ERROR, text)
            }
            Self::NothingKnown => {
                let text = "No cluster leader: this agent has not received the catalogue yet";
                (StatusCode::INTERNAL_SERVER_ERROR, text.to_owned())
            }
            Self::Broken(reason) => (StatusCode::INTERNAL_SERVER_ERROR, reason),
        };
        (status, format!("{text}\n")).into_response()
    }
}

/// The answer for unknown paths.
pub(super) async fn not_found(uri: Uri) -> ConsulRefusal {
    std::future::ready(ConsulRefusal::NotFound(format!(
        "{}: this agent serves a part of Consul's catalogue API, read only",
        uri.path()
    )))
    .await
}

/// Refuses every method but GET.
pub(super) async fn only_get(request: Request, next: Next) -> Response {
    if request.method() == Method::GET {
        return next.run(request).await;
    }
    let text = format!("cannot {}: this port is read only; use GET\n", request.method());
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")], text).into_response()
}
