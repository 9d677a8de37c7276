//! Keys of an ensemble whose software knows members and clients by keys, such as Ceph. Only a node that has a member is given them.

use serde::{Deserialize, Serialize};

/// Request of a node for the keys of the member that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberKeysRequest {
    /// Number of the member.
    pub number: u64,
    /// Identity of the ensemble.
    pub identity: String,
}

/// The keys of a member. They are the same for all members, each time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemberKeys {
    /// Id of the store, a UUID.
    pub fsid: String,
    /// Key by which members know each other, as Ceph writes it.
    pub members: String,
    /// Key of the administrator, as Ceph writes it.
    pub administrator: String,
    /// Key that may register OSDs, as Ceph writes it.
    pub bootstrap: String,
}

/// Request of a node for the keys of an OSD that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OsdKeysRequest {
    /// Number of the OSD.
    pub osd: u64,
    /// Identity of the ensemble.
    pub identity: String,
}

/// The keys of an OSD, the same each time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OsdKeys {
    /// Id of the store, a UUID.
    pub fsid: String,
    /// Key that may register OSDs, as Ceph writes it.
    pub bootstrap: String,
    /// Key of the OSD itself, as Ceph writes it.
    pub key: String,
}

impl std::fmt::Debug for OsdKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OsdKeys").field("fsid", &self.fsid).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for MemberKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberKeys").field("fsid", &self.fsid).finish_non_exhaustive()
    }
}
