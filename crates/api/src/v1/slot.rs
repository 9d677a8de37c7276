//! Slots: requests, answers and stored records; and the shapes of the FleetLock protocol.

use std::collections::BTreeMap;

use bellwether_core::decide::slots::SlotGrant as Decided;
use bellwether_core::records::slot as core;
use bellwether_core::words::counter::FenceNumber;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, is_zero, map_from, read, read_some, try_map_from};

/// Longest duration for which a slot can be held without renewal.
const LONGEST: Span = Span::from_secs(30 * 24 * 60 * 60);

/// A slot, which a limited number of holders can hold at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Slot {
    /// Slot name.
    pub name: String,
    /// Number of holders that are allowed at the same time.
    pub capacity: u32,
    /// How long a holder keeps the slot without renewing it, in milliseconds.
    pub lease_ms: u64,
    /// Whether capacity and lease were set, if only to their defaults; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub configured: bool,
    /// Fencing number of the last acquisition; it only grows. 0 before the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fence: u64,
    /// The present holders, by holder name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub holders: BTreeMap<String, Holder>,
    /// Labels that `apply` set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A holder of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Holder {
    /// Fencing number of this acquisition: larger than that of any earlier one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fence: u64,
    /// Time of the acquisition, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Time at which the lease expires, in milliseconds since the Unix epoch.
    pub ends_ms: u64,
    /// Name of the token that was used.
    pub by: String,
    /// The reason that was given; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request to change a slot; absent fields stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotSpec {
    /// Number of holders that are allowed at the same time, 0 to 1,000; with 0 the slot cannot be acquired.
    #[schema(example = 2)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// How long a holder keeps the slot without renewing it, such as `1h`, at most 30 days.
    #[schema(example = "1h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// A slot with its revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SlotView {
    /// The slot; with default settings if it was neither set nor acquired.
    pub slot: Slot,
    /// Revision of the slot; pass it as `index` to wait for its next change.
    pub revision: u64,
}

/// Request to acquire a slot, or to renew the lease of its present holder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireSlot {
    /// Holder name, chosen by the holder: 1 to 253 visible ASCII characters.
    #[schema(example = "build-7:4711")]
    pub holder: String,
    /// Reason for the acquisition, at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// Duration of the lease, such as `30s`, at most 30 days; the slot's own if absent.
    #[schema(example = "30s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Capacity that the holder expects, 1 to 1,000: it is set if the slot was never set or acquired, and the
    /// request is refused if the slot has another one. Not checked if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
}

/// Request to renew the lease of one acquisition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewSlot {
    /// Holder name.
    pub holder: String,
    /// Fencing number of the acquisition.
    pub fence: u64,
    /// Duration of the lease from now on, at most 30 days; the slot's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// Request to release one acquisition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseSlot {
    /// Holder name.
    pub holder: String,
    /// Fencing number of the acquisition.
    pub fence: u64,
}

/// Answer to an acquisition or a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SlotGrant {
    /// Fencing number of this acquisition: larger than that of any earlier one.
    pub fence: u64,
    /// Time of the acquisition, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Time at which the lease expires unless it is renewed, in milliseconds since the Unix epoch.
    pub ends_ms: u64,
}

/// Request to release a slot on behalf of its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceRelease {
    /// Holder name.
    #[schema(example = "c988d2509fdf5cdcbed39037c56406fb")]
    pub holder: String,
    /// Reason for the release; the event contains it.
    #[schema(example = "the machine was scrapped")]
    pub reason: String,
}

/// Request of the FleetLock protocol. Fields of later protocol revisions are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FleetLock {
    /// Parameters of the client.
    pub client_params: ClientParams,
}

/// Parameters of a client of the FleetLock protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClientParams {
    /// Holder name.
    #[schema(example = "c988d2509fdf5cdcbed39037c56406fb")]
    pub id: String,
    /// Group of machines, of which a limited number may reboot at the same time.
    #[schema(example = "default")]
    pub group: String,
}

/// Error of the FleetLock protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FleetLockError {
    /// Machine-readable kind of error.
    pub kind: String,
    /// Description of the error, one sentence for a person.
    pub value: String,
}

impl SlotSpec {
    /// Reads the specification; absent fields take the values of `old`.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn read(&self, old: core::SlotLimits) -> Result<core::SlotLimits, ShapeError> {
        let capacity = self.capacity.unwrap_or(old.capacity);
        if capacity > core::MAX_CAPACITY {
            return Err(ShapeError::at("capacity", format!("must be between 0 and {}", core::MAX_CAPACITY)));
        }
        let lease = lease(self.lease.as_deref())?.unwrap_or(old.lease);
        Ok(core::SlotLimits { capacity, lease })
    }
}

/// Reads the duration of a lease.
///
/// # Errors
/// [`ShapeError`] at `lease`.
pub fn lease(text: Option<&str>) -> Result<Option<Span>, ShapeError> {
    let lease: Option<Span> = read_some("lease", text)?;
    if lease.is_some_and(|lease| lease == Span::ZERO || lease > LONGEST) {
        return Err(ShapeError::at("lease", "must be over 0s and at most 30d"));
    }
    Ok(lease)
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
            configured: from.configured,
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
            configured: from.configured,
            fence: FenceNumber::new(from.fence),
            holders: try_map_from(holders)?,
            labels: labels_in(&from.labels)?,
        })
    }
}
