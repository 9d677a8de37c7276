//! The OSDs of a Ceph: what is recorded of them follows what their nodes and the store report, then the next change begins. One is emptied
//! before it is removed, and removed only because a person asked for it and the store says that nothing is lost.

pub mod explain;
pub mod known;
mod restart;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::EnsembleSight;
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::devices::{
    DeviceMember, DeviceState, DeviceStep, DevicesView, FoundDevice, next_step,
};
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::event::EventDraft;
use crate::records::member::MemberState;
use crate::records::osd::{
    EnsembleOsds, Osd, OsdAction, OsdChange, OsdPhase, OsdReport, StoreAnswer, StoreOsd,
};
use crate::words::counter::MemberNumber;
use crate::words::name::{DeviceSerial, NodeName};
use crate::world::fleet::Fleet;

/// What is known of the OSDs of an ensemble.
#[derive(Clone, Copy)]
pub(super) struct OsdsSight<'a> {
    pub(super) sight: &'a EnsembleSight<'a>,
    pub(super) fleet: &'a Fleet,
    pub(super) places: &'a CandidateNodes,
}

type StoreOsds = BTreeMap<String, StoreOsd>;

impl OsdsSight<'_> {
    /// The OSDs as they are to be recorded, beside members as they are to be; what is told of them.
    pub(super) fn decide(&self, members: &mut EnsembleMembers) -> Vec<EventDraft> {
        let before = members.osds.clone();
        let has_any = self.allowed().next().is_some() || !members.osds.osds.is_empty();
        members.osds.reader = self.reader(members).filter(|_| has_any);
        let listed = self.listed(members).cloned();
        self.advance(members, listed.as_ref());
        // Nothing begins before the store says what it has.
        if let Some(listed) = &listed {
            self.begin(members, listed);
        }
        members.osds.change = listed.as_ref().and_then(|listed| change(members, listed));
        let mut told = events(members, &before);
        told.extend(self.restart(members, listed.as_ref()));
        told
    }

    /// The devices that may be taken.
    pub(super) fn allowed(&self) -> impl Iterator<Item = &DeviceSerial> {
        self.sight.ensemble.service.devices().into_iter().flatten()
    }

    fn reader(&self, members: &EnsembleMembers) -> Option<MemberNumber> {
        self.sight.executor(members, None).map(|(number, _)| number)
    }

    /// The OSDs that the store has, as the reader says now; `None` if it does not.
    pub(super) fn listed(&self, members: &EnsembleMembers) -> Option<&StoreOsds> {
        let reader = members.osds.reader?;
        self.sight.report(reader, members.members.get(&reader)?)?.osds.as_ref()
    }

    /// What the node of an OSD reports of it.
    fn report(&self, members: &EnsembleMembers, number: MemberNumber, osd: &Osd) -> Option<&OsdReport> {
        let known = &self.fleet.node_members.get(&osd.node)?.value;
        known.osds.get(&members.ensemble)?.get(&number).filter(|report| report.identity == members.identity)
    }

    /// Whether its node was decommissioned.
    fn is_gone(&self, osd: &Osd) -> bool {
        self.fleet.active_node(&osd.node).is_none()
    }

    /// Takes each as far as what is reported of it goes.
    fn advance(&self, members: &mut EnsembleMembers, listed: Option<&StoreOsds>) {
        let mut osds = core::mem::take(&mut members.osds.osds);
        let allowed: BTreeSet<&DeviceSerial> = self.allowed().collect();
        osds.retain(|number, osd| {
            let report = self.report(members, *number, osd);
            let stored = listed.and_then(|listed| listed.get(&Osd::uuid(&members.identity, *number)));
            let reported = report.and_then(|report| report.store_number);
            osd.store_number = stored.map(|stored| stored.number).or(osd.store_number).or(reported);
            osd.fills &= !stored.is_some_and(|stored| stored.is_in);
            if osd.phase == OsdPhase::Joining && stored.is_some_and(|stored| stored.is_up && stored.is_in) {
                (osd.phase, osd.since) = (OsdPhase::In, self.sight.now);
            }
            // What is left is that its device is not taken again, for as long as it is named.
            let has_left = report.is_some_and(|report| report.state == MemberState::Left);
            let is_gone = self.is_gone(osd);
            let is_over = osd.phase == OsdPhase::Removed && listed.is_some() && stored.is_none();
            let is_awaited = osd.successor.is_some();
            is_awaited || !(is_over && (has_left || is_gone) && !allowed.contains(&osd.serial))
        });
        members.osds.osds = osds;
    }

    /// Begins the next change.
    fn begin(&self, members: &mut EnsembleMembers, listed: &StoreOsds) {
        let step = next_step(&self.view(members, Some(listed)));
        let now = self.sight.now;
        let osds = &mut members.osds;
        let (number, phase) = match step {
            DeviceStep::Add { node, serial } => return add(osds, node, serial, now),
            DeviceStep::Empty(number) => (number, OsdPhase::Out),
            DeviceStep::Fill(number) => (number, OsdPhase::In),
            DeviceStep::Remove(number) => (number, OsdPhase::Removed),
            DeviceStep::Rest | DeviceStep::Wait(_) => return,
        };
        if let Some(osd) = osds.osds.get_mut(&number) {
            (osd.phase, osd.since, osd.fills) = (phase, now, phase == OsdPhase::In);
        }
    }

    /// The OSDs as the placement sees them.
    pub(super) fn view(&self, members: &EnsembleMembers, listed: Option<&StoreOsds>) -> DevicesView {
        let mut found: BTreeMap<DeviceSerial, Vec<FoundDevice>> = BTreeMap::new();
        let machines = self.places.keys().filter_map(|node| Some((node, self.fleet.node_members.get(node)?)));
        for (node, known) in machines {
            for (serial, device) in &known.value.devices {
                let (path, used_by) = (device.path.clone(), device.used_by.clone());
                let device = FoundDevice { node: node.clone(), path, used_by };
                found.entry(serial.clone()).or_default().push(device);
            }
        }
        let refused = self.places.iter().filter_map(|(node, place)| {
            let unmatched = || (!place.matches).then(|| "the filter does not match it".to_string());
            Some((node.clone(), place.refusal.clone().or_else(unmatched)?))
        });
        let member = |(number, osd): (&MemberNumber, &Osd)| {
            let state = match osd.phase {
                OsdPhase::Joining => {
                    // One whose node cannot make it holds up no other one, either.
                    let refuses = self.report(members, *number, osd).is_some_and(|report| {
                        matches!(report.state, MemberState::Refused | MemberState::Failed)
                    });
                    let is_gone = self.is_gone(osd);
                    if refuses || is_gone { DeviceState::Refused } else { DeviceState::Joining }
                }
                OsdPhase::In => DeviceState::In,
                OsdPhase::Out => DeviceState::Out,
                OsdPhase::Removed => DeviceState::Removed,
            };
            (*number, DeviceMember { node: osd.node.clone(), serial: osd.serial.clone(), state })
        };
        let stored = |number: MemberNumber| listed?.get(&Osd::uuid(&members.identity, number));
        // Of one that the store does not have, it cannot say anything, and nothing can be lost.
        let safe = |number: MemberNumber| match (listed, stored(number)) {
            (Some(_), None) => StoreAnswer::Yes,
            (_, Some(osd)) => osd.safe,
            (None, None) => StoreAnswer::Unknown,
        };
        let osds = &members.osds.osds;
        // Until the store has forgotten the one whose number it is to have.
        let awaited = |number: MemberNumber, osd: &Osd| {
            let is_over = osd.phase == OsdPhase::Removed && listed.is_some() && stored(number).is_none();
            Some((osd.successor.clone().filter(|_| !is_over)?, number))
        };
        let places = self.places.iter().filter(|(_, place)| place.is_drained).map(|(node, _)| node);
        // What is on a node that was decommissioned is not counted on, and not filled again.
        let gone = osds.values().filter(|osd| self.is_gone(osd)).map(|osd| &osd.node);
        let drained = places.chain(gone);
        DevicesView {
            allowed: self.allowed().cloned().collect(),
            found,
            refused: refused.collect(),
            drained: drained.cloned().collect(),
            members: osds.iter().map(member).collect(),
            unwanted: osds.iter().filter(|(_, osd)| osd.is_unwanted).map(|(number, _)| *number).collect(),
            safe: osds.keys().map(|number| (*number, safe(*number))).collect(),
            successors: osds.iter().filter_map(|(number, osd)| awaited(*number, osd)).collect(),
        }
    }
}

