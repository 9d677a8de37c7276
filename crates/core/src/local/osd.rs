//! The next step of a node for an OSD of Ceph, from its order, its device and what runs. Decides; never acts.
//!
//! A device is written to only once, if nothing is on it at that very look; what is on it afterwards is compared before it counts. One that was
//! taken and has lost what was on it is not taken again: its OSD would come back without what it has acknowledged.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::member::MemberProcess;
use crate::records::member::MemberState;
use crate::records::osd::{OsdOrder, OsdTask};

/// What is on the device of an OSD that says whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsdLabel {
    /// Id of the store.
    pub fsid: String,
    /// Id of the OSD, which is never used again.
    pub uuid: String,
    /// Its number in the store, which another one may have had before.
    pub number: u32,
    /// Whether it was finished.
    pub is_whole: bool,
}

/// A device, as it was looked at just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsdDevice {
    /// There is none of this serial number.
    Absent,
    /// There are several of it, with these names.
    Several(Vec<String>),
    /// Nothing is known of it, for this reason.
    Unknown(String),
    /// There is nothing on it, nobody holds it, and it can be opened by this node alone.
    Empty,
    /// It has the label of an OSD.
    Labelled(OsdLabel),
    /// Something else is on it, or holds it.
    Used(Vec<String>),
}

/// What the ledger has of an OSD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotedOsd {
    /// The number that the store gave it; `None` before it was asked.
    pub number: Option<u32>,
    /// Whether its device was seen with its label.
    pub was_made: bool,
}

/// What a node knows of an OSD before it acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsdSight<'a> {
    /// The order.
    pub order: &'a OsdOrder,
    /// Id of the store.
    pub fsid: &'a str,
    /// Its device.
    pub device: OsdDevice,
    /// What the ledger has of it.
    pub noted: &'a NotedOsd,
    /// Its program.
    pub process: MemberProcess,
    /// Whether it is ordered to restart, and has not.
    pub is_restart_due: bool,
}

/// The next step for an OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsdStep {
    /// Nothing is to be done before something changes; the reason fits after "OSD 3 ".
    Rest(MemberState, String),
    /// The store is asked for its number, which it answers again for the same id.
    Register,
    /// Its device is written to, as this number. It is looked at once more right before.
    Make(u32),
    /// The ledger notes that its device has its label.
    NoteMade,
    /// Its program is started, as this number.
    Start(u32),
    /// Its program is stopped.
    Stop,
    /// It is asked what it is.
    Serve,
}

/// Why one is not made.
const HELD: &str = "is not made: its ensemble is held after a restore of the control plane";

impl OsdSight<'_> {
    /// The next step.
    #[must_use]
    pub fn plan(&self) -> OsdStep {
        let is_running = matches!(self.process, MemberProcess::Running(_));
        match (self.order.task, is_running) {
            (OsdTask::Leave, true) => OsdStep::Stop,
            (OsdTask::Leave, false) => rest(MemberState::Left, String::new()),
            (OsdTask::Run, true) if self.is_restart_due => OsdStep::Stop,
            (OsdTask::Run, true) => OsdStep::Serve,
            (OsdTask::Run, false) => self.run(),
        }
    }

    fn run(&self) -> OsdStep {
        let serial = &self.order.serial;
        match &self.device {
            OsdDevice::Absent => self.waits(format!(
                "waits for its device {serial}, which is not there, or which its agent does not offer"
            )),
            OsdDevice::Several(names) => self.waits(format!(
                "has no device of its own: {} have serial number {serial}",
                names.join(" and ")
            )),
            OsdDevice::Unknown(reason) => self.waits(format!("cannot look at device {serial}: {reason}")),
            OsdDevice::Used(by) => self.lost(&format!("there is {} on it", by.join(" and "))),
            OsdDevice::Empty if self.order.only_made && !self.noted.was_made => self.waits(HELD.to_string()),
            OsdDevice::Empty => match self.noted.number {
                _ if self.noted.was_made => self.lost("it is empty"),
                None => OsdStep::Register,
                Some(number) => OsdStep::Make(number),
            },
            OsdDevice::Labelled(label) => self.labelled(label),
        }
    }

    fn labelled(&self, label: &OsdLabel) -> OsdStep {
        if label.fsid != self.fsid || label.uuid != self.order.uuid {
            return self.lost(&format!("OSD {} of store {} is on it", label.number, label.fsid));
        }
        match self.noted.number {
            None => OsdStep::Register,
            Some(number) if number != label.number => {
                self.lost(&format!("it is OSD {} there, and {number} in the store", label.number))
            }
            Some(_) if self.order.only_made && !label.is_whole && !self.noted.was_made => {
                self.waits(HELD.to_string())
            }
            Some(number) if !label.is_whole && !self.noted.was_made => OsdStep::Make(number),
            Some(_) if !label.is_whole => self.lost("what is on it is not whole"),
            Some(_) if !self.noted.was_made => OsdStep::NoteMade,
            Some(number) => self.start(number),
        }
    }

    /// One that ended without an error has given up, since others say again and again that it is down: started again, it would go on so.
    fn start(&self, number: u32) -> OsdStep {
        match &self.process {
            MemberProcess::Ended { .. } if self.is_restart_due => OsdStep::Start(number),
            MemberProcess::Ended { code: Some(0), .. } => rest(
                MemberState::Failed,
                "ended without an error, as one does that others cannot reach; once they can, ask for a restart of the ensemble, or restart its agent"
                    .to_string(),
            ),
            MemberProcess::Ended { is_due: false, summary, .. } => {
                rest(MemberState::Failed, format!("waits to be started again: {summary}"))
            }
            MemberProcess::Ended { .. } | MemberProcess::Stopped | MemberProcess::Running(_) => {
                OsdStep::Start(number)
            }
        }
    }

    /// What keeps it from its device; that one which was taken is not there says nothing of what is on it.
    fn waits(&self, reason: String) -> OsdStep {
        rest(if self.noted.was_made { MemberState::Failed } else { MemberState::Refused }, reason)
    }

    /// The device is not to be written to.
    fn lost(&self, what: &str) -> OsdStep {
        let serial = &self.order.serial;
        match self.noted.was_made {
            true => rest(
                MemberState::Failed,
                format!("is not started: its device {serial} does not have its data: {what}"),
            ),
            false => rest(MemberState::Refused, format!("does not take device {serial}: {what}")),
        }
    }
}

const fn rest(state: MemberState, reason: String) -> OsdStep {
    OsdStep::Rest(state, reason)
}

#[cfg(test)]
mod tests;
