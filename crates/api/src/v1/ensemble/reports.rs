//! What a node's agent reports of the members that it has of ensembles.

use std::collections::BTreeMap;

use bellwether_core::records::member as core;
use bellwether_core::words::counter::{Epoch, MemberNumber};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use super::member_state::MemberState;
use super::osd_reports::{ReportedDevice, ReportedOsds, StoreOsd, reported};
use super::passwords;
use super::replication::Replication;
use super::snapshots::SnapshotReport;
use super::unrecorded::ReportedUnrecorded;
use crate::shape::{ShapeError, is_zero, map_from, read, try_map_from};
use crate::v1::probes::StoreMember;

/// The members that a node has of ensembles, as its agent reports them and as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeMembers {
    /// Name of the node.
    pub node: String,
    /// Number of the report among those of the node's agent, from 1; 0 if it is not numbered.
    #[serde(default)]
    pub sequence: u64,
    /// By ensemble: its member.
    pub members: BTreeMap<String, ReportedMember>,
    /// By ensemble: its OSDs, by number; absent if the node has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub osds: ReportedOsds,
    /// By serial number: the devices that the node offers; absent if it offers none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, ReportedDevice>,
    /// By ensemble: the member of it that the node has without being ordered to; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unrecorded: BTreeMap<String, ReportedUnrecorded>,
    /// The epoch of the installation in which it was reported; what a node sends is not used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// Generation of the order that the agent follows; it is not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: u64,
}

/// A member, as its node's agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedMember {
    /// Number of the member.
    pub number: u64,
    /// Identity of its ensemble.
    pub identity: String,
    /// Its state.
    pub state: MemberState,
    /// Since when it has this state, in milliseconds since the Unix epoch, by the server's clock; what an agent sends is ignored.
    #[serde(default)]
    pub since_ms: u64,
    /// Why it is not as the order says, or what it waits for, in one line of at most 512 bytes; empty if it is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// URL at which other members reach it; empty before it is prepared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer_url: String,
    /// The members that the store has, as this one read them from a quorum; absent if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    /// The same, as read through another member because this one does not serve; only of a store that was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Membership>,
    /// Number of the member whose removal it was ordered last, once it has read from a quorum that the store does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// Whether its program has ended by itself, as its own node saw.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended: bool,
    /// What it says of its replication; absent where members vote, and while it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<Replication>,
    /// The passwords of clients that it takes, without their values: by secret, which of its values it is. Absent where there are none such, and
    /// before it was given any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passwords: Option<BTreeMap<String, String>>,
    /// What became of the snapshot that it was ordered to take last; absent before that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotReport>,
    /// The restart that it made last, by the time at which it was asked for, in milliseconds since the Unix epoch; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_ms: Option<u64>,
    /// The defragmentation that its agent has made last, in the same way; absent if none since the agent was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defragmented_ms: Option<u64>,
    /// Whether its database is being defragmented, so that it may not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defragments: bool,
    /// The OSDs that the store has, by their ids; absent if it was not ordered to read them, or could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osds: Option<BTreeMap<String, StoreOsd>>,
    /// Number of the later member that its node has had, if it was ordered an earlier one; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<u64>,
}

/// The members that a store has, as one of them read them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    /// Id of the member that read them.
    pub own_id: String,
    /// Whether that one is the leader.
    #[serde(default)]
    pub is_leader: bool,
    /// Id of the store; absent where it was not adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Id of the leader; absent where the store was not adopted, and if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The members by id.
    pub members: BTreeMap<String, StoreMember>,
}

impl From<&core::NodeMembers> for NodeMembers {
    fn from(from: &core::NodeMembers) -> Self {
        let members = from.members.iter().map(|(name, known)| (name.to_string(), known.into()));
        Self {
            node: from.node.to_string(),
            sequence: from.sequence,
            members: members.collect(),
            osds: reported(&from.osds),
            devices: map_from(from.devices.iter().map(|(serial, of)| (serial.to_string(), of.into()))),
            unrecorded: map_from(from.unrecorded.iter().map(|(name, of)| (name.to_string(), of.into()))),
            epoch: from.epoch.get(),
            generation: 0,
        }
    }
}

impl From<&core::KnownMember> for ReportedMember {
    fn from(from: &core::KnownMember) -> Self {
        Self { since_ms: from.since.as_millis(), ..Self::from(&from.report) }
    }
}

