//! Members of ensembles that a node has and that are not recorded.

use bellwether_core::records::unrecorded as core;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// A member that a node has without being ordered to, as its agent reports it and as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedUnrecorded {
    /// Number of the member.
    pub number: u64,
    /// Identity of its ensemble.
    pub identity: String,
    /// Whether its program runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs: bool,
    /// The IP address of its node at which others reach it.
    pub address: String,
    /// Since when it is reported, in milliseconds since the Unix epoch, by the server's clock; what an agent sends is ignored.
    #[serde(default)]
    pub since_ms: u64,
}

/// A member of an ensemble that a node has, and that is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UnrecordedMember {
    /// Number of the member.
    pub number: u64,
    /// Whether its program runs.
    pub runs: bool,
    /// Since when it is reported, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// What it is, in one line that fits after its name.
    pub message: String,
}

impl From<&core::UnrecordedMember> for ReportedUnrecorded {
    fn from(from: &core::UnrecordedMember) -> Self {
        Self {
            number: from.number.get(),
            identity: from.identity.clone(),
            runs: from.runs,
            address: from.address.to_string(),
            since_ms: from.since.as_millis(),
        }
    }
}

impl TryFrom<ReportedUnrecorded> for core::UnrecordedMember {
    type Error = ShapeError;
    fn try_from(from: ReportedUnrecorded) -> Result<Self, ShapeError> {
        Ok(Self {
            number: MemberNumber::new(from.number),
            identity: from.identity,
            runs: from.runs,
            address: read("address", &from.address)?,
            since: Timestamp::from_millis(from.since_ms),
        })
    }
}

impl From<&core::UnrecordedMember> for UnrecordedMember {
    fn from(from: &core::UnrecordedMember) -> Self {
        Self {
            number: from.number.get(),
            runs: from.runs,
            since_ms: from.since.as_millis(),
            message: from.line(),
        }
    }
}
