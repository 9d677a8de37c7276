//! Errors on the local socket: problem details, as from a server.

use axum::response::{IntoResponse, Response};
use bellwether_api::problem::{Code, MEDIA_TYPE, Problem};
use bellwether_api::shape::ShapeError;
use http::{StatusCode, header};

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct LocalFailure(Problem);

impl LocalFailure {
    /// A failure with this code; `detail` is what failed and why.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.status();
        Self(Problem {
            status,
            code,
            detail: detail.into(),
            hint: None,
            retry_after_ms: None,
            may_be_made: false,
            conflict: None,
            invalid: None,
        })
    }
}

impl From<ShapeError> for LocalFailure {
    fn from(error: ShapeError) -> Self {
        Self::new(Code::Invalid, error.to_string())
    }
}

impl IntoResponse for LocalFailure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], axum::Json(self.0)).into_response()
    }
}

/// Reads the body of a request.
///
/// # Errors
/// [`LocalFailure`] if it is not JSON of this shape, is too large, or did not arrive.
pub(crate) async fn body<T: serde::de::DeserializeOwned>(
    request: axum::extract::Request,
) -> Result<T, LocalFailure> {
    use axum::extract::FromRequest;
    let bytes = axum::body::Bytes::from_request(request, &()).await.map_err(|rejection| {
        let code =
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE { Code::TooLarge } else { Code::Invalid };
        LocalFailure::new(code, format!("cannot read the body: {}", rejection.body_text()))
    })?;
    serde_json::from_slice(&bytes).map_err(|error| ShapeError::at("the body", error).into())
}

/// The answer for unknown paths.
pub(super) async fn not_found(uri: http::Uri) -> LocalFailure {
    std::future::ready(LocalFailure::new(Code::NotFound, format!("cannot find {}", uri.path()))).await
}

/// The answer for methods that a path does not have.
pub(super) async fn method_not_allowed(method: http::Method, uri: http::Uri) -> LocalFailure {
    let detail = format!("cannot {method} {}: the path has other methods", uri.path());
    std::future::ready(LocalFailure::new(Code::Invalid, detail)).await
}

/// The answer for clients that are not allowed.
pub(super) async fn forbidden() -> LocalFailure {
    let detail = "cannot answer: only root and the agent's own user and group are allowed";
    std::future::ready(LocalFailure::new(Code::Forbidden, detail)).await
}
