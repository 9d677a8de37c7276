//! What an order says of a node's member of an ensemble.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::records::member as core;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::adoption::AdoptionOrder;
use super::osd_orders::StoreOsdsOrder;
use super::passwords;
use super::replication::ReplicationOrder;
use super::restore::RestoreSpec;
use super::service::ServiceAgentSpec;
use super::snapshots::SnapshotOrder;
use crate::shape::ShapeError;
use crate::word::words;

words! {
    /// What is to become of a member.
    MemberTask {
        /// Its directory is made, and what it needs is looked for; nothing is started.
        Prepare = "prepare",
        /// It runs; without data, it starts as the first of its ensemble.
        First = "first",
        /// It runs; without data, it starts with the members in `join`.
        Join = "join",
        /// It runs, and only with the data that it has.
        Again = "again",
        /// It is stopped, and its directory is set aside.
        Leave = "leave",
    }
}

words! {
    /// What is changed in a store.
    MembershipAction {
        /// A member is added that does not vote yet.
        Add = "add",
        /// A member that has caught up is made one that votes.
        Promote = "promote",
        /// Another member leads.
        Transfer = "transfer",
        /// A member is removed.
        Remove = "remove",
        /// A member that is not of the ensemble is removed.
        RemoveForeign = "remove_foreign",
    }
}

/// What a node is to do for the member that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemberOrder {
    /// Number of the member.
    pub number: u64,
    /// Identity of the ensemble: another one of the same name has another.
    pub identity: String,
    /// The service agent with its settings.
    pub service: ServiceAgentSpec,
    /// What is to become of the member.
    pub task: MemberTask,
    /// With `prepare` and `first`: the snapshot that it gets its data from; absent if it begins without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSpec>,
    /// The store that something else founded, if it was adopted; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<AdoptionOrder>,
    /// With `join`: the members that the store named when it was added, by number their peer URLs, with its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub join: BTreeMap<u64, String>,
    /// What the member does in the store about another one; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<MembershipChange>,
    /// What the member is to be, where one is the primary that replicas follow; absent where members vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationOrder>,
    /// Whether it tells of its position at each look, also while that changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_position: bool,
    /// The passwords of clients, without their values: by secret, which of its values it is; absent if clients need none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passwords: BTreeMap<String, String>,
    /// Numbers of the other members that may replicate from it; absent where members vote.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub peers: BTreeSet<u64>,
    /// What the node does about snapshots of the ensemble's data.
    #[serde(default, skip_serializing_if = "SnapshotOrder::is_empty")]
    pub snapshots: SnapshotOrder,
    /// The restart that it makes, by the time at which it was asked for, in milliseconds since the Unix epoch; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_ms: Option<u64>,
    /// The defragmentation of its database that it makes, in the same way; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defragmentation_ms: Option<u64>,
    /// What it does about OSDs; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osds: Option<StoreOsdsOrder>,
}

/// A change of the members in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MembershipChange {
    /// What is changed.
    pub action: MembershipAction,
    /// Number of the member that is added or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u64>,
    /// The id that the store gave it; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Peer URL of the member that is added or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_url: Option<String>,
}

