//! Errors of the API: RFC 9457 problem details with a stable code and a hint.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What the detail of a conflict says of a report that came after a later one. Agents know by it that they are not the only ones who report.
pub const LATER_IS_KNOWN: &str = "a later one is known";

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Problem {
    /// The HTTP status, 400 to 599.
    pub status: u16,
    /// Stable code of the error; clients decide by it.
    pub code: Code,
    /// What cannot be done and why, for a person.
    pub detail: String,
    /// Hint for the next step, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Time after which a retry can succeed, in milliseconds; absent if a retry does not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the change may have been made although this is an error; absent if nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_made: bool,
    /// With `conflict`: the value that differs from the expected one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Box<ConflictingValue>>,
    /// With `invalid`: the parameter or field that cannot be read, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Box<InvalidText>>,
}

/// A text of a request that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct InvalidText {
    /// The query parameter, or the path of the field in the body, such as `filter` or `policy.batch`.
    pub place: String,
    /// Byte position of the fault in its value, from 0; absent if the value as a whole is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// A value that differs from the one that a change expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConflictingValue {
    /// Where it is: a JSON Pointer (RFC 6901) into the object, such as `/workers`.
    pub pointer: String,
    /// The value that is there; absent if there is none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<serde_json::Value>,
    /// Revision of the object, 0 if it does not exist.
    pub revision: u64,
}

/// Reads a member that is there, `null` included.
fn present<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(reader).map(Some)
}

/// Stable code of an error. Its meaning never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be parsed, or a value in it is not allowed.
    Invalid,
    /// The request has no valid token or certificate.
    Unauthenticated,
    /// The node whose certificate was sent was decommissioned.
    Decommissioned,
    /// The caller is authenticated, but lacks the right.
    Forbidden,
    /// There is no object of this name, or no such path.
    NotFound,
    /// The path does not support the method; the header `Allow` lists those that it supports.
    MethodNotAllowed,
    /// An object of this name already exists.
    Exists,
    /// The request is not possible in the present state.
    Refused,
    /// The object was changed concurrently, or its revision is not the one in the request.
    Conflict,
    /// The body is larger than 1 MiB; that of an apply, larger than 16 MiB.
    TooLarge,
    /// The join token is used up, expired, unknown, or for another name.
    JoinToken,
    /// The body did not arrive in time.
    Timeout,
    /// The server already processes as many requests of this kind as it permits; nothing was changed.
    Busy,
    /// The store cannot be read or written now; nothing was changed, unless `may_be_made` says otherwise.
    Store,
    /// A fault of the server.
    Internal,
}

impl Code {
    /// The code as it is written in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Decommissioned => "decommissioned",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Exists => "exists",
            Self::Refused => "refused",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::JoinToken => "join_token",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Store => "store",
            Self::Internal => "internal",
        }
    }
}

impl Code {
    /// The HTTP status of answers with this code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthenticated | Self::Decommissioned => 401,
            Self::Forbidden | Self::JoinToken => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Timeout => 408,
            Self::Exists | Self::Refused => 409,
            Self::Conflict => 412,
            Self::TooLarge => 413,
            Self::Busy => 429,
            Self::Internal => 500,
            Self::Store => 503,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}
