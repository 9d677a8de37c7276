//! Members of an ensemble on a node: what an order says of one, and what the node's agent reports of it.

mod replication;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

pub use self::replication::Replication;
use crate::records::ensemble::EnsembleService;
use crate::records::ensemble_adoption::AdoptionOrder;
use crate::records::ensemble_restore::RestoreSource;
use crate::records::ensemble_snapshots::{SnapshotContent, SnapshotOrder, SnapshotReport};
use crate::records::osd::{DeviceReport, MAX_NODE_DEVICES, OsdReport, StoreOsd, StoreOsdsOrder};
use crate::records::probes::{MAX_MEMBERS, MAX_REASON_BYTES, StoreMember};
use crate::records::unrecorded::UnrecordedMember;
use crate::words::counter::{Epoch, MemberNumber};
use crate::words::name::{DeviceSerial, EnsembleName, NodeName, SecretName};
use crate::words::time::Timestamp;

pub use super::member_state::MemberState;

/// Most members of ensembles on one node.
pub const MAX_NODE_MEMBERS: usize = 16;

/// Most bytes of all texts that are reported of a member.
pub const MAX_MEMBER_BYTES: usize = 32_768;

/// How a node says that it has a member of another ensemble, which was created under the name of the ordered one, or had it before.
pub const NAMESAKE: &str = "of another ensemble of this name";

/// The name of a member in its store, where the store knows members by names that are given to them.
#[must_use]
pub fn store_name(ensemble: &EnsembleName, number: MemberNumber) -> String {
    format!("{ensemble}-{number}")
}

/// Passwords of clients, without their values: by secret, which of its values it is.
pub type PasswordVersions = BTreeMap<SecretName, String>;

/// What a node is to do for the member that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberOrder {
    /// Number of the member.
    pub number: MemberNumber,
    /// Identity of the ensemble: another one of the same name has another. A data directory with another identity or number is set aside.
    pub identity: String,
    /// The service agent with its settings.
    pub service: EnsembleService,
    /// What is to become of the member.
    pub task: MemberTask,
    /// The snapshot that it gets its data from before it is started as the first of its ensemble; `None` if it begins without any.
    pub restore: Option<RestoreSource>,
    /// The store that something else founded, if it was adopted.
    pub adoption: Option<AdoptionOrder>,
    /// What the member does in the store about another one; `None` if nothing.
    pub change: Option<MembershipChange>,
    /// Whom it follows, where there is one primary that replicas follow; `None` where there is none.
    pub replication: Option<ReplicationOrder>,
    /// Whether it tells of its position at each look, also while that changes.
    pub tells_position: bool,
    /// The passwords of clients; none if clients need none.
    pub passwords: PasswordVersions,
    /// The other members that may replicate from it, where there is a primary.
    pub peers: BTreeSet<MemberNumber>,
    /// What the node does about snapshots of the ensemble's data.
    pub snapshots: SnapshotOrder,
    /// The restart that it makes, by the time at which it was asked for, unless it has made it; `None` if none.
    pub restart: Option<Timestamp>,
    /// The defragmentation of its database that it makes, in the same way.
    pub defragmentation: Option<Timestamp>,
    /// What it does about OSDs; `None` if nothing.
    pub osds: Option<StoreOsdsOrder>,
}

/// What a member is among those of which one is the primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicationOrder {
    /// The primary.
    Primary {
        /// Id of the history that it must have to become it, if it is not it yet; `None` for whatever it has.
        history: Option<String>,
    },
    /// The primary, until it has handed over.
    HandOver {
        /// URL of the member that takes over.
        to: String,
    },
    /// A replica.
    Follow {
        /// URL of the member that it follows.
        of: String,
    },
    /// A replica to which the primary is to hand over: it follows that until it is the primary itself.
    TakeOver {
        /// URL of the primary.
        of: String,
    },
    /// A replica of nobody: it takes no writes, and no data.
    Nobody,
}

/// What is to become of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberTask {
    /// Its directory is made, and what it needs is looked for; nothing is started.
    Prepare,
    /// It runs. Where it has data it is started with them, whatever it was started with first.
    Run(MemberStart),
    /// It is stopped, and its directory set aside: the store does not count it as a member any more.
    Leave,
}

/// How a member without data starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberStart {
    /// As the first of its ensemble. It is said once: a member that had data and lost them is not started.
    First,
    /// With the members that the store named when it was added, by number: their peer URLs, with its own.
    Join(BTreeMap<MemberNumber, String>),
    /// With the data that it has: without any it is not started.
    Again,
}

