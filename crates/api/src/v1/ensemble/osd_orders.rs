//! What nodes and monitors are to do for OSDs.

use std::collections::BTreeMap;

use bellwether_core::records::osd as core;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, try_map_from};
use crate::word::words;

words! {
    /// What is to become of an OSD on its node.
    OsdTask = core::OsdTask {
        /// It runs.
        Run = "run",
        /// It is stopped; what is on its device stays there.
        Leave = "leave",
    }
}

words! {
    /// What is changed of an OSD in the store.
    OsdAction = core::OsdAction {
        /// It gets no data any more, and what it has goes to others.
        Out = "out",
        /// It gets data again.
        In = "in",
        /// It is forgotten, if the store says that nothing is lost by that, and it does not run.
        Purge = "purge",
        /// The same, but its number and its place are kept for the one that replaces it.
        Destroy = "destroy",
    }
}

/// What a node is to do for the OSDs that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OsdsOrder {
    /// Identity of the ensemble.
    pub identity: String,
    /// Where the monitors are, such as `v2:192.0.2.7:3300`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<String>,
    /// The OSDs by number.
    pub osds: BTreeMap<u64, OsdOrder>,
}

/// What a node is to do for an OSD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OsdOrder {
    /// Serial number of its device.
    pub device: String,
    /// Its id, a UUID.
    pub uuid: String,
    /// What is to become of it.
    pub task: OsdTask,
    /// The number in the store that it takes from the one that it replaces; absent if it gets one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<u32>,
    /// The restart that it is to make, by the time at which that was asked for, in milliseconds since the Unix epoch; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_ms: Option<u64>,
    /// Whether it is started only if its device is that of this OSD already: nothing is made while its ensemble is held after a restore.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_made: bool,
}

/// What a monitor does about OSDs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoreOsdsOrder {
    /// The change that it makes; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<OsdChange>,
    /// The numbers in the store of those of which it asks whether they may be removed without loss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<u32>,
    /// The number in the store of the one of which it asks whether it may be stopped; absent if of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_to_stop: Option<u32>,
    /// Whether it reads them again and again, since one is to change; otherwise it reads them from time to time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_changing: bool,
}

/// A change of an OSD in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OsdChange {
    /// What is changed.
    pub action: OsdAction,
    /// Id of the OSD, a UUID.
    pub uuid: String,
    /// The number that the store gave it.
    pub store_number: u32,
}

impl From<&core::OsdsOrder> for OsdsOrder {
    fn from(from: &core::OsdsOrder) -> Self {
        let order = |(number, osd): (&MemberNumber, &core::OsdOrder)| {
            let order = OsdOrder {
                device: osd.serial.to_string(),
                uuid: osd.uuid.clone(),
                task: osd.task.into(),
                takes: osd.takes,
                restart_ms: osd.restart.map(Timestamp::as_millis),
                only_made: osd.only_made,
            };
            (number.get(), order)
        };
        Self {
            identity: from.identity.clone(),
            monitors: from.monitors.clone(),
            osds: from.osds.iter().map(order).collect(),
        }
    }
}

impl TryFrom<OsdsOrder> for core::OsdsOrder {
    type Error = ShapeError;
    fn try_from(from: OsdsOrder) -> Result<Self, ShapeError> {
        let order = |(number, osd): (u64, OsdOrder)| {
            let serial = read(&format!("osds.{number}.device"), &osd.device)?;
            let (task, restart) = (osd.task.into(), osd.restart_ms.map(Timestamp::from_millis));
            let only_made = osd.only_made;
            let order = core::OsdOrder { serial, uuid: osd.uuid, task, takes: osd.takes, restart, only_made };
            Ok((MemberNumber::new(number), order))
        };
        let osds = try_map_from(from.osds.into_iter().map(order))?;
        Ok(Self { identity: from.identity, monitors: from.monitors, osds })
    }
}

impl From<&core::OsdChange> for OsdChange {
    fn from(from: &core::OsdChange) -> Self {
        Self { action: from.action.into(), uuid: from.uuid.clone(), store_number: from.store_number }
    }
}

impl From<OsdChange> for core::OsdChange {
    fn from(from: OsdChange) -> Self {
        Self { action: from.action.into(), uuid: from.uuid, store_number: from.store_number }
    }
}

impl From<&core::StoreOsdsOrder> for StoreOsdsOrder {
    fn from(from: &core::StoreOsdsOrder) -> Self {
        let core::StoreOsdsOrder { change, asks, asks_to_stop, is_changing } = from.clone();
        Self { change: change.as_ref().map(Into::into), asks, asks_to_stop, is_changing }
    }
}

impl From<StoreOsdsOrder> for core::StoreOsdsOrder {
    fn from(from: StoreOsdsOrder) -> Self {
        let StoreOsdsOrder { change, asks, asks_to_stop, is_changing } = from;
        Self { change: change.map(Into::into), asks, asks_to_stop, is_changing }
    }
}
