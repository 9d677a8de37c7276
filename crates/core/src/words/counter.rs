//! Numbers that only grow. Each has its own type so that a generation is never compared with a term.

use core::fmt;

use crate::words::time::Timestamp;

macro_rules! counters {
    ($($(#[$doc:meta])* $type:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(u64);

        impl $type {
            /// Zero: before the first.
            pub const ZERO: Self = Self(0);

            /// The counter with this value.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The value.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The next one; saturates.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }

            /// The next one in an epoch: above it, too. Saturates.
            #[must_use]
            pub const fn next_in(self, epoch: Epoch) -> Self {
                if self.0 < epoch.0 { Self(epoch.0).next() } else { self.next() }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

counters! {
    /// What a restore puts the numbers above that were issued before it, and perhaps after the backup: every number that the fleet
    /// compares with one that it knows is issued above it. Zero before the first restore.
    Epoch;
    /// The store's number of commits at a record's last write; zero means "not written".
    Revision;
    /// A revision, counted on over all stores that the records were in: what leaves the control plane, to be compared later.
    LogPosition;
    /// Number of a node's order.
    Generation;
    /// Number of a change of the certificate authorities; zero while there is the founding one alone.
    AuthoritiesVersion;
    /// Number of a member of an ensemble, from 1. No other member of that ensemble ever has it.
    MemberNumber;
    /// Number of a snapshot of an ensemble's data, from 1.
    SnapshotNumber;
    /// Number of a leadership. Every decider's write is guarded by it.
    Term;
    /// Position of an event in its namespace: 1, 2, 3 … without gaps.
    Sequence;
    /// Number of a rollout in its entity's history, from 1.
    RolloutNumber;
    /// Number of a request for an entity, from 1; the decider acts on each once.
    RequestNumber;
    /// A revision of a profile, from 1, without gaps; not the store's [`Revision`].
    ProfileRevisionNumber;
    /// Number of the last change of a node's params, from 1.
    NodeParamsRevision;
    /// Counts the changes of a secret, from 1.
    SecretRevision;
    /// Counts the changes of a cluster, from 1.
    ClusterRevision;
    /// Position of a cluster among those of its namespace: a new one has a larger number than all before.
    ClusterNumber;
    /// Counts the changes of a saved filter, from 1.
    FilterRevision;
    /// Counts the changes of a schedule, from 1.
    ScheduleRevision;
    /// Counts the changes of a reaction, from 1.
    ReactionRevision;
    /// Counts the changes of a sink, from 1.
    SinkRevision;
    /// Counts the changes of an ensemble, from 1.
    EnsembleRevision;
    /// Number of a rescan of a node's facts, from 1; zero before the first.
    RescanNumber;
    /// Fencing number of a slot or of a role in a cluster: each acquisition gets a larger one than all before.
    FenceNumber;
    /// Number of a target's assignment, from 1; reports that answer an older one are ignored.
    AssignmentNumber;
}

impl Epoch {
    /// Epochs in a millisecond since 1970: the numbers of one stay below the next while they grow by less than a million a second.
    pub const PER_MILLI: u64 = 1_024;

    /// When it began; 1970 before the first restore.
    #[must_use]
    pub const fn began(self) -> Timestamp {
        Timestamp::from_millis(self.0 / Self::PER_MILLI)
    }
}
