//! What is said of the OSDs of a Ceph, and of devices that are not taken.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::OsdsSight;
use super::known::{KnownOsd, known, named, unrecorded};
use crate::decide::ensembles::EnsembleSight;
use crate::decide::ensembles::candidates::candidates;
use crate::decide::ensembles::verdict::nodes;
use crate::decide::placement::devices::{DeviceRefusal, taken};
use crate::records::ensemble::Ensemble;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member::MemberState;
use crate::records::osd::{OsdPhase, OsdReport, StoreAnswer};
use crate::words::name::{DeviceSerial, NodeName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Most OSDs that are not recorded that a line names.
const SHOWN: usize = 8;

/// A device that an ensemble names and no OSD has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDevice {
    /// Its serial number.
    pub serial: DeviceSerial,
    /// The node that has it; `None` if that is not one.
    pub node: Option<NodeName>,
    /// Why it is not taken.
    pub reason: String,
}

/// Each device that an ensemble names and no OSD has, and why it is not taken.
#[must_use]
pub fn refused(
    fleet: &Fleet,
    ensemble: &Ensemble,
    members: &EnsembleMembers,
    now: Timestamp,
) -> Vec<RefusedDevice> {
    let (nodes, listening_since) = (nodes(fleet, members), Timestamp::EPOCH);
    let sight = EnsembleSight { ensemble, members, nodes: &nodes, is_stopped: false, listening_since, now };
    let places = candidates(fleet, ensemble);
    let sight = OsdsSight { sight: &sight, fleet, places: &places };
    let view = sight.view(members, sight.listed(members));
    let refused = view.allowed.iter().filter_map(|serial| Some((serial, taken(&view, serial).err()?)));
    refused
        .map(|(serial, refusal)| {
            let (node, reason) = reason(fleet, (ensemble, serial), refusal);
            RefusedDevice { serial: serial.clone(), node, reason }
        })
        .collect()
}

/// Each OSD with its state, what it complains of, and those whose devices the ensemble does not name any more.
#[must_use]
pub fn lines(fleet: &Fleet, ensemble: &Ensemble, members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    let mut lines = osds(fleet, members, now);
    let named_devices = ensemble.service.devices();
    let is_named = |serial: &DeviceSerial| named_devices.is_some_and(|devices| devices.contains(serial));
    let unnamed = members.osds.present().filter(|(_, osd)| !is_named(&osd.serial));
    lines.extend(unnamed.map(|(number, osd)| {
        format!(
            "{} is not in the list of devices any more; it stays, as nobody asked for its removal",
            named(number, osd)
        )
    }));
    let others = unrecorded(fleet, members);
    if !others.is_empty() {
        let shown: Vec<String> = others.iter().take(SHOWN).map(|number| format!("osd.{number}")).collect();
        let more = others.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!(
            "the store has OSDs that are not recorded: {}{more}; they are left as they are, and their devices are not taken; see the guide on ensembles, \
             \"Members that are not recorded\"",
            shown.join(", ")
        ));
    }
    lines
}

/// Each OSD with its state, and what it complains of.
#[must_use]
pub fn osds(fleet: &Fleet, members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    shown(fleet, members).map(|known| line(&known, now)).collect()
}

/// The OSDs that a node has, each with its state and what it complains of.
#[must_use]
pub fn of_node(fleet: &Fleet, members: &EnsembleMembers, node: &NodeName, now: Timestamp) -> Vec<String> {
    shown(fleet, members).filter(|known| known.osd.node == *node).map(|known| line(&known, now)).collect()
}

/// Those that are not gone.
fn shown<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> impl Iterator<Item = KnownOsd<'a>> {
    // Of those that are gone, only their devices are left to tell of.
    let is_gone = |known: &KnownOsd<'_>| {
        let has_left = known.report.is_none_or(|report| report.state == MemberState::Left);
        known.osd.phase == OsdPhase::Removed && known.stored.is_none() && has_left
    };
    known(fleet, members).into_iter().filter(move |known| !is_gone(known))
}

