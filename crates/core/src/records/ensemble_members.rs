//! The members of an ensemble, as they are to be. Written only by the decider of ensembles, before anybody acts on it; by operations that ask
//! for something to be done with them; and by the operation that deletes the ensemble: then they all leave, and their record goes with the last
//! of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ensemble::EnsembleService;
use super::ensemble_adoption::Adoption;
use super::ensemble_requests::MemberRequests;
use super::ensemble_restore::{RestoreSource, SnapshotName};
use super::ensemble_snapshots::{EnsembleSnapshots, SnapshotId};
use super::member::{MembershipChange, PasswordVersions};
use super::osd::EnsembleOsds;
use super::primary::PrimaryRecord;
use crate::words::counter::{Epoch, MemberNumber};
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
    /// The epoch of the installation in which it was known last that this is what there is: in a later one it may be of before a restore.
    pub epoch: Epoch,
    /// What was seen and says that what is recorded is older than its members, while it is held for that: one that was ended since may not show it
    /// any more.
    pub contradicted: BTreeSet<String>,
}

/// So many numbers may have been given within a second after a backup, and one in each second since.
const UNKNOWN_NUMBERS: u64 = 100;

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
            epoch: Epoch::ZERO,
            contradicted: BTreeSet::new(),
        }
    }

    /// Whether what is recorded may be older than its members, as after a restore, or is known to be: then its members are left as they are.
    #[must_use]
    pub fn is_held(&self, epoch: Epoch) -> bool {
        (self.epoch < epoch || !self.contradicted.is_empty()) && !self.is_empty()
    }

    /// What is recorded is what there is, in this epoch. Numbers that were given after the backup are not given again, also if another backup was
    /// restored meanwhile: so many as seconds have passed are left out, and all up to the highest one that is heard of.
    pub fn resume(&mut self, epoch: Epoch, highest: MemberNumber) {
        let changes = self.members.values().map(|member| member.since);
        let changes = changes.chain(self.osds.osds.values().map(|osd| osd.since)).chain([self.epoch.began()]);
        let since = changes.max().unwrap_or(Timestamp::EPOCH);
        let unknown = UNKNOWN_NUMBERS.saturating_add(epoch.began().since(since).as_millis() / 1_000);
        self.epoch = epoch;
        self.contradicted.clear();
        if !self.is_empty() {
            let after = |number: MemberNumber| MemberNumber::new(number.get().saturating_add(unknown));
            (self.last, self.osds.last) = (after(self.last).max(highest), after(self.osds.last));
        }
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
