//! Definitions of services in a machine's own files and by its programs.

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
        /// Not registered: the control plane does not allow this node to register it.
        Refused = "refused",
    }
}

/// The definition of a service instance on this machine, with its checks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceDefinition {
    /// Service name, a DNS label.
    pub name: String,
    /// Name of the instance, unique on this machine; the service's name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Port; absent if the service has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Address; the machine's own addresses if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Interface: only the machine's addresses on it are registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Tags, at most 64.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Metadata for the users of the service, at most 64 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// Entity that the service belongs to: it is registered once the static part of that entity has succeeded
    /// on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Services that must be available before this one is functional, at most 64: `db`, `2 of db` or
    /// `1 addressable of db`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Checks; without any the service is always passing.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "check")]
    pub checks: Vec<CheckDefinition>,
}

/// A check of a service: exactly one of `exec`, `http`, `tcp` and `ttl`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckDefinition {
    /// Check name, a DNS label.
    pub name: String,
    /// Command and arguments, run without a shell; it passes with exit code 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Vec<String>>,
    /// Exit code of `exec` that means `warning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning_exit: Option<i32>,
    /// URL to GET, `http://` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// HTTP status that passes; any from 200 to 299 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `host:port` that must accept a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// Time to live: the program must send the status of this check at least this often, else it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Time between two runs of the check; `10s` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Time within which a run must finish; `5s` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Number of failures in a row after which the check fails; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<u32>,
    /// Number of passes in a row after which the check passes; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<u32>,
}

/// Request to set the status of a check with `ttl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TtlUpdate {
    /// The status of the check.
    pub status: CheckStatus,
    /// Note that is shown with the status, one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A service of this machine, as its agent knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LocalService {
    /// Definition of the service.
    pub definition: ServiceDefinition,
    /// Origin of the definition: path of a file, or `registered`.
    pub source: String,
    /// The result of its checks, or `held`, or `refused`.
    pub status: LocalServiceStatus,
    /// The reason for the status, one line; may be empty.
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