impl From<&core::MemberReport> for ReportedMember {
    fn from(from: &core::MemberReport) -> Self {
        Self {
            number: from.number.get(),
            identity: from.identity.clone(),
            state: from.state.into(),
            since_ms: 0,
            reason: from.reason.clone(),
            peer_url: from.peer_url.clone(),
            membership: from.membership.as_ref().map(Into::into),
            outside: from.outside.as_ref().map(Into::into),
            removed: from.removed.map(MemberNumber::get),
            has_ended: from.has_ended,
            replication: from.replication.as_ref().map(Into::into),
            passwords: from.passwords.as_ref().map(passwords::shape),
            snapshot: from.snapshot.as_ref().map(Into::into),
            restarted_ms: from.restarted.map(Timestamp::as_millis),
            defragmented_ms: from.defragmented.map(Timestamp::as_millis),
            defragments: from.defragments,
            osds: from
                .osds
                .as_ref()
                .map(|osds| map_from(osds.iter().map(|(id, osd)| (id.clone(), osd.into())))),
            later: from.later.map(MemberNumber::get),
        }
    }
}

impl From<&core::Membership> for Membership {
    fn from(from: &core::Membership) -> Self {
        Self {
            own_id: from.own_id.clone(),
            is_leader: from.is_leader,
            cluster_id: from.cluster_id.clone(),
            leader: from.leader.clone(),
            members: from.members.iter().map(|(id, member)| (id.clone(), member.into())).collect(),
        }
    }
}

impl From<Membership> for core::Membership {
    fn from(from: Membership) -> Self {
        Self {
            own_id: from.own_id,
            is_leader: from.is_leader,
            cluster_id: from.cluster_id,
            leader: from.leader,
            members: from.members.into_iter().map(|(id, member)| (id, member.into())).collect(),
        }
    }
}

impl TryFrom<ReportedMember> for core::KnownMember {
    type Error = ShapeError;
    fn try_from(from: ReportedMember) -> Result<Self, ShapeError> {
        let report = core::MemberReport {
            number: MemberNumber::new(from.number),
            identity: from.identity,
            state: from.state.into(),
            reason: from.reason,
            peer_url: from.peer_url,
            membership: from.membership.map(Into::into),
            outside: from.outside.map(Into::into),
            removed: from.removed.map(MemberNumber::new),
            has_ended: from.has_ended,
            replication: from.replication.map(Into::into),
            passwords: from.passwords.map(passwords::read).transpose()?,
            snapshot: from.snapshot.map(Into::into),
            restarted: from.restarted_ms.map(Timestamp::from_millis),
            defragmented: from.defragmented_ms.map(Timestamp::from_millis),
            defragments: from.defragments,
            osds: from.osds.map(|osds| map_from(osds.into_iter().map(|(id, osd)| (id, osd.into())))),
            later: from.later.map(MemberNumber::new),
        };
        Ok(Self { report, since: Timestamp::from_millis(from.since_ms) })
    }
}

impl TryFrom<NodeMembers> for core::NodeMembers {
    type Error = ShapeError;
    fn try_from(from: NodeMembers) -> Result<Self, ShapeError> {
        let members = from.members.into_iter().map(|(name, member)| {
            let place = format!("members.{name}");
            let member = core::KnownMember::try_from(member).map_err(|error| error.within(&place))?;
            Ok((read(&place, &name)?, member))
        });
        let members = Self {
            node: read("node", &from.node)?,
            sequence: from.sequence,
            members: members.collect::<Result<_, ShapeError>>()?,
            osds: try_map_from(from.osds.into_iter().map(|(name, osds)| {
                let osds = osds.into_iter().map(|(number, osd)| (MemberNumber::new(number), osd.into()));
                Ok((read(&format!("osds.{name}"), &name)?, map_from(osds)))
            }))?,
            devices: try_map_from(
                from.devices
                    .into_iter()
                    .map(|(serial, of)| Ok((read(&format!("devices.{serial}"), &serial)?, of.into()))),
            )?,
            unrecorded: try_map_from(from.unrecorded.into_iter().map(|(name, of)| {
                let place = format!("unrecorded.{name}");
                let member = of.try_into().map_err(|error: ShapeError| error.within(&place))?;
                Ok((read(&place, &name)?, member))
            }))?,
            epoch: Epoch::new(from.epoch),
        };
        members.check().map_err(|error| ShapeError::at(&error.place, error.reason))?;
        Ok(members)
    }
}
