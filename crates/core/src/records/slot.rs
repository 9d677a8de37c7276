//! Slots: semaphores that limit how many holders do something at once, such as reboot. Written by operations,
//! by acquire and release requests, and by the decider that ends expired holds, each computed by
//! `decide::slots` and committed only if the revision it was computed from is unchanged.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::words::counter::FenceNumber;
use crate::words::label::Labels;
use crate::words::name::{Actor, HolderName, SlotName};
use crate::words::time::{Span, Timestamp};

/// Default capacity.
pub const CAPACITY: u32 = 1;

/// Largest capacity: the record stays small enough for one write.
pub const MAX_CAPACITY: u32 = 1_000;

/// Default duration of a hold: longer than a machine takes to reboot, and short enough that a machine which
/// never does blocks the others for an hour only.
pub const LEASE: Span = Span::from_secs(60 * 60);

/// A semaphore: a capacity and its present holders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Name of the slot, unique in its namespace.
    pub name: SlotName,
    /// Most holders at once; with 0 nobody can acquire it.
    pub capacity: u32,
    /// Duration of a hold before it expires.
    pub lease: Span,
    /// Whether a person set capacity and lease, if only to their defaults: the slot then exists while nobody
    /// holds it.
    pub configured: bool,
    /// Fencing number of the last acquisition; it only grows, across releases and restarts.
    pub fence: FenceNumber,
    /// The present holders. More than `capacity` only if it was reduced while they held the slot.
    pub holders: BTreeMap<HolderName, Holder>,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

/// How many may hold a slot, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLimits {
    /// Most holders at once; with 0 nobody can acquire it.
    pub capacity: u32,
    /// Duration of a hold before it expires.
    pub lease: Span,
}

/// One hold of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Fencing number of this hold: larger than that of every earlier one.
    pub fence: FenceNumber,
    /// Start of the hold, by the server's clock.
    pub since: Timestamp,
    /// Time the hold expires, by the server's clock.
    pub ends: Timestamp,
    /// The token that acquired it.
    pub by: Actor,
    /// The reason given by the holder.
    pub reason: String,
}

impl Slot {
    /// A slot with default settings and no holders.
    #[must_use]
    pub fn fresh(name: SlotName) -> Self {
        let (fence, labels) = (FenceNumber::ZERO, Labels::default());
        let (capacity, lease, configured) = (CAPACITY, LEASE, false);
        Self { name, capacity, lease, configured, fence, holders: BTreeMap::new(), labels }
    }

    /// Time at which the next hold expires.
    #[must_use]
    pub fn next_end(&self) -> Option<Timestamp> {
        self.holders.values().map(|holder| holder.ends).min()
    }

    /// Whether it has no holders, and nobody set it or its labels.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_default = !self.configured && self.capacity == CAPACITY && self.lease == LEASE;
        is_default && self.holders.is_empty() && self.labels.is_empty()
    }

    /// Whether the record holds no information, not even a fencing number, and can be removed.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.is_idle() && self.fence == FenceNumber::ZERO
    }
}
