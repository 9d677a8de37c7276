//! The audit log: what changes were asked for, by whom, from where, and what became of them.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// What the server decided about a request.
    AuditOutcome {
        /// It was passed on.
        Allowed = "allowed",
        /// It was refused: unknown caller, or a right is missing.
        Denied = "denied",
    }
}

/// One request for a change, or one that was refused. It is on disk before the request takes effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AuditEntry {
    /// Number of the entry in the log of its server: 1, 2, 3 and so on.
    pub id: u64,
    /// Time of the request, in milliseconds since the Unix epoch, by the server's clock.
    pub time_ms: u64,
    /// Name of the server that received it.
    pub server: String,
    /// Who asked: a token name, `node/NAME`, or `anonymous`.
    pub actor: String,
    /// Roles of the token; absent without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Address and port of the client; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Method of the request.
    pub method: String,
    /// Path of the request, without its query.
    pub path: String,
    /// The right that it needs, such as `update:/pause node/web-1 in default`; absent where the body decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<String>,
    /// What the server decided.
    pub outcome: AuditOutcome,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of refused requests before this one that were not recorded, since there were too many in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<u64>,
    /// Status code of the answer; absent while there is none, and if the server stopped before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// A line of the log with the answer to an earlier entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditAnswer {
    /// Number of the entry.
    pub id: u64,
    /// Status code of the answer.
    pub status: u16,
}
