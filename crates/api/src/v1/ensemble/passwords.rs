//! The passwords of the clients of an ensemble. Only a node that has a member is given what it needs to check them, which is not the passwords themselves.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::decide::ensembles::passwords::is_current;
use bellwether_core::records::ensemble_members as core;
use bellwether_core::records::member::{MemberReport, PasswordVersions};
use serde::{Deserialize, Serialize};

use crate::shape::{self, ShapeError, map_from, try_map_from};
use crate::word::words;

words! {
    /// Which passwords of clients a member takes.
    PasswordState {
        /// Those that it is to take, and no others.
        Current = "current",
        /// Not yet those that it is to take.
        Outdated = "outdated",
        /// Nobody knows.
        Unknown = "unknown",
    }
}

/// Request of a node for what the member that it has of an ensemble needs to know its clients and the other members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberPasswordsRequest {
    /// Number of the member.
    pub number: u64,
    /// Identity of the ensemble.
    pub identity: String,
    /// The passwords of clients in its order: by secret, which of its values it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passwords: BTreeMap<String, String>,
    /// Numbers of the other members in its order, which may replicate from it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub peers: BTreeSet<u64>,
}

/// What a member needs to know its clients and the other members.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemberPasswords {
    /// Password by which its agent, and it itself at the other members, logs in. No other member has it; it is the same each time.
    pub own: String,
    /// The other members that were asked for: by number, the SHA-256 of the password by which each logs in, in hex.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<u64, String>,
    /// The passwords of clients that were asked for: by secret, the SHA-256 of its value, in hex.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clients: BTreeMap<String, String>,
}

impl std::fmt::Debug for MemberPasswords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberPasswords").field("clients", &self.clients.keys()).finish_non_exhaustive()
    }
}

impl PasswordState {
    /// Which passwords a member takes; `None` where clients need none, as far as is known.
    #[must_use]
    pub fn of(members: &core::EnsembleMembers, report: Option<&MemberReport>) -> Option<Self> {
        match is_current(members, report) {
            Some(true) if members.passwords.is_empty() => None,
            None if members.passwords.is_empty() => None,
            Some(true) => Some(Self::Current),
            Some(false) => Some(Self::Outdated),
            None => Some(Self::Unknown),
        }
    }
}

/// The form of passwords, without their values.
pub(crate) fn shape(from: &PasswordVersions) -> BTreeMap<String, String> {
    map_from(from.iter().map(|(name, version)| (name.to_string(), version.clone())))
}

/// The same, read.
///
/// # Errors
/// [`ShapeError`] at the first name that is none of a secret.
pub fn read(from: BTreeMap<String, String>) -> Result<PasswordVersions, ShapeError> {
    try_map_from(from.into_iter().map(|(name, version)| Ok((shape::read("passwords", &name)?, version))))
}
