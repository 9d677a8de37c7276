//! Errors as problem documents (RFC 9457). The only place that knows status codes.

use axum::response::{IntoResponse, Response};
use bellwether_api::media::{JSON, PARTIAL_JSON};
use bellwether_api::problem::{Code, InvalidText, MEDIA_TYPE, Problem};
use bellwether_api::shape::ShapeError;
use bellwether_core::access::Denied;
use bellwether_store::StoreError;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::ops::OpError;
use crate::records::commit::CommitError;

/// What to do about a right that is missing.
pub(super) const FORBIDDEN_HINT: &str =
    "`bellwether auth explain` lists your rights; ask an admin for a token with a role that has this one";

/// An error response.
#[derive(Debug)]
pub(crate) struct Failure(Problem);

impl Failure {
    /// An error with this code and detail.
    pub(crate) fn new(code: Code, detail: impl std::fmt::Display) -> Self {
        Self(Problem {
            status: code.status(),
            code,
            detail: detail.to_string(),
            hint: None,
            retry_after_ms: None,
            may_be_made: false,
            conflict: None,
            invalid: None,
        })
    }

    /// What is wrong.
    #[cfg(test)]
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Adds the next thing to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the time after which to retry.
    pub(crate) fn retry_after_ms(mut self, millis: u64) -> Self {
        self.0.retry_after_ms = Some(millis);
        self
    }
}

/// The response of a PUT: 201 for a new object, 200 for a changed one.
pub(crate) struct SetResponse<T> {
    pub(crate) is_new: bool,
    pub(crate) value: T,
}

impl<T: Serialize> IntoResponse for SetResponse<T> {
    fn into_response(self) -> Response {
        let status = if self.is_new { StatusCode::CREATED } else { StatusCode::OK };
        json(status, JSON, serde_json::to_vec(&self.value))
    }
}

/// A response of status 200 with this JSON.
pub(crate) fn json_response(encoded: serde_json::Result<Vec<u8>>) -> Response {
    json(StatusCode::OK, JSON, encoded)
}

/// The response with a page whose items have only some of their fields.
pub(crate) fn partial_response(encoded: serde_json::Result<Vec<u8>>) -> Response {
    json(StatusCode::OK, PARTIAL_JSON, encoded)
}

/// A response with this JSON. It is encoded to a `Vec`, as everywhere else: for another kind of buffer the encoding of every
/// shape would be compiled once more.
fn json(status: StatusCode, media: &'static str, written: serde_json::Result<Vec<u8>>) -> Response {
    match written {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, media)], bytes).into_response(),
        Err(error) => {
            Failure::new(Code::Internal, format!("cannot encode the response: {error}")).into_response()
        }
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
        // For layers that convert the error to another format.
        response.extensions_mut().insert(self.0);
        response
    }
}

impl From<ShapeError> for Failure {
    fn from(error: ShapeError) -> Self {
        let mut failure = Self::new(Code::Invalid, error.to_string());
        let position = error.position.and_then(|position| u64::try_from(position).ok());
        failure.0.invalid = Some(Box::new(InvalidText { place: error.place, position }));
        failure
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unknown => Self::new(Code::Unauthenticated, denied.to_string()),
            Denied::Forbidden { .. } => Self::new(Code::Forbidden, denied.to_string()),
        }
    }
}

