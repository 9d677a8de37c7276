//! Members of ensembles: answers and stored records.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::decide::ensembles::failing::is_impaired;
use bellwether_core::decide::ensembles::health;
use bellwether_core::records::ensemble_members as core;
use bellwether_core::words::counter::{Epoch, MemberNumber};
use bellwether_core::words::name::NodeName;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::adoption::StoredAdoption;
use super::change::StoredChange;
use super::osds::StoredOsds;
use super::passwords::{self, PasswordState};
pub use super::removal::RemovalReason;
use super::replication::{MemberRole, StoredPrimary};
use super::requests::StoredRequests;
use super::restore::RestoreSpec;
use super::service::ServiceAgentSpec;
use super::snapshots::EnsembleSnapshots;
use crate::shape::{ShapeError, is_zero, map_from, read, try_map_from};
use crate::word::words;

words! {
    /// How far a member of an ensemble is.
    MemberPhase {
        /// Its node prepares it; the store does not know it.
        Preparing = "preparing",
        /// It is started as the first of the ensemble.
        Bootstrapping = "bootstrapping",
        /// It is being added to the store.
        Adding = "adding",
        /// The store knows it, and it catches up.
        Joining = "joining",
        /// It votes.
        Voting = "voting",
        /// It serves, as the primary or as a replica.
        Serving = "serving",
        /// It is being removed from the store.
        Leaving = "leaving",
        /// The store does not know it any more, and its node is to stop it.
        Removed = "removed",
    }
}

words! {
    /// Whether a member of an ensemble serves, as far as is known.
    MemberHealth {
        /// It serves.
        Working = "working",
        /// Its program works, and it does not do its part: a primary that takes no writes, or a replica that is not connected to it.
        Impaired = "impaired",
        /// Its program runs, and does not serve.
        Starting = "starting",
        /// Its program does not run, or does not serve any more.
        Failed = "failed",
        /// It can be started.
        Prepared = "prepared",
        /// Something is missing on its node.
        Refused = "refused",
        /// It is stopped, and its directory is set aside.
        Left = "left",
        /// Its node has not reported it.
        Unknown = "unknown",
        /// Its node is not heard of at the moment.
        Suspect = "suspect",
        /// Its node is unreachable.
        Unreachable = "unreachable",
        /// Its node was decommissioned.
        Decommissioned = "decommissioned",
    }
}

/// A member of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleMember {
    /// Number of the member, from 1. No other one of this ensemble ever has it.
    pub number: u64,
    /// Name of its node.
    pub node: String,
    /// How far it is.
    pub state: MemberPhase,
    /// Why it is removed; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it serves.
    pub health: MemberHealth,
    /// What it is by its own word, where one is the primary that replicas follow; absent where members vote, and if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<MemberRole>,
    /// Which passwords of clients it takes; absent where clients need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passwords: Option<PasswordState>,
    /// What its node says of that; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when it joins, votes or leaves, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// The id that the store gave it; absent until it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
    /// URL at which the other members reach it; absent until it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_url: Option<String>,
}

/// Stored record of the members of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEnsembleMembers {
    /// Name of the ensemble.
    pub ensemble: String,
    /// Identity of the ensemble, which its members keep beside their data.
    pub identity: String,
    /// The service agent that runs them, with the settings that they were created with.
    pub service: ServiceAgentSpec,
    /// Number of the member that was ordered last.
    pub last: u64,
    /// Whether a member has ever served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bootstrapped: bool,
    /// Since when a quorum of those that vote works, in milliseconds since the Unix epoch, by the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum_since_ms: Option<u64>,
    /// The snapshot from which the first of them gets its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSpec>,
    /// The store that was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<StoredAdoption>,
    /// The members, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<StoredMember>,
    /// The ids of the members that were removed last, the latest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_ids: Vec<String>,
    /// The nodes that refused a member of it lately, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<StoredRefusal>,
    /// The change that one of them makes in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<StoredChange>,
    /// Who is the primary, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<StoredPrimary>,
    /// The passwords of clients, without their values: by secret, which of its values it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passwords: BTreeMap<String, String>,
    /// What people asked to be done with them.
    #[serde(default, skip_serializing_if = "StoredRequests::is_empty")]
    pub requests: StoredRequests,
    /// Snapshots of their data.
    #[serde(default, skip_serializing_if = "EnsembleSnapshots::is_empty")]
    pub snapshots: EnsembleSnapshots,
    /// The OSDs of Ceph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osds: Option<StoredOsds>,
    /// The epoch of the installation in which it was known last that this is what there is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// What was seen since a restore and contradicts what is recorded.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub contradicted: BTreeSet<String>,
}

