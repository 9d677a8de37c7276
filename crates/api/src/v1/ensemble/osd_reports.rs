//! What nodes report of OSDs and of the devices that they offer, and monitors of the store.

use std::collections::BTreeMap;

use bellwether_core::records::osd as core;
use bellwether_core::words::counter::MemberNumber;
use serde::{Deserialize, Serialize};

use super::member_state::MemberState;
use crate::shape::map_from;
use crate::word::words;

words! {
    /// Whether an OSD may be removed without loss, as the store says.
    SafeToRemove = core::SafeToRemove {
        /// It is.
        Yes = "yes",
        /// It is not, yet.
        No = "no",
        /// The store did not answer in time, did not know, or was not asked.
        Unknown = "unknown",
    }
}

/// An OSD, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreOsd {
    /// Its number.
    pub number: u32,
    /// Whether others reach it.
    #[serde(default)]
    pub is_up: bool,
    /// Whether it has data.
    #[serde(default)]
    pub is_in: bool,
    /// Whether it may be removed without loss.
    pub safe: SafeToRemove,
}

/// An OSD, as its node's agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedOsd {
    /// Identity of its ensemble.
    pub identity: String,
    /// Its state.
    pub state: MemberState,
    /// Why it is not as the order says, or what it waits for, in one line of at most 512 bytes; empty if it is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The number that the store gave it; absent before it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_number: Option<u32>,
}

/// A device that a node offers, as its agent found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedDevice {
    /// Its path, of at most 512 bytes.
    pub path: String,
    /// Its size in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// What is on it or holds it; empty if it is free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
}

impl From<&core::StoreOsd> for StoreOsd {
    fn from(from: &core::StoreOsd) -> Self {
        Self { number: from.number, is_up: from.is_up, is_in: from.is_in, safe: from.safe.into() }
    }
}

impl From<StoreOsd> for core::StoreOsd {
    fn from(from: StoreOsd) -> Self {
        Self { number: from.number, is_up: from.is_up, is_in: from.is_in, safe: from.safe.into() }
    }
}

impl From<&core::OsdReport> for ReportedOsd {
    fn from(from: &core::OsdReport) -> Self {
        let core::OsdReport { identity, state, reason, store_number } = from.clone();
        Self { identity, state: state.into(), reason, store_number }
    }
}

impl From<ReportedOsd> for core::OsdReport {
    fn from(from: ReportedOsd) -> Self {
        let ReportedOsd { identity, state, reason, store_number } = from;
        Self { identity, state: state.into(), reason, store_number }
    }
}

impl From<&core::DeviceReport> for ReportedDevice {
    fn from(from: &core::DeviceReport) -> Self {
        let core::DeviceReport { path, bytes, used_by } = from.clone();
        Self { path, bytes, used_by }
    }
}

impl From<ReportedDevice> for core::DeviceReport {
    fn from(from: ReportedDevice) -> Self {
        let ReportedDevice { path, bytes, used_by } = from;
        Self { path, bytes, used_by }
    }
}

/// The OSDs that a node reports, by ensemble and number.
pub type ReportedOsds = BTreeMap<String, BTreeMap<u64, ReportedOsd>>;

/// The form of the OSDs that a node reports.
#[must_use]
pub fn reported<K: ToString>(
    from: &BTreeMap<K, BTreeMap<MemberNumber, core::OsdReport>>,
) -> BTreeMap<String, BTreeMap<u64, ReportedOsd>> {
    let of = |osds: &BTreeMap<MemberNumber, core::OsdReport>| {
        map_from(osds.iter().map(|(number, osd)| (number.get(), osd.into())))
    };
    map_from(from.iter().map(|(name, osds)| (name.to_string(), of(osds))))
}