/// How there is room in an etcd again. Deleting records does not help by itself: they are in its history, and releases before
/// 3.4.20 and 3.5.0 to 3.5.6 refuse most deletes while they are full.
const ROOM_IN_ETCD: &str =
    "make room in etcd: `etcdctl compact REVISION`, `etcdctl defrag`, then `etcdctl alarm disarm`";

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        let code = match &error {
            CommitError::Conflict { .. } => Code::Conflict,
            CommitError::NodeQuota { .. } => Code::Busy,
            CommitError::LostTerm | CommitError::Store(_) | CommitError::Closed => Code::Store,
            CommitError::Shape(_) | CommitError::TooLarge => Code::Internal,
        };
        let failure = Self::new(code, &error);
        if let CommitError::NodeQuota { retry_after_ms } = error {
            return failure.hint("nothing was changed; retry").retry_after_ms(retry_after_ms);
        }
        if let CommitError::Store(StoreError::DiskFull { place }) = &error {
            let hint = match place.starts_with("etcd at ") {
                true => format!("nothing was changed; {ROOM_IN_ETCD}, then retry"),
                false => format!("nothing was changed; free space in {place}, then retry"),
            };
            return failure.hint(hint).retry_after_ms(1_000);
        }
        if code == Code::Conflict {
            failure.hint("read it again, then repeat the change if it still applies")
        } else if error.may_be_made() {
            let mut failure =
                failure.hint("it may have been made: check before repeating it").retry_after_ms(1_000);
            failure.0.may_be_made = true;
            failure
        } else if code == Code::Store {
            failure.hint("nothing was changed; retry").retry_after_ms(1_000)
        } else {
            failure
        }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        let detail = error.to_string();
        match error {
            OpError::NotFound(_) => Self::new(Code::NotFound, detail),
            OpError::Exists { .. } => Self::new(Code::Exists, detail),
            OpError::Refused { hint, .. } => {
                let failure = Self::new(Code::Refused, detail);
                hint.into_iter().fold(failure, Self::hint)
            }
            OpError::Forbidden { .. } | OpError::Ungrantable { .. } => {
                Self::new(Code::Forbidden, detail).hint(FORBIDDEN_HINT)
            }
            OpError::Moved { hint, .. } => Self::new(Code::Conflict, detail).hint(hint),
            // What the request expects of the content is not a precondition of HTTP, hence not 412.
            OpError::Differs { conflict, hint, .. } => {
                let mut failure = Self::new(Code::Conflict, detail).hint(hint);
                (failure.0.status, failure.0.conflict) = (409, Some(Box::new(conflict)));
                failure
            }
            OpError::Invalid(error) => error.into(),
            OpError::JoinToken(_) => {
                Self::new(Code::JoinToken, detail).hint("create a new one: bellwether join-token create")
            }
            OpError::Pki(_) | OpError::Random(_) => Self::new(Code::Internal, detail),
            OpError::Keyring(error) => {
                let failure = Self::new(Code::Refused, detail);
                error.hint().into_iter().fold(failure, Self::hint)
            }
            OpError::Interrupted { error, .. } => {
                let mut failure = Self::from(*error);
                (failure.0.detail, failure.0.may_be_made) = (detail, true);
                failure.hint("apply the same files again: what was changed stays, and the rest is done")
            }
            OpError::Commit(error) => error.into(),
        }
    }
}

/// The error for an unknown path.
pub(crate) async fn unknown_path(uri: http::Uri) -> Failure {
    let hint = format!("the API is described at {}", bellwether_api::paths::OPENAPI);
    Failure::new(Code::NotFound, format!("cannot find {}", uri.path())).hint(hint)
}

/// The path does not support the method. The router adds `Allow` with those that it supports.
pub(crate) async fn unknown_method(method: http::Method, uri: http::Uri) -> Failure {
    Failure::new(Code::MethodNotAllowed, format!("{} does not support the method {method}", uri.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_and_replaced_objects_have_different_statuses() {
        let status = |is_new| SetResponse { is_new, value: () }.into_response().status();
        assert_eq!((status(true), status(false)), (StatusCode::CREATED, StatusCode::OK));
    }

    #[test]
    fn a_full_disk_is_reported_with_its_path_and_as_unavailable() {
        let etcd = StoreError::DiskFull { place: "etcd at http://10.0.0.1:2379".to_owned() };
        let failure = Failure::from(CommitError::Store(etcd));
        assert!(failure.0.hint.unwrap().contains("etcdctl alarm disarm"));
        let full = StoreError::DiskFull { place: "/var/lib/bellwether".to_owned() };
        let Failure(problem) = OpError::from(CommitError::Store(full)).into();
        assert_eq!((problem.status, problem.code), (503, Code::Store));
        assert!(problem.detail.contains("/var/lib/bellwether: no space is left"), "{}", problem.detail);
        assert_eq!(
            problem.hint.as_deref(),
            Some("nothing was changed; free space in /var/lib/bellwether, then retry")
        );
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
            assert!(problem.hint.as_deref().is_some_and(|hint| hint.contains("check before repeating it")));
        }
    }
}
