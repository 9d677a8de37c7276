//! The members of an ensemble, as they are to be. Written only by the decider of ensembles, before anybody acts on it; by operations that ask
//! for something to be done with them; and by the operation that deletes the ensemble: then they all leave, and their record goes with the last
//! of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ensemble::EnsembleService;
use super::ensemble_adoption::{Adoption, StoreEndpoint};
use super::ensemble_requests::{MemberRequests, RollingAction};
use super::ensemble_restore::{RestoreSource, SnapshotName};
use super::ensemble_snapshots::{EnsembleSnapshots, SnapshotId};
use super::member::{
    MemberOrder, MemberStart, MemberTask, MembershipChange, PasswordVersions, ReplicationOrder,
};
use super::osd::{EnsembleOsds, OsdsOrder};
use super::primary::PrimaryRecord;
use crate::words::counter::MemberNumber;
use crate::words::name::{EnsembleName, NodeName};
use crate::words::time::Timestamp;

/// The members of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsembleMembers {
    /// Name of the ensemble.
    pub ensemble: EnsembleName,
    /// Its identity, which its members keep beside their data: an ensemble of this name that is created later has another one.
    pub identity: String,
    /// The service agent that runs them, with the settings that they were created with.
    pub service: EnsembleService,
    /// Number of the member that was ordered last. It only grows.
    pub last: MemberNumber,
    /// Whether a member has ever served. From then on no member is started as the first, since it would have no data.
    pub is_bootstrapped: bool,
    /// Since when a quorum of those that vote works, or any where none votes, as far as is known; `None` while none does.
    pub quorum_since: Option<Timestamp>,
    /// The snapshot from which the first of them gets its data; `None` if it begins without any.
    pub restore: Option<RestoreSource>,
    /// The store that something else founded, if it was adopted.
    pub adoption: Option<Adoption>,
    /// The members by number.
    pub members: BTreeMap<MemberNumber, Member>,
    /// The ids that the store gave to the members that were removed last, the latest at the end: a list in which one stands is older than
    /// that, or has to be put right.
    pub former_ids: Vec<String>,
    /// The nodes that refused a member of it lately: they get no other one before their time.
    pub refused: BTreeMap<NodeName, RefusedMember>,
    /// The change that one of them makes in the store; `None` while there is none to make, or nobody to make it.
    pub change: Option<OrderedChange>,
    /// Who is the primary, where there is one.
    pub lead: PrimaryRecord,
    /// The passwords of clients; none if clients need none.
    pub passwords: PasswordVersions,
    /// What people asked to be done with them.
    pub requests: MemberRequests,
    /// Snapshots of their data.
    pub snapshots: EnsembleSnapshots,
    /// The OSDs of Ceph.
    pub osds: EnsembleOsds,
}

/// Why a node did not have a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMember {
    /// What its agent said.
    pub reason: String,
    /// Until when it gets no other one.
    pub until: Timestamp,
}

/// A change in the store, and who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedChange {
    /// The member that makes it.
    pub by: MemberNumber,
    /// The change.
    pub change: MembershipChange,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its node.
    pub node: NodeName,
    /// How far it is.
    pub phase: MemberPhase,
    /// Since when it joins, votes, or leaves.
    pub since: Timestamp,
    /// The id that the store gave it; `None` until it is known.
    pub store_id: Option<String>,
    /// URL at which the other members reach it; empty until it is known.
    pub peer_url: String,
}

/// How far a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberPhase {
    /// Its node prepares it, as the first of the ensemble or to join; the store does not know it.
    Preparing,
    /// It is started as the first of the ensemble.
    Bootstrapping,
    /// It is being added to the store.
    Adding,
    /// The store knows it. It is started with these members, and catches up.
    Joining(BTreeMap<MemberNumber, String>),
    /// It votes.
    Voting,
    /// It serves, as the primary or as a replica.
    Serving,
    /// It is being removed from the store.
    Leaving(RemovalReason),
    /// The store does not know it any more, and its node is to stop it.
    Removed(RemovalReason),
}

/// Why a member is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// It was silent for too long.
    Dead,
    /// Its node was decommissioned.
    Decommissioned,
    /// The store itself does not count it any more.
    NotCounted,
    /// It was not connected to the primary for too long.
    CutOff,
    /// There are more than are wanted.
    Surplus,
    /// Its node is drained, and another one has taken its place.
    Drained,
    /// It has not joined in time.
    NotJoined,
    /// Its node could not have it.
    Refused,
    /// A person asked for another one in its place.
    Replaced,
    /// Its ensemble was deleted.
    Deleted,
}