fn add(osds: &mut EnsembleOsds, node: NodeName, serial: DeviceSerial, now: crate::words::time::Timestamp) {
    osds.last = osds.last.next();
    let mut former = osds.osds.values_mut().filter(|osd| osd.successor.as_ref() == Some(&serial));
    let takes = former.next().and_then(|osd| {
        osd.successor = None;
        osd.store_number
    });
    let osd = Osd {
        node,
        serial,
        phase: OsdPhase::Joining,
        since: now,
        store_number: None,
        is_unwanted: false,
        fills: false,
        successor: None,
        takes,
    };
    osds.osds.insert(osds.last, osd);
}

/// The change that is to be made in the store now; `None` if there is none.
fn change(members: &EnsembleMembers, listed: &StoreOsds) -> Option<OsdChange> {
    members.osds.osds.iter().find_map(|(number, osd)| {
        let uuid = Osd::uuid(&members.identity, *number);
        let stored = listed.get(&uuid)?;
        let action = match osd.phase {
            OsdPhase::Out if stored.is_in => OsdAction::Out,
            // One that does not run was put out by the store itself, which puts it in once it does.
            OsdPhase::In if osd.fills && !stored.is_in && stored.is_up => OsdAction::In,
            // The one that had its number was put out.
            OsdPhase::Joining if osd.takes.is_some() && !stored.is_in && stored.is_up => OsdAction::In,
            OsdPhase::Removed if osd.successor.is_some() => OsdAction::Destroy,
            OsdPhase::Removed => OsdAction::Purge,
            OsdPhase::Joining | OsdPhase::In | OsdPhase::Out => return None,
        };
        Some(OsdChange { action, uuid, store_number: stored.number })
    })
}

/// What changed of the OSDs.
fn events(members: &EnsembleMembers, before: &EnsembleOsds) -> Vec<EventDraft> {
    let after = &members.osds;
    let mut numbers: Vec<&MemberNumber> = before.osds.keys().chain(after.osds.keys()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let told = |number: &MemberNumber| {
        let phases = [before, after].map(|of| of.osds.get(number).map(|osd| osd.phase.as_str()));
        let [former, present] = phases;
        let osd = after.osds.get(number).or_else(|| before.osds.get(number))?;
        (former != present).then(|| EventDraft {
            kind: "ensemble.osd_changed",
            subject: format!("ensemble/{}", members.ensemble),
            before: former.map(ToString::to_string),
            after: present.map(ToString::to_string),
            cause: format!("{} on {}", known::named(*number, osd), osd.node),
        })
    };
    numbers.into_iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests;
