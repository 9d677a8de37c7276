//! The changes of the OSDs of a Ceph, one after the other, as if each succeeded.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::step::{MAX_STEPS, PlannedStep};
use crate::decide::ensembles::osds::OsdsSight;
use crate::decide::placement::devices::{DeviceMember, DeviceState, DeviceStep, DeviceWait, next_step};
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::osd::StoreAnswer;
use crate::words::counter::MemberNumber;

/// The changes of OSDs one after the other, as if each succeeded, and what is waited for then.
pub(super) fn steps(sight: &OsdsSight<'_>, members: &EnsembleMembers) -> (Vec<PlannedStep>, Option<String>) {
    if sight.allowed().next().is_none() && members.osds.osds.is_empty() {
        return (Vec::new(), None);
    }
    let mut view = sight.view(members, sight.listed(members));
    let mut last = members.osds.last;
    let mut steps = Vec::new();
    while steps.len() < MAX_STEPS {
        let next = next_step(&view);
        let mut of = |number: MemberNumber, state: DeviceState| {
            let member = view.members.get_mut(&number)?;
            member.state = state;
            // As if each succeeded: nothing is lost once it is empty.
            view.safe.insert(number, StoreAnswer::Yes);
            Some((number, member.node.clone()))
        };
        let step = match next {
            DeviceStep::Rest => break,
            DeviceStep::Add { node, serial } => {
                last = last.next();
                let member =
                    DeviceMember { node: node.clone(), serial: serial.clone(), state: DeviceState::In };
                view.members.insert(last, member);
                Some(PlannedStep::TakeDevice(last, node, serial))
            }
            DeviceStep::Empty(number) => {
                of(number, DeviceState::Out).map(|(number, node)| PlannedStep::EmptyOsd(number, node))
            }
            DeviceStep::Fill(number) => {
                of(number, DeviceState::In).map(|(number, node)| PlannedStep::FillOsd(number, node))
            }
            DeviceStep::Remove(number) => {
                view.successors.retain(|_, of| *of != number);
                of(number, DeviceState::Removed).map(|(number, node)| PlannedStep::RemoveOsd(number, node))
            }
            DeviceStep::Wait(DeviceWait::Joining(number)) => {
                of(number, DeviceState::In).map(|(number, node)| PlannedStep::JoinOsd(number, node))
            }
            DeviceStep::Wait(DeviceWait::Emptied(number, is_known)) => {
                return (steps, Some(emptied(number, is_known)));
            }
        };
        let Some(step) = step else { break };
        steps.push(step);
    }
    (steps, None)
}

fn emptied(number: MemberNumber, is_known: bool) -> String {
    match is_known {
        true => format!(
            "OSD {number} is being emptied: the store says that it cannot be given up without loss yet; it needs other OSDs that have room, \
             on as many nodes as there are to be copies"
        ),
        false => format!(
            "OSD {number} is being emptied, and the store does not say whether it can be given up without loss: it does once all data have a \
             place and its manager answers"
        ),
    }
}
