//! Errors as they travel: RFC 9457 problem details with a stable code, a hint and a place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not answered with what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Problem {
    /// The HTTP status, 400 to 599.
    pub status: u16,
    /// What kind of problem; never changes its meaning.
    pub code: Code,
    /// What cannot be done and why, for a person.
    pub detail: String,
    /// The next thing to try, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When to try again, in milliseconds, if trying again can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// What kind of problem. Clients decide by this, never by the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request does not parse, or a value in it is not allowed.
    Invalid,
    /// No valid token or certificate was shown.
    Unauthenticated,
    /// Known, but without the right.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// The path does not support the method; the header `Allow` lists those that it supports.
    MethodNotAllowed,
    /// There is already such a thing.
    Exists,
    /// The request makes no sense in the present state.
    Refused,
    /// Somebody else changed it first.
    Conflict,
    /// The body is larger than allowed.
    TooLarge,
    /// The join token is used up, expired or unknown.
    JoinToken,
    /// It took too long.
    Timeout,
    /// More of that kind is under way than the server takes at once; nothing was changed.
    Busy,
    /// The store cannot be written or read right now; nothing was changed.
    Store,
    /// The server's own fault.
    Internal,
}

impl Code {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
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
    /// The HTTP status it travels with.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthenticated => 401,
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
