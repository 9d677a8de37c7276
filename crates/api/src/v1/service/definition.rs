//! A service as a machine's own files and programs define it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::v1::registrations::CheckStatus;
use crate::word::words;

words! {
    /// The status of a service of this machine, as its agent knows it.
    LocalServiceStatus {
        /// Every check passes, or there is none.
        Passing = "passing",
        /// A check warns and none fails: the service is functional, but needs attention.
        Warning = "warning",
        /// At least one check fails, or has no result yet.
        Failing = "failing",
        /// Not registered yet: the static part of its entity has not succeeded here.
        Held = "held",
    }
}

/// A service that is offered on this machine, and how one tells that it serves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceDefinition {
    /// The service, a DNS label.
    pub name: String,
    /// Which one among those of this machine; the service's name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Where it is reached; at the machine's own addresses if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Only at the machine's addresses on this interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What its like is told apart by, at most 64.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Whatever its users want to know besides, at most 64 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// The entity it belongs to: it is registered once that entity's static part was done here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// What must be there before it is said to serve: `db`, `2 of db` or `1 addressable of db`, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// How one tells that it serves; without any it always does.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "check")]
    pub checks: Vec<CheckDefinition>,
}

/// One way to tell that a service serves: one of `exec`, `http`, `tcp`, `ttl`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckDefinition {
    /// Its name, a DNS label.
    pub name: String,
    /// A command, no shell; exit code 0 passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Vec<String>>,
    /// The exit code of `exec` that warns: the service serves, but somebody should look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning_exit: Option<i32>,
    /// An address to GET without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The status of `http` that passes; any from 200 to 299 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `host:port` that accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// The program says so itself, at least this often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// How often it is asked; `10s` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// How long an answer may take; `5s` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Failures in a row before it fails; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<u32>,
    /// Passes in a row before it passes; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<u32>,
}

/// What a program says of itself, for a check with `ttl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TtlUpdate {
    /// The result to record for the check.
    pub status: CheckStatus,
    /// One line of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A service of this machine, as its agent has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LocalService {
    /// What it is.
    pub definition: ServiceDefinition,
    /// Where that was said: a file, or `registered`.
    pub source: String,
    /// The result of its checks, or `held`.
    pub status: LocalServiceStatus,
    /// Why it is not simply passing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl From<CheckStatus> for LocalServiceStatus {
    fn from(from: CheckStatus) -> Self {
        match from {
            CheckStatus::Passing => Self::Passing,
            CheckStatus::Warning => Self::Warning,
            CheckStatus::Failing => Self::Failing,
        }
    }
}