impl EnsembleMembers {
    /// An ensemble without members, created at this time.
    #[must_use]
    pub fn none(ensemble: EnsembleName, service: EnsembleService, now: Timestamp) -> Self {
        let identity = format!("{ensemble}-{:x}", now.as_millis());
        Self {
            ensemble,
            identity,
            service,
            last: MemberNumber::ZERO,
            is_bootstrapped: false,
            quorum_since: None,
            restore: None,
            adoption: None,
            members: BTreeMap::new(),
            former_ids: Vec::new(),
            refused: BTreeMap::new(),
            change: None,
            lead: PrimaryRecord::default(),
            passwords: PasswordVersions::new(),
            requests: MemberRequests::default(),
            snapshots: EnsembleSnapshots::default(),
            osds: EnsembleOsds::default(),
        }
    }

    /// What each node is to do for the member that it has.
    pub fn orders(&self) -> impl Iterator<Item = (&NodeName, MemberOrder)> {
        self.members.iter().map(|(number, member)| {
            let change = self.change.as_ref().filter(|change| change.by == *number);
            let order = MemberOrder {
                number: *number,
                identity: self.identity.clone(),
                service: self.service.clone(),
                task: self.task(member),
                restore: self.restore_of(member),
                adoption: self.adoption.as_ref().map(|adoption| adoption.order(self.endpoints())),
                change: change.map(|change| change.change.clone()),
                replication: self.replication(*number),
                tells_position: self.lead.tells_position,
                passwords: self.passwords.clone(),
                peers: self.peers_of(*number),
                snapshots: self.snapshots.order(*number, &member.node),
                restart: self.requests.ordered(*number, RollingAction::Restart),
                defragmentation: self.requests.ordered(*number, RollingAction::Defragment),
                osds: self.osds.of_reader(*number, &self.requests),
            };
            (&member.node, order)
        })
    }

    /// Where the members of an etcd without TLS that vote serve clients.
    fn endpoints(&self) -> impl Iterator<Item = StoreEndpoint> {
        let port = match &self.service {
            EnsembleService::Etcd(etcd) => Some(etcd.client_port),
            EnsembleService::Redis(_) | EnsembleService::Ceph(_) | EnsembleService::Independent(_) => None,
        };
        let voting = self.members.values().filter(|member| member.phase == MemberPhase::Voting);
        voting.filter_map(move |member| {
            let (host, _) = member.peer_url.rsplit_once(':')?;
            format!("{host}:{}", port?).parse().ok()
        })
    }

    /// The other members that may replicate from one: those that were removed, or are cut off, may not, whether they have heard of that or not.
    #[must_use]
    pub fn peers_of(&self, number: MemberNumber) -> BTreeSet<MemberNumber> {
        let EnsembleService::Redis(_) = self.service else { return BTreeSet::new() };
        let present =
            self.members.iter().filter(|(_, member)| !matches!(member.phase, MemberPhase::Removed(_)));
        let present = present.map(|(other, _)| *other).filter(|other| *other != number);
        present.filter(|other| !self.lead.cut.contains(other)).collect()
    }

    /// What each node is to do for the OSDs that it has.
    #[must_use]
    pub fn osd_orders(&self) -> BTreeMap<NodeName, OsdsOrder> {
        let voting = self.members.values().filter(|member| member.phase == MemberPhase::Voting);
        let monitors: Vec<String> = voting.map(|member| member.peer_url.clone()).collect();
        self.osds.orders((&self.identity, &monitors), &self.requests)
    }

    /// The snapshot that a member is founded from: the first one, until it serves.
    fn restore_of(&self, member: &Member) -> Option<RestoreSource> {
        let founds = matches!(member.phase, MemberPhase::Preparing | MemberPhase::Bootstrapping);
        self.restore.clone().filter(|_| founds && !self.is_bootstrapped)
    }

