//! OSDs of an ensemble of Ceph: one for each device that may be taken. What is to become of each, what its node reports of it, and what the store
//! itself says. Absence of a device, a node or an answer never gives one up.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ensemble_requests::{MemberRequests, RollingRequest};
use super::member_state::MemberState;
use crate::words::counter::MemberNumber;
use crate::words::digest::{FNV_START, fnv};
use crate::words::name::{DeviceSerial, NodeName};
use crate::words::time::Timestamp;

/// Most devices of an ensemble.
pub const MAX_DEVICES: usize = 256;

/// Most devices that a node offers, and most OSDs that it has.
pub const MAX_NODE_DEVICES: usize = 64;

/// Copies of each object in a pool that is made without a number of its own.
pub const REPLICAS: u32 = 3;

/// Most copies.
pub const MAX_REPLICAS: u32 = 10;

/// The OSDs of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnsembleOsds {
    /// Number of the one that was ordered last. It only grows.
    pub last: MemberNumber,
    /// The OSDs by number, also those that were removed: their devices are not taken again by themselves.
    pub osds: BTreeMap<MemberNumber, Osd>,
    /// The monitor that reads them from the store and makes changes there; `None` while there are none, or nobody to read them.
    pub reader: Option<MemberNumber>,
    /// The change that it makes; `None` if there is none to make.
    pub change: Option<OsdChange>,
}

/// An OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Osd {
    /// Its node.
    pub node: NodeName,
    /// Its device.
    pub serial: DeviceSerial,
    /// How far it is.
    pub phase: OsdPhase,
    /// Since when it is that far.
    pub since: Timestamp,
    /// The number that the store gave it; `None` until it is known. Once it is removed, the store may give it to another one.
    pub store_number: Option<u32>,
    /// Whether a person asked for its removal.
    pub is_unwanted: bool,
    /// Whether it is to have data again, after it was emptied, and the store does not say yet that it may.
    pub fills: bool,
    /// The device that another OSD takes its number in the store with, once it is removed; `None` if none is to.
    pub successor: Option<DeviceSerial>,
    /// The number in the store that it takes from the one that it replaces; `None` if it gets one of its own.
    pub takes: Option<u32>,
}

/// How far an OSD is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OsdPhase {
    /// Its node makes and starts it; the store does not use it yet.
    Joining,
    /// It has data, or may have.
    In,
    /// It is emptied; it still runs, and may still have data.
    Out,
    /// It is stopped, and the store forgets it.
    Removed,
}

/// A change of an OSD in the store. A second time it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsdChange {
    /// What is changed.
    pub action: OsdAction,
    /// Id of the OSD, which no other one ever has.
    pub uuid: String,
    /// The number that the store gave it.
    pub store_number: u32,
}

/// What is changed of an OSD in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OsdAction {
    /// It gets no data any more, and what it has goes to others.
    Out,
    /// It gets data again.
    In,
    /// It is forgotten, if the store says right before that nothing is lost by that, and it does not run.
    Purge,
    /// The same, but its number and its place are kept for the one that replaces it.
    Destroy,
}

/// What a monitor does about OSDs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreOsdsOrder {
    /// The change that it makes; `None` if none.
    pub change: Option<OsdChange>,
    /// The numbers in the store of those of which it asks whether they may be removed without loss.
    pub asks: Vec<u32>,
    /// The number in the store of the one of which it asks whether it may be stopped; `None` if of none.
    pub asks_to_stop: Option<u32>,
    /// Whether it reads them again and again, since one is to change; otherwise it reads them from time to time.
    pub is_changing: bool,
}

/// What the store answers whether an OSD may be removed without loss, or be stopped while all data can still be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreAnswer {
    /// It may.
    Yes,
    /// It may not, yet.
    No,
    /// The store did not answer in time, did not know, or was not asked: as if it might not.
    #[default]
    Unknown,
}

/// An OSD, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOsd {
    /// Its number.
    pub number: u32,
    /// Whether others reach it.
    pub is_up: bool,
    /// Whether it has data.
    pub is_in: bool,
    /// Whether it may be removed without loss.
    pub safe: StoreAnswer,
    /// Whether it may be stopped while all data can still be read and written.
    pub ok_to_stop: StoreAnswer,
}

/// What a node is to do for the OSDs that it has of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsdsOrder {
    /// Identity of the ensemble.
    pub identity: String,
    /// Where the monitors are.
    pub monitors: Vec<String>,
    /// The OSDs by number.
    pub osds: BTreeMap<MemberNumber, OsdOrder>,
}