/// A node that refused a member, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRefusal {
    /// Name of the node.
    pub node: String,
    /// What its agent said.
    pub reason: String,
    /// Until when it gets no other member, in milliseconds since the Unix epoch, by the server's clock.
    pub until_ms: u64,
}

/// A member, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMember {
    /// Number of the member.
    pub number: u64,
    /// Name of its node.
    pub node: String,
    /// How far it is.
    pub phase: MemberPhase,
    /// The members that it starts with, if it joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts_with: Vec<StoredPeer>,
    /// Why it is removed, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<RemovalReason>,
    /// Since when it joins, votes or leaves, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// The id that the store gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
    /// URL at which the other members reach it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer_url: String,
}

/// A member that another one starts with, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPeer {
    /// Number of the member.
    pub number: u64,
    /// URL at which the others reach it.
    pub url: String,
}

impl From<&core::MemberPhase> for MemberPhase {
    fn from(from: &core::MemberPhase) -> Self {
        match from {
            core::MemberPhase::Preparing => Self::Preparing,
            core::MemberPhase::Bootstrapping => Self::Bootstrapping,
            core::MemberPhase::Adding => Self::Adding,
            core::MemberPhase::Joining(_) => Self::Joining,
            core::MemberPhase::Voting => Self::Voting,
            core::MemberPhase::Serving => Self::Serving,
            core::MemberPhase::Leaving(_) => Self::Leaving,
            core::MemberPhase::Removed(_) => Self::Removed,
        }
    }
}

impl EnsembleMember {
    /// The form of a member with its number.
    #[must_use]
    pub fn of(
        all: &core::EnsembleMembers,
        (number, member): (MemberNumber, &core::Member),
        health: health::MemberHealth<'_>,
    ) -> Self {
        let report = match health {
            health::MemberHealth::Reported(report) => Some(report),
            health::MemberHealth::Decommissioned
            | health::MemberHealth::Suspect
            | health::MemberHealth::Unreachable
            | health::MemberHealth::Unknown => None,
        };
        let message = report.map(|report| report.reason.clone());
        let replication = report.and_then(|report| report.replication.as_ref());
        let role =
            replication.map(|said| if said.is_primary { MemberRole::Primary } else { MemberRole::Replica });
        let serves = member.phase == core::MemberPhase::Serving;
        let is_impaired = serves && report.is_some_and(|report| is_impaired(all, report));
        let runs = matches!(member.phase, core::MemberPhase::Serving | core::MemberPhase::Joining(_));
        Self {
            role,
            passwords: runs.then(|| PasswordState::of(all, report)).flatten(),
            health: if is_impaired { MemberHealth::Impaired } else { health.into() },
            message: message.filter(|message| !message.is_empty()),
            number: number.get(),
            node: member.node.to_string(),
            state: (&member.phase).into(),
            reason: member.phase.removal().map(|reason| reason.describe().to_owned()),
            since_ms: member.since.as_millis(),
            store_id: member.store_id.clone(),
            peer_url: Some(member.peer_url.clone()).filter(|url| !url.is_empty()),
        }
    }
}

impl StoredMember {
    fn of(number: MemberNumber, member: &core::Member) -> Self {
        let starts_with = match &member.phase {
            core::MemberPhase::Joining(peers) => {
                peers.iter().map(|(of, url)| StoredPeer { number: of.get(), url: url.clone() }).collect()
            }
            core::MemberPhase::Preparing
            | core::MemberPhase::Bootstrapping
            | core::MemberPhase::Adding
            | core::MemberPhase::Voting
            | core::MemberPhase::Serving
            | core::MemberPhase::Leaving(_)
            | core::MemberPhase::Removed(_) => Vec::new(),
        };
        Self {
            number: number.get(),
            node: member.node.to_string(),
            phase: (&member.phase).into(),
            starts_with,
            removal: member.phase.removal().map(Into::into),
            since_ms: member.since.as_millis(),
            store_id: member.store_id.clone(),
            peer_url: member.peer_url.clone(),
        }
    }