impl From<&core::MemberOrder> for MemberOrder {
    fn from(from: &core::MemberOrder) -> Self {
        let (task, join) = match &from.task {
            core::MemberTask::Prepare => (MemberTask::Prepare, None),
            core::MemberTask::Run(core::MemberStart::First) => (MemberTask::First, None),
            core::MemberTask::Run(core::MemberStart::Join(members)) => (MemberTask::Join, Some(members)),
            core::MemberTask::Run(core::MemberStart::Again) => (MemberTask::Again, None),
            core::MemberTask::Leave => (MemberTask::Leave, None),
        };
        let join = join.into_iter().flatten();
        Self {
            number: from.number.get(),
            identity: from.identity.clone(),
            service: (&from.service).into(),
            task,
            restore: from.restore.as_ref().map(Into::into),
            adoption: from.adoption.as_ref().map(Into::into),
            join: join.map(|(number, url)| (number.get(), url.clone())).collect(),
            change: from.change.as_ref().map(Into::into),
            replication: from.replication.as_ref().map(Into::into),
            tells_position: from.tells_position,
            passwords: passwords::shape(&from.passwords),
            peers: from.peers.iter().map(|number| number.get()).collect(),
            snapshots: (&from.snapshots).into(),
            restart_ms: from.restart.map(Timestamp::as_millis),
            defragmentation_ms: from.defragmentation.map(Timestamp::as_millis),
            osds: from.osds.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<MemberOrder> for core::MemberOrder {
    type Error = ShapeError;
    fn try_from(from: MemberOrder) -> Result<Self, ShapeError> {
        let join = from.join.into_iter().map(|(number, url)| (MemberNumber::new(number), url));
        let task = match from.task {
            MemberTask::Prepare => core::MemberTask::Prepare,
            MemberTask::First => core::MemberTask::Run(core::MemberStart::First),
            MemberTask::Join => core::MemberTask::Run(core::MemberStart::Join(join.collect())),
            MemberTask::Again => core::MemberTask::Run(core::MemberStart::Again),
            MemberTask::Leave => core::MemberTask::Leave,
        };
        Ok(Self {
            number: MemberNumber::new(from.number),
            identity: from.identity,
            service: from.service.read()?,
            task,
            restore: from.restore.map(TryInto::try_into).transpose()?,
            adoption: from.adoption.map(TryInto::try_into).transpose()?,
            change: from.change.map(TryInto::try_into).transpose()?,
            replication: from.replication.map(TryInto::try_into).transpose()?,
            tells_position: from.tells_position,
            passwords: passwords::read(from.passwords)?,
            peers: from.peers.into_iter().map(MemberNumber::new).collect(),
            snapshots: from.snapshots.into(),
            restart: from.restart_ms.map(Timestamp::from_millis),
            defragmentation: from.defragmentation_ms.map(Timestamp::from_millis),
            osds: from.osds.map(Into::into),
        })
    }
}

impl From<&core::MembershipChange> for MembershipChange {
    fn from(from: &core::MembershipChange) -> Self {
        match from {
            core::MembershipChange::Add { member, peer_url } => Self {
                action: MembershipAction::Add,
                member: Some(member.get()),
                id: None,
                peer_url: Some(peer_url.clone()),
            },
            core::MembershipChange::Promote { id } => {
                Self { action: MembershipAction::Promote, member: None, id: Some(id.clone()), peer_url: None }
            }
            core::MembershipChange::Transfer { id } => Self {
                action: MembershipAction::Transfer,
                member: None,
                id: Some(id.clone()),
                peer_url: None,
            },
            core::MembershipChange::RemoveForeign { id } => Self {
                action: MembershipAction::RemoveForeign,
                member: None,
                id: Some(id.clone()),
                peer_url: None,
            },
            core::MembershipChange::Remove { member, id, peer_url } => Self {
                action: MembershipAction::Remove,
                member: Some(member.get()),
                id: id.clone(),
                peer_url: Some(peer_url.clone()),
            },
        }
    }
}

impl TryFrom<MembershipChange> for core::MembershipChange {
    type Error = ShapeError;
    fn try_from(from: MembershipChange) -> Result<Self, ShapeError> {
        let missing = |field| ShapeError::at(field, "missing");
        let member = from.member.map(MemberNumber::new).ok_or_else(|| missing("member"));
        let url = from.peer_url.ok_or_else(|| missing("peer_url"));
        Ok(match from.action {
            MembershipAction::Add => Self::Add { member: member?, peer_url: url? },
            MembershipAction::Promote => Self::Promote { id: from.id.ok_or_else(|| missing("id"))? },
            MembershipAction::Transfer => Self::Transfer { id: from.id.ok_or_else(|| missing("id"))? },
            MembershipAction::RemoveForeign => {
                Self::RemoveForeign { id: from.id.ok_or_else(|| missing("id"))? }
            }
            MembershipAction::Remove => Self::Remove { member: member?, id: from.id, peer_url: url? },
        })
    }
}