    /// What is to become of a member.
    fn task(&self, member: &Member) -> MemberTask {
        match (&member.phase, &self.service) {
            (MemberPhase::Preparing | MemberPhase::Adding, _) => MemberTask::Prepare,
            (MemberPhase::Bootstrapping, _) => MemberTask::Run(MemberStart::First),
            // Each begins as a replica of nobody, whether it has data or not.
            (
                MemberPhase::Joining(_) | MemberPhase::Serving,
                EnsembleService::Redis(_) | EnsembleService::Independent(_),
            ) => MemberTask::Run(MemberStart::First),
            (MemberPhase::Joining(initial), EnsembleService::Etcd(_) | EnsembleService::Ceph(_)) => {
                MemberTask::Run(MemberStart::Join(initial.clone()))
            }
            (MemberPhase::Voting | MemberPhase::Serving, _) => MemberTask::Run(MemberStart::Again),
            // It serves until the store does not count it any more; the first of an ensemble that never served has nobody to tell.
            (MemberPhase::Leaving(_), _) if self.has_store() => MemberTask::Run(MemberStart::Again),
            (MemberPhase::Leaving(_) | MemberPhase::Removed(_), _) => MemberTask::Leave,
        }
    }

    /// Whom a member follows, where there is a primary.
    fn replication(&self, number: MemberNumber) -> Option<ReplicationOrder> {
        let EnsembleService::Redis(_) = self.service else { return None };
        let url = |of: &MemberNumber| self.members.get(of).map(|member| member.peer_url.clone());
        if self.lead.primary == Some(number) {
            let is_due = self.lead.is_handover_known && self.lead.promotion.is_none();
            let to = self.lead.handover.as_ref().filter(|_| is_due).and_then(url);
            let promotion = self.lead.promotion.as_ref();
            let history =
                promotion.map_or_else(|| self.lead.history.clone(), |promotion| promotion.history.clone());
            return Some(
                to.map_or(ReplicationOrder::Primary { history }, |to| ReplicationOrder::HandOver { to }),
            );
        }
        let of = self.lead.follows.get(&number).and_then(url).filter(|url| !url.is_empty());
        let follows = |of| match self.lead.handover == Some(number) {
            true => ReplicationOrder::TakeOver { of },
            false => ReplicationOrder::Follow { of },
        };
        Some(of.map_or(ReplicationOrder::Nobody, follows))
    }

    /// Whether there is a store with members that can be told of a change: one that was adopted is there before any member serves.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.is_bootstrapped || self.adoption.is_some()
    }

    /// Whether there are no members and no OSDs, also none that leave.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.osds.osds.is_empty()
    }

    /// The name of a snapshot of it among those of all ensembles.
    #[must_use]
    pub fn snapshot_name(&self, id: SnapshotId) -> SnapshotName {
        SnapshotName { ensemble: self.ensemble.clone(), identity: self.identity.clone(), id }
    }

    /// The number of members that are not removed.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.members.values().filter(|member| !matches!(member.phase, MemberPhase::Removed(_))).count()
    }

    /// The member of a node.
    #[must_use]
    pub fn of_node(&self, node: &NodeName) -> Option<(MemberNumber, &Member)> {
        self.members.iter().find(|(_, member)| member.node == *node).map(|(number, member)| (*number, member))
    }
}

impl MemberPhase {
    /// Name of the phase.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Bootstrapping => "bootstrapping",
            Self::Adding => "adding",
            Self::Joining(_) => "joining",
            Self::Voting => "voting",
            Self::Serving => "serving",
            Self::Leaving(_) => "leaving",
            Self::Removed(_) => "removed",
        }
    }
}

impl MemberPhase {
    /// Why it is removed; `None` if it is not.
    #[must_use]
    pub const fn removal(&self) -> Option<RemovalReason> {
        match self {
            Self::Leaving(reason) | Self::Removed(reason) => Some(*reason),
            Self::Preparing
            | Self::Bootstrapping
            | Self::Adding
            | Self::Joining(_)
            | Self::Voting
            | Self::Serving => None,
        }
    }
}

impl RemovalReason {
    /// Name of the reason.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Decommissioned => "decommissioned",
            Self::NotCounted => "not_counted",
            Self::CutOff => "cut_off",
            Self::Surplus => "surplus",
            Self::Drained => "drained",
            Self::NotJoined => "not_joined",
            Self::Refused => "refused",
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
        }
    }

    /// The reason, in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Dead => "it did not work, or nobody heard of it, for too long",
            Self::Decommissioned => "its node was decommissioned",
            Self::NotCounted => "the store does not count it any more",
            Self::CutOff => "it was not connected to the primary for too long, while others were",
            Self::Surplus => "there are more members than are wanted",
            Self::Drained => "its node is drained",
            Self::NotJoined => "it did not join in time",
            Self::Refused => "its node cannot have it",
            Self::Replaced => "somebody asked for another one in its place",
            Self::Deleted => "the ensemble was deleted",
        }
    }
}
