//! Problems → HTTP answers: the only place that knows status codes.

use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use bellwether_api::problem::{Code, MEDIA_TYPE, Problem};
use bellwether_api::shape::ShapeError;
use bellwether_core::access::Denied;
use http::{HeaderValue, StatusCode, header};

use super::MAX_BODY_BYTES;
use crate::ops::OpError;
use crate::records::commit::CommitError;

/// A problem on its way out.
#[derive(Debug)]
pub(crate) struct Failure(Problem);

impl Failure {
    /// A problem of this kind.
    pub(crate) fn new(code: Code, detail: impl std::fmt::Display) -> Self {
        Self(Problem {
            status: code.status(),
            code,
            detail: detail.to_string(),
            hint: None,
            retry_after_ms: None,
        })
    }

    /// With the next thing to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// With a time to try again.
    pub(crate) fn retry_after_ms(mut self, millis: u64) -> Self {
        self.0.retry_after_ms = Some(millis);
        self
    }
}

/// What was set, in the answer: made, or changed.
pub(crate) struct SetResponse<T> {
    pub(crate) is_new: bool,
    pub(crate) value: T,
}

impl<T: serde::Serialize> IntoResponse for SetResponse<T> {
    fn into_response(self) -> Response {
        let status = if self.is_new { StatusCode::CREATED } else { StatusCode::OK };
        super::input::json(status, serde_json::to_vec(&self.value))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let code = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (code, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if let Some(millis) = self.0.retry_after_ms {
            let secs = HeaderValue::from(millis.div_ceil(1_000));
            response.headers_mut().insert(header::RETRY_AFTER, secs);
        }
        // For those on its way who say it in other words.
        response.extensions_mut().insert(self.0);
        response
    }
}

impl From<ShapeError> for Failure {
    fn from(error: ShapeError) -> Self {
        Self::new(Code::Invalid, format!("could not {error}"))
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        let code = match &denied {
            Denied::Unknown => Code::Unauthenticated,
            Denied::Forbidden { .. } => Code::Forbidden,
        };
        Self::new(code, format!("could not {denied}"))
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        let code = match &error {
            CommitError::Conflict => Code::Conflict,
            CommitError::LostTerm | CommitError::Store(_) | CommitError::Closed => Code::Store,
            CommitError::Shape(_) | CommitError::TooLarge => Code::Internal,
        };
        let failure = Self::new(code, format!("could not {error}"));
        if code == Code::Conflict {
            failure.hint("look at it again, then repeat the change if you still want it")
        } else if error.may_be_made() {
            failure.hint("it may have been done all the same: look before repeating it").retry_after_ms(1_000)
        } else if code == Code::Store {
            failure.hint("nothing was changed; try again").retry_after_ms(1_000)
        } else {
            failure
        }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        let detail = format!("could not {error}");
        match error {
            OpError::NotFound(_) => Self::new(Code::NotFound, detail),
            OpError::Exists { .. } => Self::new(Code::Exists, detail),
            OpError::Refused { hint, .. } => {
                let failure = Self::new(Code::Refused, detail);
                hint.into_iter().fold(failure, Self::hint)
            }
            OpError::Moved { hint, .. } => Self::new(Code::Conflict, detail).hint(hint),
            OpError::Invalid(error) => error.into(),
            OpError::JoinToken(_) => {
                Self::new(Code::JoinToken, detail).hint("make a new one: bellwether join-token create")
            }
            OpError::Pki(_) | OpError::Random(_) => Self::new(Code::Internal, detail),
            OpError::Commit(error) => error.into(),
        }
    }
}

/// A body that could not be read: too large, or it did not arrive.
pub(crate) fn unread(error: &BytesRejection) -> Failure {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = format!("could not read the body: it is larger than {MAX_BODY_BYTES} bytes");
        return Failure::new(Code::TooLarge, detail);
    }
    Failure::new(Code::Timeout, "could not read the body: it did not arrive")
}

/// No such path.
pub(crate) async fn nowhere(uri: http::Uri) -> Failure {
    let hint = format!("the API describes itself at {}", bellwether_api::paths::OPENAPI);
    Failure::new(Code::NotFound, format!("could not find {}", uri.path())).hint(hint)
}

/// The path does not support the method. The router adds `Allow` with those that it supports.
pub(crate) async fn no_such_method(method: http::Method, uri: http::Uri) -> Failure {
    Failure::new(Code::MethodNotAllowed, format!("{} does not support the method {method}", uri.path()))
}

#[cfg(test)]
mod tests {
    use bellwether_store::StoreError;

    use super::*;

    #[test]
    fn what_was_made_is_told_from_what_was_replaced() {
        let status = |is_new| SetResponse { is_new, value: () }.into_response().status();
        assert_eq!((status(true), status(false)), (StatusCode::CREATED, StatusCode::OK));
    }

    #[test]
    fn a_full_disk_is_said_as_such_with_its_place_and_is_never_a_no() {
        let full = StoreError::DiskFull { place: "/var/lib/bellwether".to_owned() };
        let Failure(problem) = OpError::from(CommitError::Store(full)).into();
        assert_eq!((problem.status, problem.code), (503, Code::Store));
        assert!(problem.detail.contains("/var/lib/bellwether: no space is left"), "{}", problem.detail);
        assert_eq!(problem.hint.as_deref(), Some("nothing was changed; try again"));
        assert!(problem.retry_after_ms.is_some());
    }

    #[test]
    fn a_store_that_does_not_answer_is_never_not_found() {
        for error in [StoreError::Closed, StoreError::Broken { reason: "a sync failed".to_owned() }] {
            let Failure(problem) = CommitError::Store(error).into();
            assert_eq!((problem.status, problem.code), (503, Code::Store));
        }
    }

    #[test]
    fn what_may_have_been_done_is_not_called_undone() {
        for error in [
            StoreError::Unknown { reason: "no answer".to_owned() },
            StoreError::Broken { reason: "a sync failed".to_owned() },
        ] {
            let Failure(problem) = CommitError::Store(error).into();
            assert!(problem.hint.as_deref().is_some_and(|hint| hint.contains("look before repeating it")));
        }
    }
}
