//! Slots, as they travel and are kept; and the protocol by which machines ask for their turn to reboot.

use std::collections::BTreeMap;

use bellwether_core::decide::slots::SlotGrant as Decided;
use bellwether_core::records::slot as core;
use bellwether_core::words::counter::FenceNumber;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, map_from, read, read_some, try_map_from};

/// Longest time that a slot may be held by itself.
const LONGEST: Span = Span::from_secs(30 * 24 * 60 * 60);

/// How many may do something at once, and who does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// How many may hold it.
    pub capacity: u32,
    /// How long each holds it before it ends by itself.
    pub lease_ms: u64,
    /// The number of the last time that somebody took it; it only grows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fence: u64,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub holders: BTreeMap<String, Holder>,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Somebody who holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Holder {
    /// The number of this holding: larger than that of any before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fence: u64,
    /// Since when.
    pub since_ms: u64,
    /// When it ends by itself.
    pub ends_ms: u64,
    /// Whose token was shown.
    pub by: String,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Sets how many may hold a slot, and for how long; what is left out stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotSpec {
    /// How many may hold it, at most 1,000; with 0 nobody takes it.
    #[schema(example = 2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// How long each holds it before it ends by itself, like `1h`, at most 30 days.
    #[schema(example = "1h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// A slot, and when to look again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SlotView {
    /// The slot; as it is when nobody has said anything of it, if nobody has.
    pub slot: Slot,
    /// What to name as `index` to hear of its next change.
    pub revision: u64,
}

/// Takes a slot, or holds it longer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireSlot {
    /// By whom: a name of its own choice, 1 to 253 visible ASCII characters.
    #[schema(example = "build-7:4711")]
    pub holder: String,
    /// What for; at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// For how long, like `30s`, at most 30 days; as the slot has it if absent.
    #[schema(example = "30s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// How many the holder takes it may hold it, 1 to 1,000: said of a slot that nobody has said anything of, refused if
    /// it is another number. Whatever it is if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// Holds a slot longer, as that very holding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewSlot {
    /// By whom.
    pub holder: String,
    /// The number it was taken with.
    pub fence: u64,
    /// For how long from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// Gives a slot back, that very holding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseSlot {
    /// By whom.
    pub holder: String,
    /// The number it was taken with.
    pub fence: u64,
}

/// A slot that somebody has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SlotGrant {
    /// The number of this holding: larger than that of any before.
    pub fence: u64,
    /// Since when.
    pub since_ms: u64,
    /// When it ends by itself, unless it is renewed.
    pub ends_ms: u64,
}

/// Takes a slot from its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceRelease {
    /// From whom.
    #[schema(example = "c988d2509fdf5cdcbed39037c56406fb")]
    pub holder: String,
    /// Why; it stands in the event.
    #[schema(example = "the machine was scrapped")]
    pub reason: String,
}

/// What a client of the FleetLock protocol says of itself. Fields of later revisions of the protocol are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FleetLock {
    /// All of it.
    pub client_params: ClientParams,
}

/// What a client of the FleetLock protocol says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientParams {
    /// What it goes by.
    #[schema(example = "c988d2509fdf5cdcbed39037c56406fb")]
    pub id: String,
    /// Among whom it takes turns.
    #[schema(example = "default")]
    pub group: String,
}

/// Why not, in the FleetLock protocol's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FleetLockError {
    /// One of few words, for counting.
    pub kind: String,
    /// A sentence, for a person.
    pub value: String,
}

impl SlotSpec {
    /// Reads it; what it leaves out is taken from what is there.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn read(&self, old: (u32, Span)) -> Result<(u32, Span), ShapeError> {
        let capacity = self.capacity.unwrap_or(old.0);
        if capacity > core::MAX_CAPACITY {
            return Err(ShapeError::at("capacity", format!("it is not from 0 to {}", core::MAX_CAPACITY)));
        }
        Ok((capacity, lease(self.lease.as_deref())?.unwrap_or(old.1)))
    }
}

/// Reads a lease.
///
/// # Errors
/// [`ShapeError`] at `lease`.
pub fn lease(text: Option<&str>) -> Result<Option<Span>, ShapeError> {
    let lease: Option<Span> = read_some("lease", text)?;
    if lease.is_some_and(|lease| lease == Span::ZERO || lease > LONGEST) {
        return Err(ShapeError::at("lease", "it is not longer than nothing and at most 30 days"));
    }
    Ok(lease)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<&Decided> for SlotGrant {
    fn from(from: &Decided) -> Self {
        Self { fence: from.fence.get(), since_ms: from.since.as_millis(), ends_ms: from.ends.as_millis() }
    }
}

impl From<&core::Slot> for Slot {
    fn from(from: &core::Slot) -> Self {
        let holders = from.holders.iter().map(|(name, holder)| (name.to_string(), holder.into()));
        Self {
            name: from.name.to_string(),
            capacity: from.capacity,
            lease_ms: from.lease.as_millis(),
            fence: from.fence.get(),
            holders: map_from(holders),
            labels: labels_out(&from.labels),
        }
    }
}

impl From<&core::Holder> for Holder {
    fn from(from: &core::Holder) -> Self {
        Self {
            fence: from.fence.get(),
            since_ms: from.since.as_millis(),
            ends_ms: from.ends.as_millis(),
            by: from.by.to_string(),
            reason: from.reason.clone(),
        }
    }
}

impl TryFrom<Slot> for core::Slot {
    type Error = ShapeError;
    fn try_from(from: Slot) -> Result<Self, ShapeError> {
        let holders = from.holders.into_iter().map(|(name, holder)| {
            let kept = core::Holder {
                fence: FenceNumber::new(holder.fence),
                since: Timestamp::from_millis(holder.since_ms),
                ends: Timestamp::from_millis(holder.ends_ms),
                by: read("by", &holder.by)?,
                reason: holder.reason,
            };
            Ok((read("holders", &name)?, kept))
        });
        Ok(Self {
            name: read("name", &from.name)?,
            capacity: from.capacity,
            lease: Span::from_millis(from.lease_ms),
            fence: FenceNumber::new(from.fence),
            holders: try_map_from(holders)?,
            labels: labels_in(&from.labels)?,
        })
    }
}
