//! What is said of the OSDs of a Ceph, and of devices that are not taken.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::OsdsSight;
use super::known::{KnownOsd, known, named};
use crate::decide::ensembles::EnsembleSight;
use crate::decide::ensembles::candidates::candidates;
use crate::decide::ensembles::verdict::nodes;
use crate::decide::placement::devices::{DeviceRefusal, taken};
use crate::records::ensemble::Ensemble;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member::MemberState;
use crate::records::osd::{OsdPhase, OsdReport, SafeToRemove};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Each OSD with its state, what it complains of, and why each device that is allowed and free of members is not taken.
#[must_use]
pub fn lines(fleet: &Fleet, ensemble: &Ensemble, members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    let mut lines = osds(fleet, members, now);
    let (nodes, listening_since) = (nodes(fleet, members), Timestamp::EPOCH);
    let sight = EnsembleSight { ensemble, members, nodes: &nodes, is_stopped: false, listening_since, now };
    let places = candidates(fleet, ensemble);
    let view = OsdsSight { sight: &sight, fleet, places: &places }.view(members, None);
    let refused = view.allowed.iter().filter_map(|serial| Some((serial, taken(&view, serial).err()?)));
    lines.extend(
        refused.map(|(serial, refusal)| format!("device {serial} is not taken: {}", reason(&refusal))),
    );
    let unnamed = members.osds.present().filter(|(_, osd)| !view.allowed.contains(&osd.serial));
    lines.extend(unnamed.map(|(number, osd)| {
        format!(
            "{} is not in the list of devices any more; it stays, as nobody asked for its removal",
            named(number, osd)
        )
    }));
    lines
}

/// Each OSD with its state, and what it complains of.
#[must_use]
pub fn osds(fleet: &Fleet, members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    // Of those that are gone, only their devices are left to tell of.
    let is_gone = |known: &KnownOsd<'_>| {
        let has_left = known.report.is_none_or(|report| report.state == MemberState::Left);
        known.osd.phase == OsdPhase::Removed && known.stored.is_none() && has_left
    };
    let osds = known(fleet, members).into_iter().filter(|known| !is_gone(known));
    osds.map(|known| line(&known, now)).collect()
}

fn line(known: &KnownOsd<'_>, now: Timestamp) -> String {
    let KnownOsd { number, osd, report, stored } = known;
    let since = now.since(osd.since).brief();
    let does = match osd.phase {
        OsdPhase::Joining => "joins",
        OsdPhase::In if osd.fills => "is to have data again",
        OsdPhase::In => "is in",
        OsdPhase::Out if stored.is_some_and(|stored| stored.safe == SafeToRemove::Yes) => {
            "is empty, so that its node may be switched off, and has been out"
        }
        OsdPhase::Out if osd.is_unwanted => "is being emptied, since its removal was asked for,",
        OsdPhase::Out => "is being emptied, since its node is drained,",
        OsdPhase::Removed => "is being removed",
    };
    let down =
        stored.filter(|stored| !stored.is_up && osd.phase != OsdPhase::Removed).map(|_| "; it is down");
    let is_well = |report: &&OsdReport| report.reason.is_empty() || report.state == MemberState::Left;
    let said = report.filter(|report| !is_well(report)).map(|report| format!("; it {}", report.reason));
    format!(
        "{} on node {} {does} for {since}{}{}",
        named(*number, osd),
        osd.node,
        down.unwrap_or_default(),
        said.unwrap_or_default()
    )
}

/// Why a device is not taken, in words.
fn reason(refusal: &DeviceRefusal) -> String {
    match refusal {
        DeviceRefusal::NotFound => {
            "no node offers it: name it in devices or device_paths of [ensembles] of its agent".to_string()
        }
        DeviceRefusal::InSeveral(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            format!("nodes {} have one of this serial number each", nodes.join(" and "))
        }
        DeviceRefusal::Used(by) => format!("there is {} on it", by.join(" and ")),
        DeviceRefusal::Node(reason) => format!("its node may have no new OSD: {reason}"),
        DeviceRefusal::Drained => "its node is drained".to_string(),
        DeviceRefusal::RemovedBefore(number) => format!(
            "OSD {number}, which had it, was removed; to have it taken again, wipe it, take it out of the list of devices, and put it in again"
        ),
    }
}
