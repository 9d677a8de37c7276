//! Slots: how many may do something at once, like reboot, and who does. Written by people's operations, by whoever takes and
//! gives back, and by the decider that ends what ran out, each as `decide::slots` has it and compared with the revision it
//! was decided on.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::words::counter::FenceNumber;
use crate::words::label::Labels;
use crate::words::name::{Actor, HolderName, SlotName};
use crate::words::time::{Span, Timestamp};

/// How many may hold a slot when nobody says otherwise: one.
pub const CAPACITY: u32 = 1;

/// Most that may hold one: the record stays well within one write.
pub const MAX_CAPACITY: u32 = 1_000;

/// How long one is held when nobody says otherwise: longer than a machine takes to come back, and short enough that one that
/// never does keeps the others waiting for an hour.
pub const LEASE: Span = Span::from_secs(60 * 60);

/// How many may do something at once, and who does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: SlotName,
    /// How many may hold it; with 0 nobody takes it.
    pub capacity: u32,
    /// How long each may hold it before it ends by itself.
    pub lease: Span,
    /// The number of the last time that somebody took it; it only grows, over releases and restarts.
    pub fence: FenceNumber,
    /// Who holds it. More than may, only while it holds fewer than it did when they took it.
    pub holders: BTreeMap<HolderName, Holder>,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

/// Somebody who holds a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The number of this holding: larger than that of any before.
    pub fence: FenceNumber,
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself.
    pub ends: Timestamp,
    /// Whose token was shown.
    pub by: Actor,
    /// What for, in their words.
    pub why: String,
}

impl Slot {
    /// A slot as it is when nobody has said anything about it.
    #[must_use]
    pub fn fresh(name: SlotName) -> Self {
        let (fence, labels) = (FenceNumber::ZERO, Labels::default());
        Self { name, capacity: CAPACITY, lease: LEASE, fence, holders: BTreeMap::new(), labels }
    }

    /// When the next of its holders runs out.
    #[must_use]
    pub fn next_end(&self) -> Option<Timestamp> {
        self.holders.values().map(|holder| holder.ends).min()
    }

    /// Whether nobody holds it, and nobody said anything of it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.capacity == CAPACITY && self.lease == LEASE && self.labels.is_empty()
    }

    /// Whether there is nothing to remember of it: not even a number.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.is_idle() && self.fence == FenceNumber::ZERO
    }
}
