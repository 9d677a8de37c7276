//! The next change of an ensemble that uses whole devices, such as the disks of Ceph. A device is taken only if the specification allows its
//! serial number and it is empty; what was taken is removed only because a person asked for it, and only once the store itself says
//! that nothing is lost. Absence of a device, a node or an answer never removes anything.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::osd::StoreAnswer;
use crate::words::counter::MemberNumber;
use crate::words::name::{DeviceSerial, NodeName};

/// A device, as the agent of its node found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDevice {
    /// The node that it is in.
    pub node: NodeName,
    /// Its path there.
    pub path: String,
    /// What is on it or holds it: a signature of a file system, a partition table, a mount, a holder. Empty if it is free.
    pub used_by: Vec<String>,
}

/// A member, which has a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceMember {
    /// Its node.
    pub node: NodeName,
    /// Its device.
    pub serial: DeviceSerial,
    /// Its state.
    pub state: DeviceState,
}

/// State of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// It was ordered, and the store does not know it yet.
    Joining,
    /// It was ordered, and its node does not take its device. Nothing waits for it.
    Refused,
    /// It has data, or may have.
    In,
    /// It is emptied, because its node is drained or a person asked; it still has data.
    Out,
    /// It was removed; its device is not taken again.
    Removed,
}

/// What is wanted, and what is known.
#[derive(Debug, Clone, Default)]
pub struct DevicesView {
    /// The devices that may be taken.
    pub allowed: BTreeSet<DeviceSerial>,
    /// The devices that agents found, by serial number: one in two nodes is found twice.
    pub found: BTreeMap<DeviceSerial, Vec<FoundDevice>>,
    /// Nodes that may have no new member, each with the reason.
    pub refused: BTreeMap<NodeName, String>,
    /// Nodes whose members are to be emptied.
    pub drained: BTreeSet<NodeName>,
    /// The members by number.
    pub members: BTreeMap<MemberNumber, DeviceMember>,
    /// Members that a person wants removed.
    pub unwanted: BTreeSet<MemberNumber>,
    /// What the store says of those that are out.
    pub safe: BTreeMap<MemberNumber, StoreAnswer>,
    /// Devices that are kept for the one that takes the place of a member which is not gone yet.
    pub successors: BTreeMap<DeviceSerial, MemberNumber>,
}

/// The next change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceStep {
    /// It is as it is to be.
    Rest,
    /// A new member takes this device, which is looked at once more right before.
    Add {
        /// The node.
        node: NodeName,
        /// The device.
        serial: DeviceSerial,
    },
    /// This member is emptied.
    Empty(MemberNumber),
    /// This member has data again.
    Fill(MemberNumber),
    /// This member is removed, which the store is asked about once more right before.
    Remove(MemberNumber),
    /// Nothing is changed now.
    Wait(DeviceWait),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceWait {
    /// This member joins.
    Joining(MemberNumber),
    /// This member is emptied: `true` if the store says that it is not, `false` if it does not say.
    Emptied(MemberNumber, bool),
}

/// Why a device that is allowed is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceRefusal {
    /// No agent found it.
    NotFound,
    /// Several nodes have a device of this serial number.
    InSeveral(Vec<NodeName>),
    /// It is not free.
    Used(FoundDevice),
    /// Its node may have no new member, for this reason.
    Node(NodeName, String),
    /// Its node is drained.
    Drained(NodeName),
    /// A member of it was removed, and nobody said that it may be taken again.
    RemovedBefore(MemberNumber),
    /// It is to take the place of this member, which is not gone yet.
    Successor(MemberNumber),
}

/// The next change: one at a time, what has begun before anything else, and what gives safety before what takes it.
#[must_use]
pub fn next_step(view: &DevicesView) -> DeviceStep {
    let of_state = |state: DeviceState| {
        view.members
            .iter()
            .filter(move |(_, member)| member.state == state)
            .map(|(number, member)| (*number, member))
    };
    // What never had data is given up at once.
    let is_unwanted = |(number, _): &(MemberNumber, &DeviceMember)| view.unwanted.contains(number);
    let never_in = of_state(DeviceState::Refused).chain(of_state(DeviceState::Joining));
    if let Some((number, _)) = never_in.into_iter().find(is_unwanted) {
        return DeviceStep::Remove(number);
    }
    if let Some((number, _)) = of_state(DeviceState::Joining).next() {
        return DeviceStep::Wait(DeviceWait::Joining(number));
    }
    let leaves = |number: MemberNumber, member: &DeviceMember| {
        view.unwanted.contains(&number) || view.drained.contains(&member.node)
    };
    if let Some((number, _)) = of_state(DeviceState::Out).find(|(number, member)| !leaves(*number, member)) {
        return DeviceStep::Fill(number);
    }
    let free = view.allowed.iter().find_map(|serial| Some((taken(view, serial).ok()??, serial)));
    if let Some((node, serial)) = free {
        return DeviceStep::Add { node: node.clone(), serial: serial.clone() };
    }
    let safe = |number: &MemberNumber| view.safe.get(number).copied().unwrap_or_default();
    // One is emptied at a time: data moves once, and what is left has room for it.
    for (number, _) in of_state(DeviceState::Out) {
        match safe(&number) {
            StoreAnswer::Yes if view.unwanted.contains(&number) => return DeviceStep::Remove(number),
            // It stays until somebody wants it removed, or its node is drained no more.
            StoreAnswer::Yes => {}
            StoreAnswer::No => return DeviceStep::Wait(DeviceWait::Emptied(number, true)),
            StoreAnswer::Unknown => return DeviceStep::Wait(DeviceWait::Emptied(number, false)),
        }
    }
    let next = of_state(DeviceState::In).find(|(number, member)| leaves(*number, member));
    next.map_or(DeviceStep::Rest, |(number, _)| DeviceStep::Empty(number))
}

/// The node of a device that may be taken; `None` for one that a member has.
///
/// # Errors
/// Why it is not taken.
pub fn taken<'a>(
    view: &'a DevicesView,
    serial: &DeviceSerial,
) -> Result<Option<&'a NodeName>, DeviceRefusal> {
    let members = || view.members.iter().filter(|(_, member)| member.serial == *serial);
    if members().any(|(_, member)| member.state != DeviceState::Removed) {
        return Ok(None);
    }
    if let Some((number, _)) = members().next() {
        return Err(DeviceRefusal::RemovedBefore(*number));
    }
    if let Some(number) = view.successors.get(serial) {
        return Err(DeviceRefusal::Successor(*number));
    }
    let device = match view.found.get(serial).map(Vec::as_slice) {
        None | Some([]) => return Err(DeviceRefusal::NotFound),
        Some([device]) => device,
        Some(several) => {
            return Err(DeviceRefusal::InSeveral(several.iter().map(|device| device.node.clone()).collect()));
        }
    };
    if !device.used_by.is_empty() {
        return Err(DeviceRefusal::Used(device.clone()));
    }
    if let Some(reason) = view.refused.get(&device.node) {
        return Err(DeviceRefusal::Node(device.node.clone(), reason.clone()));
    }
    if view.drained.contains(&device.node) {
        return Err(DeviceRefusal::Drained(device.node.clone()));
    }
    Ok(Some(&device.node))
}

#[cfg(test)]
mod tests;
