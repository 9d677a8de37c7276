//! OSDs of an ensemble of Ceph: requests, answers and what is stored of them.

use bellwether_core::decide::ensembles::osds::known::KnownOsd;
use bellwether_core::records::osd as core;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::osd_orders::OsdChange;
use super::osd_reports::StoreAnswer;
use crate::shape::{ShapeError, read, try_map_from};
use crate::word::words;

words! {
    /// How far an OSD is.
    OsdPhase = core::OsdPhase {
        /// Its node makes and starts it; the store does not use it yet.
        Joining = "joining",
        /// It has data, or may have.
        In = "in",
        /// It is emptied; it still runs, and may still have data.
        Out = "out",
        /// It is stopped, and the store forgets it.
        Removed = "removed",
    }
}

/// The OSDs of an ensemble, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredOsds {
    /// Number of the one that was ordered last.
    pub last: u64,
    /// The OSDs, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub osds: Vec<StoredOsd>,
    /// The monitor that reads them from the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<u64>,
    /// The change that it makes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<OsdChange>,
}

/// An OSD, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredOsd {
    /// Its number.
    pub number: u64,
    /// Name of its node.
    pub node: String,
    /// Serial number of its device.
    pub device: String,
    /// How far it is.
    pub phase: OsdPhase,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// The number that the store gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_number: Option<u32>,
    /// Whether a person asked for its removal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unwanted: bool,
    /// Whether it is to have data again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fills: bool,
    /// The device that another OSD takes its number in the store with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The number in the store that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<u32>,
}

/// An OSD of an ensemble of Ceph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleOsd {
    /// Number of the OSD, from 1. No other one of this ensemble ever has it.
    pub number: u64,
    /// Name of its node.
    pub node: String,
    /// Serial number of its device.
    pub device: String,
    /// How far it is.
    pub state: OsdPhase,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// The number that the store gave it; absent until it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_number: Option<u32>,
    /// Whether it works, as the store and its node say; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_up: Option<bool>,
    /// Whether it may be removed without loss, as the store says; absent unless it is being emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_to_remove: Option<StoreAnswer>,
    /// Whether a person asked for its removal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unwanted: bool,
    /// Serial number of the device that another OSD takes its number in the store with, once it is removed; absent if none is to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// What its node says of it; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Request for the removal of an OSD of an ensemble, or for leaving it after all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveOsd {
    /// Number of the OSD.
    pub osd: u64,
    /// Whether the removal that was asked for before is withdrawn. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request for the replacement of an OSD of an ensemble by one with another device, which gets its number in the store; or for leaving it after
/// all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceOsd {
    /// Number of the OSD.
    pub osd: u64,
    /// Serial number of the other device, which takes the place of the present one in the list of devices. Required unless `withdraw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whether the replacement that was asked for before is withdrawn. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
    /// Reason, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl EnsembleOsd {
    /// Whether it has data and others reach it, or it is gone for good.
    #[must_use]
    pub fn is_well(&self) -> bool {
        match self.state {
            OsdPhase::In => self.is_up == Some(true),
            OsdPhase::Joining | OsdPhase::Out => false,
            OsdPhase::Removed => self.is_up.is_none(),
        }
    }
}

impl From<KnownOsd<'_>> for EnsembleOsd {
    fn from(from: KnownOsd<'_>) -> Self {
        let KnownOsd { number, osd, report, stored, unreachable_since, is_read: _ } = from;
        let silent = unreachable_since.map(|_| "is not known to work: its node is unreachable".to_owned());
        let said = report.map(|report| report.reason.clone()).filter(|reason| !reason.is_empty());
        let is_emptied = osd.phase == core::OsdPhase::Out;
        Self {
            number: number.get(),
            node: osd.node.to_string(),
            device: osd.serial.to_string(),
            state: osd.phase.into(),
            since_ms: osd.since.as_millis(),
            store_number: osd.store_number,
            is_up: from.is_up(),
            safe_to_remove: stored.filter(|_| is_emptied).map(|stored| stored.safe.into()),
            is_unwanted: osd.is_unwanted,
            successor: osd.successor.as_ref().map(ToString::to_string),
            message: silent.or(said),
        }
    }
}

impl StoredOsds {
    /// The stored form; `None` for none.
    pub(super) fn of(from: &core::EnsembleOsds) -> Option<Self> {
        let stored = |(number, osd): (&MemberNumber, &core::Osd)| StoredOsd {
            number: number.get(),
            node: osd.node.to_string(),
            device: osd.serial.to_string(),
            phase: osd.phase.into(),
            since_ms: osd.since.as_millis(),
            store_number: osd.store_number,
            is_unwanted: osd.is_unwanted,
            fills: osd.fills,
            successor: osd.successor.as_ref().map(ToString::to_string),
            takes: osd.takes,
        };
        (!from.is_empty()).then(|| Self {
            last: from.last.get(),
            osds: from.osds.iter().map(stored).collect(),
            reader: from.reader.map(MemberNumber::get),
            change: from.change.as_ref().map(Into::into),
        })
    }

    pub(super) fn read(self) -> Result<core::EnsembleOsds, ShapeError> {
        let osd = |osd: StoredOsd| {
            let at = |error: ShapeError| error.within(&format!("osds.{}", osd.number));
            let read = core::Osd {
                node: read("node", &osd.node).map_err(at)?,
                serial: read("device", &osd.device).map_err(at)?,
                phase: osd.phase.into(),
                since: Timestamp::from_millis(osd.since_ms),
                store_number: osd.store_number,
                is_unwanted: osd.is_unwanted,
                fills: osd.fills,
                successor: osd
                    .successor
                    .as_deref()
                    .map(|serial| read("successor", serial))
                    .transpose()
                    .map_err(at)?,
                takes: osd.takes,
            };
            Ok((MemberNumber::new(osd.number), read))
        };
        Ok(core::EnsembleOsds {
            last: MemberNumber::new(self.last),
            osds: try_map_from(self.osds.into_iter().map(osd))?,
            reader: self.reader.map(MemberNumber::new),
            change: self.change.map(Into::into),
        })
    }
}