/// A change of the members in the store. A second time it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipChange {
    /// A member is added that does not vote yet, where the store has such, with this peer URL.
    Add {
        /// Number of the new member.
        member: MemberNumber,
        /// Its peer URL.
        peer_url: String,
    },
    /// A member that has caught up is made one that votes.
    Promote {
        /// The id that the store gave it.
        id: String,
    },
    /// Another member leads, unless this one does not lead any more.
    Transfer {
        /// The id that the store gave that one.
        id: String,
    },
    /// A member is removed, if the store has it. Then the members are read again, and if it is not among them, that is reported.
    Remove {
        /// Number of the member.
        member: MemberNumber,
        /// The id that the store gave it; `None` if it is not known, and the one with this peer URL is meant.
        id: Option<String>,
        /// Its peer URL.
        peer_url: String,
    },
    /// A member that is not of the ensemble is removed, after this one leads instead of it.
    RemoveForeign {
        /// The id that the store gave it.
        id: String,
    },
}

/// What a node's agent reports of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberReport {
    /// Number of the member.
    pub number: MemberNumber,
    /// Identity of its ensemble.
    pub identity: String,
    /// Its state.
    pub state: MemberState,
    /// Why it is not as the order says, or what it waits for; empty if it is well.
    pub reason: String,
    /// URL at which other members reach it; empty before it is prepared.
    pub peer_url: String,
    /// The members that the store has, as this one read them from a quorum; `None` if it could not.
    pub membership: Option<Membership>,
    /// The same, as read through another member because this one does not serve; only of a store that was adopted.
    pub outside: Option<Membership>,
    /// The member whose removal it was ordered last, once it has read from a quorum that the store does not have it. A list without it is
    /// no such evidence: it may have been read before that one was added.
    pub removed: Option<MemberNumber>,
    /// Whether its program has ended by itself, as its own node saw.
    pub has_ended: bool,
    /// What it says of its replication; `None` where members vote, and while it does not answer.
    pub replication: Option<Replication>,
    /// The passwords of clients that it takes; `None` where there are none such, and before it was given any.
    pub passwords: Option<PasswordVersions>,
    /// What became of the snapshot that it was ordered to take last; `None` before that is known.
    pub snapshot: Option<SnapshotReport>,
    /// The restart that it made last; `None` if none.
    pub restarted: Option<Timestamp>,
    /// The defragmentation that its agent has made last, since that was started; `None` if none.
    pub defragmented: Option<Timestamp>,
    /// Whether its database is being defragmented, so that it may not answer.
    pub defragments: bool,
    /// The OSDs that the store has, by their ids; `None` if it was not ordered to read them, or could not.
    pub osds: Option<BTreeMap<String, StoreOsd>>,
    /// The later member that its node has had, if it was ordered an earlier one; so it is after a restore of an older backup.
    pub later: Option<MemberNumber>,
}

impl MemberReport {
    /// The report of a member of which nothing is known but its state.
    #[must_use]
    pub const fn of(number: MemberNumber, identity: String, state: MemberState) -> Self {
        Self {
            number,
            identity,
            state,
            reason: String::new(),
            peer_url: String::new(),
            membership: None,
            outside: None,
            removed: None,
            has_ended: false,
            replication: None,
            passwords: None,
            snapshot: None,
            restarted: None,
            defragmented: None,
            defragments: false,
            osds: None,
            later: None,
        }
    }
}

/// What was reported of a member last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMember {
    /// The report.
    pub report: MemberReport,
    /// Since when it has this state, by the server's clock.
    pub since: Timestamp,
}

/// The members that a node has of ensembles. Written when the node's own agent reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMembers {
    /// Name of the node.
    pub node: NodeName,
    /// Number of that report among those of the node's agent; zero if it was not numbered.
    pub sequence: u64,
    /// By ensemble: its member.
    pub members: BTreeMap<EnsembleName, KnownMember>,
    /// By ensemble: its OSDs, by number.
    pub osds: BTreeMap<EnsembleName, BTreeMap<MemberNumber, OsdReport>>,
    /// The devices that the node offers.
    pub devices: BTreeMap<DeviceSerial, DeviceReport>,
    /// By ensemble: the member of it that the node has without an order.
    pub unrecorded: BTreeMap<EnsembleName, UnrecordedMember>,
    /// The epoch of the installation in which it was reported, which the server alone knows: of an earlier one it is from before a restore.
    pub epoch: Epoch,
}