fn line(known: &KnownOsd<'_>, now: Timestamp) -> String {
    let KnownOsd { number, osd, report, stored, unreachable_since, is_read: _ } = known;
    let since = now.since(osd.since).brief();
    let does = match osd.phase {
        OsdPhase::Joining => "joins",
        OsdPhase::In if osd.fills => "is to have data again",
        OsdPhase::In => "is in",
        OsdPhase::Out if stored.is_some_and(|stored| stored.safe == StoreAnswer::Yes) => {
            "is empty, so that its node may be switched off, and has been out"
        }
        OsdPhase::Out if osd.successor.is_some() => "is being emptied, since it is to be replaced,",
        OsdPhase::Out if osd.is_unwanted => "is being emptied, since its removal was asked for,",
        OsdPhase::Out => "is being emptied, since its node is drained,",
        OsdPhase::Removed => "is being removed",
    };
    let is_down = osd.phase != OsdPhase::Removed && known.is_up() == Some(false);
    let down = if is_down { "; it is down" } else { "" };
    let silent = unreachable_since
        .map(|since| format!("; its node is unreachable for {}", now.since(since).brief()))
        .unwrap_or_default();
    let is_well = |report: &&OsdReport| report.reason.is_empty() || report.state == MemberState::Left;
    // What the node said before nobody heard of it any more is old.
    let heard = report.filter(|report| unreachable_since.is_none() && !is_well(report));
    let said = heard.map(|report| format!("; it {}", report.reason)).unwrap_or_default();
    format!("{} on node {} {does} for {since}{down}{silent}{said}", named(*number, osd), osd.node)
}

/// Why a device is not taken, in words, and the node that has it, if it is one.
fn reason(
    fleet: &Fleet,
    (ensemble, serial): (&Ensemble, &DeviceSerial),
    refusal: DeviceRefusal,
) -> (Option<NodeName>, String) {
    match refusal {
        DeviceRefusal::NotFound => (
            None,
            "no node offers it: name it in devices or device_paths of [ensembles] of its agent".to_string(),
        ),
        DeviceRefusal::InSeveral(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            (None, format!("nodes {} have one of this serial number each", nodes.join(" and ")))
        }
        DeviceRefusal::Used(device) => {
            let by = match owner(fleet, (ensemble, serial), &device.node) {
                Some(owner) => format!("{owner} has it"),
                None => format!("it is not free: {}", device.used_by.join(" and ")),
            };
            let reason = format!("{by} ({} on node {})", device.path, device.node);
            (Some(device.node), reason)
        }
        DeviceRefusal::Node(node, reason) => {
            let reason = format!("node {node} may have no new OSD: {reason}");
            (Some(node), reason)
        }
        DeviceRefusal::Drained(node) => {
            let reason = format!("node {node} is drained");
            (Some(node), reason)
        }
        DeviceRefusal::Successor(number) => (
            None,
            format!("it takes the place of OSD {number}, once that is empty, and the store has forgotten it"),
        ),
        DeviceRefusal::RemovedBefore(number) => (
            None,
            format!(
                "OSD {number}, which had it, was removed; to have it taken again, wipe it, take it out of the list of devices, wait until no OSD is listed with it, and put it in again"
            ),
        ),
    }
}

/// The OSD of another ensemble that has a device.
fn owner(fleet: &Fleet, (ensemble, serial): (&Ensemble, &DeviceSerial), node: &NodeName) -> Option<String> {
    let all = fleet.ensemble_members.values().map(|kept| &*kept.value);
    let mut others = all.filter(|members| members.ensemble != ensemble.name);
    others.find_map(|members| {
        let mut osds = members.osds.present();
        let (number, _) = osds.find(|(_, osd)| osd.serial == *serial && osd.node == *node)?;
        Some(format!("OSD {number} of ensemble {}", members.ensemble))
    })
}
