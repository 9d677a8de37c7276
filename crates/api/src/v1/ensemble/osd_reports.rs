//! What nodes report of OSDs and of the devices that they offer, and monitors of the store.

use std::collections::BTreeMap;

use bellwether_core::records::osd as core;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::member_state::MemberState;
use crate::shape::map_from;
use crate::word::words;

words! {
    /// What the store answers whether an OSD may be removed without loss, or be stopped while all data can still be read and written.
    StoreAnswer = core::StoreAnswer {
        /// It may.
        Yes = "yes",
        /// It may not, yet.
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
    pub safe: StoreAnswer,
    /// Whether it may be stopped while all data can still be read and written; absent if that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_to_stop: Option<StoreAnswer>,
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
    /// The restart that it made last, in milliseconds since the Unix epoch; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_ms: Option<u64>,
    /// Since when it has this state, in milliseconds since the Unix epoch, by the server's clock; what a node sends is not used.
    #[serde(default)]
    pub since_ms: u64,
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
        let core::StoreOsd { number, is_up, is_in, safe, ok_to_stop } = from.clone();
        let ok_to_stop = (ok_to_stop != core::StoreAnswer::Unknown).then(|| ok_to_stop.into());
        Self { number, is_up, is_in, safe: safe.into(), ok_to_stop }
    }
}

impl From<StoreOsd> for core::StoreOsd {
    fn from(from: StoreOsd) -> Self {
        let StoreOsd { number, is_up, is_in, safe, ok_to_stop } = from;
        let ok_to_stop = ok_to_stop.map_or(core::StoreAnswer::Unknown, Into::into);
        Self { number, is_up, is_in, safe: safe.into(), ok_to_stop }
    }
}

impl From<&core::OsdReport> for ReportedOsd {
    fn from(from: &core::OsdReport) -> Self {
        let core::OsdReport { identity, state, reason, store_number, restarted, since } = from.clone();
        let restarted_ms = restarted.map(Timestamp::as_millis);
        let since_ms = since.as_millis();
        Self { identity, state: state.into(), reason, store_number, restarted_ms, since_ms }
    }
}

impl From<ReportedOsd> for core::OsdReport {
    fn from(from: ReportedOsd) -> Self {
        let ReportedOsd { identity, state, reason, store_number, restarted_ms, since_ms } = from;
        let restarted = restarted_ms.map(Timestamp::from_millis);
        let since = Timestamp::from_millis(since_ms);
        Self { identity, state: state.into(), reason, store_number, restarted, since }
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