/// A limit of what is reported of members that is exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersError {
    /// Where.
    pub place: String,
    /// What is allowed.
    pub reason: String,
}

impl NodeMembers {
    /// Whether a report that came before this one was made after it.
    #[must_use]
    pub const fn is_overtaken(&self, last: &Self) -> bool {
        self.sequence > 0 && self.sequence < last.sequence
    }

    /// Whether there may be reports between the last one and this one that are yet to come.
    #[must_use]
    pub const fn is_behind_a_gap(&self, last: &Self) -> bool {
        self.sequence > last.sequence.saturating_add(1)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// [`MembersError`] names the first place that exceeds one.
    pub fn check(&self) -> Result<(), MembersError> {
        for (place, count) in [("members", self.members.len()), ("unrecorded", self.unrecorded.len())] {
            if count > MAX_NODE_MEMBERS {
                let reason = format!("there are more than {MAX_NODE_MEMBERS}");
                return Err(MembersError { place: place.into(), reason });
            }
        }
        if let Some((name, _)) =
            self.unrecorded.iter().find(|(_, member)| member.identity.len() > MAX_REASON_BYTES)
        {
            let reason = format!("it is longer than {MAX_REASON_BYTES} bytes");
            return Err(MembersError { place: format!("unrecorded.{name}.identity"), reason });
        }
        for (name, member) in &self.members {
            let lists = member.report.membership.iter().chain(&member.report.outside);
            let listed = lists.flat_map(|membership| &membership.members);
            let count = listed.clone().count();
            let texts = listed.flat_map(|(id, entry)| {
                [Some(id), entry.name.as_ref(), entry.address.as_ref()].into_iter().flatten()
            });
            let own = [&member.report.identity, &member.report.reason, &member.report.peer_url];
            let replication = member.report.replication.iter().flat_map(Replication::texts);
            let snapshot = member.report.snapshot.iter().map(|snapshot| match &snapshot.outcome {
                Ok(SnapshotContent { sha256: text, .. }) | Err(text) => text,
            });
            let osds = member.report.osds.iter().flatten().map(|(id, _)| id);
            let passwords = member.report.passwords.iter().flatten();
            let names: usize = passwords.map(|(name, version)| name.as_str().len() + version.len()).sum();
            let texts = texts.chain(own).chain(replication).chain(snapshot).chain(osds);
            let bytes = names + texts.map(String::len).sum::<usize>();
            if count > MAX_MEMBERS || bytes > MAX_MEMBER_BYTES {
                let reason = format!(
                    "more than {MAX_MEMBERS} members, or more than {MAX_MEMBER_BYTES} bytes of texts"
                );
                return Err(MembersError { place: format!("members.{name}"), reason });
            }
        }
        self.check_devices()
    }

    fn check_devices(&self) -> Result<(), MembersError> {
        let reports = || self.osds.values().flat_map(BTreeMap::values);
        if self.devices.len() > MAX_NODE_DEVICES || reports().count() > MAX_NODE_DEVICES {
            let reason = format!("there are more than {MAX_NODE_DEVICES}");
            let place = if self.devices.len() > MAX_NODE_DEVICES { "devices" } else { "osds" };
            return Err(MembersError { place: place.into(), reason });
        }
        let texts = reports().flat_map(|osd| [&osd.identity, &osd.reason]);
        let found = self.devices.values().flat_map(|device| device.used_by.iter().chain([&device.path]));
        match texts.chain(found).any(|text| text.len() > MAX_REASON_BYTES) {
            true => Err(MembersError {
                place: "devices".into(),
                reason: format!("a text of a device or an OSD is longer than {MAX_REASON_BYTES} bytes"),
            }),
            false => Ok(()),
        }
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
            && self.osds.is_empty()
            && self.devices.is_empty()
            && self.unrecorded.is_empty()
    }
}

impl Replication {
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.follows.iter().chain([&self.history, &self.run]).chain(&self.former).chain(&self.replicas)
    }
}

/// The members that a store has, as one of them read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Id of the member that read them.
    pub own_id: String,
    /// Whether that one is the leader.
    pub is_leader: bool,
    /// Id of the store; `None` where it was not adopted.
    pub cluster_id: Option<String>,
    /// Id of the leader; `None` where the store was not adopted, and if it has none.
    pub leader: Option<String>,
    /// The members by id.
    pub members: BTreeMap<String, StoreMember>,
}
