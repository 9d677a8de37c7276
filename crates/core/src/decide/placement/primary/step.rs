//! What an ensemble with a primary is to be, and its next change.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::ensemble::{Ensemble, EnsembleService, EnsembleSize, MIN_FAILOVER_AFTER, RedisSettings};
use crate::records::ensemble_members::RemovalReason;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};

/// How long after a failover there is no other, unless a person acknowledged it.
pub const QUIET: Span = Span::from_secs(60 * 60);

/// What an ensemble with a primary is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimarySpec {
    /// Its name, which orders the nodes for it.
    pub name: String,
    /// How many members, the primary among them.
    pub size: EnsembleSize,
    /// How long the primary is silent before another one takes over, and a replica before it is replaced.
    pub failover_after: Span,
    /// How long a new member may take until it answers.
    pub join_within: Span,
    /// How many replicas have a write before it counts as acknowledged.
    pub writes_needed: u32,
    /// How many of the replicas that stay have what one that leaves may have acknowledged. What was written while more replicas were needed than
    /// now, as before it was scaled to one member, is on these alone once the primary is gone.
    pub copies_needed: u32,
    /// How long after a failover there is no other, unless a person acknowledged it.
    pub quiet: Span,
    /// The members that others are to take the place of, because somebody asked for it: they may be silent for the shortest time alone.
    pub replaced: BTreeSet<MemberNumber>,
}

impl PrimarySpec {
    /// What the placement of an ensemble of Redis is decided on.
    #[must_use]
    pub fn of(ensemble: &Ensemble, redis: &RedisSettings, replaced: BTreeSet<MemberNumber>) -> Self {
        let asked =
            if let EnsembleService::Redis(asked) = &ensemble.service { asked.min_replicas } else { 0 };
        Self {
            name: ensemble.name.to_string(),
            size: ensemble.size,
            failover_after: ensemble.failover_after,
            join_within: ensemble.join_within,
            writes_needed: redis.min_replicas,
            copies_needed: redis.min_replicas.max(asked.min(1)),
            quiet: QUIET,
            replaced,
        }
    }

    /// How long a member may be silent.
    #[must_use]
    pub fn patience(&self, number: MemberNumber) -> Span {
        if self.replaced.contains(&number) {
            self.failover_after.min(MIN_FAILOVER_AFTER)
        } else {
            self.failover_after
        }
    }
}

/// The next change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrimaryStep {
    /// It is as it is to be.
    Rest,
    /// A new member begins on this node, as a replica of nobody.
    Add(NodeName),
    /// This member is removed.
    Remove(MemberNumber, RemovalReason),
    /// These members follow another one, or nobody any more.
    Follow(Vec<MemberNumber>, Option<MemberNumber>),
    /// This member becomes the primary.
    Promote(MemberNumber),
    /// The primary hands over to this member.
    HandOver(MemberNumber),
    /// The others let this member in no more: it is silent, and still gets data.
    Cut(MemberNumber),
    /// Nothing is changed now.
    Wait(PrimaryWait),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrimaryWait {
    /// This member begins.
    Joining(MemberNumber),
    /// This member may be back before it is replaced, or another one takes over.
    Silent {
        /// The member.
        member: MemberNumber,
        /// When that is.
        until: Timestamp,
    },
    /// The primary cannot write to its disk, and takes no writes.
    Blocked {
        /// The primary.
        member: MemberNumber,
        /// When it hands over, if that is still so; `None` if nobody can take over.
        until: Option<Timestamp>,
    },
    /// The primary is heard of, and takes no writes, as too few replicas are connected to it.
    Alone {
        /// The primary.
        member: MemberNumber,
        /// When another one takes over, if that is still so; `None` if nobody can.
        until: Option<Timestamp>,
    },
    /// This replica is silent and still gets data: it works, and its agent does not. It is not removed while it may acknowledge writes.
    LeaverStreams(MemberNumber),
    /// The primary is silent, and these still get data from it: it works, and its agent does not.
    StillStreams(Vec<MemberNumber>),
    /// Another one took over not long ago, which a person has not acknowledged.
    Quiet {
        /// Until when.
        until: Timestamp,
    },
    /// Too few replicas are reached: a write that was acknowledged may be on none of them.
    TooFewReached {
        /// Replicas that are reached.
        reached: usize,
        /// How many are needed.
        needed: usize,
        /// Those that do not answer.
        silent: Vec<MemberNumber>,
        /// Those that answer, and were started anew: what they have is not known.
        anew: Vec<MemberNumber>,
        /// Whether the primary answers, was started anew and has its data: it goes on once the others answer, too, and have no more.
        is_back: bool,
    },
    /// None of those that are reached has the history of the primary.
    NoCandidate,
    /// The primary was started anew, as others were, and these have more keys than it, or nobody knows how many: it has lost data.
    OthersHaveMore(Vec<MemberNumber>),
    /// The primary is to hand over, and no replica may take over.
    NoSuccessor(MemberNumber),
    /// A member is removed once as many others as a write needs have what it has.
    Copies(MemberNumber),
    /// A member leaves once this one, which stays, has the data of the primary.
    Syncing {
        /// The one that copies them.
        member: MemberNumber,
        /// The one that leaves.
        leaver: MemberNumber,
    },
    /// No node may have another member.
    NoRoom {
        /// How many are missing.
        missing: usize,
    },
}