    fn read(self) -> Result<core::Member, ShapeError> {
        let removal = || self.removal.map(Into::into).ok_or_else(|| ShapeError::at("removal", "missing"));
        let phase = match self.phase {
            MemberPhase::Preparing => core::MemberPhase::Preparing,
            MemberPhase::Bootstrapping => core::MemberPhase::Bootstrapping,
            MemberPhase::Adding => core::MemberPhase::Adding,
            MemberPhase::Joining => {
                let peers = self.starts_with.iter();
                let peers = peers.map(|peer| (MemberNumber::new(peer.number), peer.url.clone()));
                core::MemberPhase::Joining(map_from(peers))
            }
            MemberPhase::Voting => core::MemberPhase::Voting,
            MemberPhase::Serving => core::MemberPhase::Serving,
            MemberPhase::Leaving => core::MemberPhase::Leaving(removal()?),
            MemberPhase::Removed => core::MemberPhase::Removed(removal()?),
        };
        Ok(core::Member {
            node: read("node", &self.node)?,
            phase,
            since: Timestamp::from_millis(self.since_ms),
            store_id: self.store_id,
            peer_url: self.peer_url,
        })
    }
}

impl StoredRefusal {
    fn of((node, refused): (&NodeName, &core::RefusedMember)) -> Self {
        Self { node: node.to_string(), reason: refused.reason.clone(), until_ms: refused.until.as_millis() }
    }

    fn read(self) -> Result<(NodeName, core::RefusedMember), ShapeError> {
        let until = Timestamp::from_millis(self.until_ms);
        Ok((read("refused.node", &self.node)?, core::RefusedMember { reason: self.reason, until }))
    }
}

impl From<&core::EnsembleMembers> for StoredEnsembleMembers {
    fn from(from: &core::EnsembleMembers) -> Self {
        Self {
            ensemble: from.ensemble.to_string(),
            identity: from.identity.clone(),
            service: (&from.service).into(),
            last: from.last.get(),
            is_bootstrapped: from.is_bootstrapped,
            quorum_since_ms: from.quorum_since.map(Timestamp::as_millis),
            restore: from.restore.as_ref().map(Into::into),
            adoption: from.adoption.as_ref().map(Into::into),
            members: from.members.iter().map(|(number, member)| StoredMember::of(*number, member)).collect(),
            former_ids: from.former_ids.clone(),
            refused: from.refused.iter().map(StoredRefusal::of).collect(),
            change: from
                .change
                .as_ref()
                .map(|ordered| StoredChange { by: ordered.by.get(), change: (&ordered.change).into() }),
            lead: StoredPrimary::of(&from.lead),
            passwords: passwords::shape(&from.passwords),
            requests: (&from.requests).into(),
            snapshots: (&from.snapshots).into(),
            osds: StoredOsds::of(&from.osds),
            epoch: from.epoch.get(),
            contradicted: from.contradicted.clone(),
        }
    }
}

impl TryFrom<StoredEnsembleMembers> for core::EnsembleMembers {
    type Error = ShapeError;
    fn try_from(from: StoredEnsembleMembers) -> Result<Self, ShapeError> {
        let members = from.members.into_iter().map(|member| {
            let number = member.number;
            let read = member.read().map_err(|error| error.within(&format!("members.{number}")));
            Ok::<_, ShapeError>((MemberNumber::new(number), read?))
        });
        let refused = from.refused.into_iter().map(StoredRefusal::read);
        Ok(Self {
            ensemble: read("ensemble", &from.ensemble)?,
            identity: from.identity,
            service: from.service.read()?,
            last: MemberNumber::new(from.last),
            is_bootstrapped: from.is_bootstrapped,
            quorum_since: from.quorum_since_ms.map(Timestamp::from_millis),
            restore: from.restore.map(TryInto::try_into).transpose()?,
            adoption: from.adoption.map(TryInto::try_into).transpose()?,
            members: try_map_from(members)?,
            former_ids: from.former_ids,
            refused: try_map_from(refused)?,
            change: from.change.map(TryInto::try_into).transpose()?,
            osds: from.osds.map(StoredOsds::read).transpose()?.unwrap_or_default(),
            epoch: Epoch::new(from.epoch),
            contradicted: from.contradicted,
            lead: from.lead.map(Into::into).unwrap_or_default(),
            passwords: passwords::read(from.passwords)?,
            requests: from.requests.try_into()?,
            snapshots: from.snapshots.try_into()?,
        })
    }
}
