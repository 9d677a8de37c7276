//! Refusals on the local socket: problem details, as from a server.

use axum::response::{IntoResponse, Response};
use bellwether_api::problem::{Code, MEDIA_TYPE, Problem};
use bellwether_api::shape::ShapeError;
use http::{StatusCode, header};

/// Why a request is not answered with what it asked for.
#[derive(Debug)]
pub(crate) struct LocalFailure(Problem);

impl LocalFailure {
    /// A failure of a kind; `detail` says what could not be done and why.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.status();
        Self(Problem { status, code, detail: detail.into(), hint: None, retry_after_ms: None })
    }
}

impl From<ShapeError> for LocalFailure {
    fn from(error: ShapeError) -> Self {
        Self::new(Code::Invalid, format!("could not {error}"))
    }
}

impl IntoResponse for LocalFailure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], axum::Json(self.0)).into_response()
    }
}

/// What a body says.
///
/// # Errors
/// [`LocalFailure`] when it is no JSON of this shape, is too large, or did not arrive.
pub(crate) async fn body<T: serde::de::DeserializeOwned>(
    request: axum::extract::Request,
) -> Result<T, LocalFailure> {
    use axum::extract::FromRequest;
    let bytes = axum::body::Bytes::from_request(request, &()).await.map_err(|rejection| {
        let code =
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE { Code::TooLarge } else { Code::Invalid };
        LocalFailure::new(code, format!("could not read the body: {}", rejection.body_text()))
    })?;
    serde_json::from_slice(&bytes).map_err(|error| ShapeError::at("the body", error).into())
}

/// Nothing is there.
pub(super) async fn nowhere(uri: http::Uri) -> LocalFailure {
    std::future::ready(LocalFailure::new(Code::NotFound, format!("could not find {}", uri.path()))).await
}

/// It is there, and is asked for in another way.
pub(super) async fn no_such_method(method: http::Method, uri: http::Uri) -> LocalFailure {
    let detail = format!("could not {method} {}: that path takes other methods", uri.path());
    std::future::ready(LocalFailure::new(Code::Invalid, detail)).await
}

/// Whoever asks may not.
pub(super) async fn stranger() -> LocalFailure {
    let detail = "could not answer: only root and the agent's own user and group may ask";
    std::future::ready(LocalFailure::new(Code::Forbidden, detail)).await
}