/// What a node is to do for an OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsdOrder {
    /// Its device.
    pub serial: DeviceSerial,
    /// Its id.
    pub uuid: String,
    /// What is to become of it.
    pub task: OsdTask,
    /// The number in the store that it takes from the one that it replaces.
    pub takes: Option<u32>,
    /// The restart that it is to make, by the time at which that was asked for; `None` if none.
    pub restart: Option<Timestamp>,
    /// Whether it is started only if its device is that of this OSD already.
    pub only_made: bool,
}

/// What is to become of an OSD on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OsdTask {
    /// It runs.
    Run,
    /// It is stopped; what is on its device stays there.
    Leave,
}

/// What a node's agent reports of an OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsdReport {
    /// Identity of its ensemble.
    pub identity: String,
    /// Its state.
    pub state: MemberState,
    /// Why it is not as the order says, or what it waits for; empty if it is well.
    pub reason: String,
    /// The number that the store gave it; `None` before it has one.
    pub store_number: Option<u32>,
    /// The restart that it made last.
    pub restarted: Option<Timestamp>,
    /// Since when it has this state, by the server's clock, which knows it alone.
    pub since: Timestamp,
}

/// A device that a node offers, as its agent found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceReport {
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// What is on it or holds it: a signature of a file system, a partition table, a mount, a holder. Empty if it is free.
    pub used_by: Vec<String>,
}

impl Osd {
    /// Id of an OSD: none of another installation, ensemble or number is likely to have the same.
    #[must_use]
    pub fn uuid(identity: &str, number: MemberNumber) -> String {
        let text = format!("{identity}/{number}");
        let [high, low] =
            [FNV_START, FNV_START.rotate_left(32)].map(|start| text.bytes().chain(*b"osd").fold(start, fnv));
        // As one of a scheme of our own has it (RFC 9562, version 8).
        let high = high & !0xf000 | 0x8000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

impl EnsembleOsds {
    /// What each node is to do for the OSDs that it has.
    #[must_use]
    pub fn orders(
        &self,
        (identity, monitors): (&str, &[String]),
        requests: &MemberRequests,
    ) -> BTreeMap<NodeName, OsdsOrder> {
        let mut orders = BTreeMap::new();
        for (number, osd) in &self.osds {
            let of = orders.entry(osd.node.clone()).or_insert_with(|| OsdsOrder {
                identity: identity.into(),
                monitors: monitors.into(),
                osds: BTreeMap::new(),
            });
            let task = if osd.phase == OsdPhase::Removed { OsdTask::Leave } else { OsdTask::Run };
            let order = OsdOrder {
                serial: osd.serial.clone(),
                uuid: Osd::uuid(identity, *number),
                task,
                takes: osd.takes,
                restart: requests.osd_restart_of(*number),
                only_made: false,
            };
            of.osds.insert(*number, order);
        }
        orders
    }

    /// What a monitor does about them; `None` for one that does nothing.
    #[must_use]
    pub fn of_reader(&self, number: MemberNumber, requests: &MemberRequests) -> Option<StoreOsdsOrder> {
        let asks = self.osds.values().filter(|osd| osd.phase == OsdPhase::Out);
        let asks = asks.filter_map(|osd| osd.store_number).collect();
        let changes = |osd: &Osd| match osd.phase {
            OsdPhase::Joining | OsdPhase::Out => true,
            OsdPhase::In => osd.fills,
            OsdPhase::Removed => false,
        };
        let next = requests.rolling.as_ref().and_then(RollingRequest::next_osd);
        let asks_to_stop = next.and_then(|next| self.osds.get(&next)?.store_number);
        let is_changing = self.change.is_some() || asks_to_stop.is_some() || self.osds.values().any(changes);
        (self.reader == Some(number)).then(|| StoreOsdsOrder {
            change: self.change.clone(),
            asks,
            asks_to_stop,
            is_changing,
        })
    }

    /// Whether there is nothing to tell of them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those that are not removed.
    pub fn present(&self) -> impl Iterator<Item = (MemberNumber, &Osd)> {
        let present = self.osds.iter().filter(|(_, osd)| osd.phase != OsdPhase::Removed);
        present.map(|(number, osd)| (*number, osd))
    }
}

impl OsdPhase {
    /// Name of the phase.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::In => "in",
            Self::Out => "out",
            Self::Removed => "removed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_of_its_own_ensemble_and_number() {
        let id = Osd::uuid("disks-1", MemberNumber::new(1));
        assert_eq!(id.len(), 36);
        assert_eq!((id.as_bytes()[14], id.as_bytes()[19] & !3), (b'8', b'8'), "{id}");
        assert_eq!(id, Osd::uuid("disks-1", MemberNumber::new(1)));
        assert_ne!(id, Osd::uuid("disks-1", MemberNumber::new(2)));
        assert_ne!(id, Osd::uuid("disks-2", MemberNumber::new(1)));
    }
}
