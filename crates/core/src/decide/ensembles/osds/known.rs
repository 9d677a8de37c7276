//! What is known of each OSD.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::ensemble_members::EnsembleMembers;
use crate::records::osd::{Osd, OsdReport, StoreOsd};
use crate::words::counter::MemberNumber;
use crate::world::fleet::Fleet;

/// An OSD, as far as is known.
#[derive(Debug, Clone, Copy)]
pub struct KnownOsd<'a> {
    /// Its number.
    pub number: MemberNumber,
    /// The OSD, as it is recorded.
    pub osd: &'a Osd,
    /// What its node reports of it; `None` if nothing.
    pub report: Option<&'a OsdReport>,
    /// What the store has of it; `None` if it has it not, or nobody can read that.
    pub stored: Option<&'a StoreOsd>,
}

/// The OSDs of an ensemble, with what is known of each.
#[must_use]
pub fn known<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> Vec<KnownOsd<'a>> {
    let reader = members.osds.reader.and_then(|reader| {
        let node = &members.members.get(&reader)?.node;
        fleet.node_members.get(node)?.value.members.get(&members.ensemble)?.report.osds.as_ref()
    });
    let of = |(number, osd): (&MemberNumber, &'a Osd)| {
        let report = fleet.node_members.get(&osd.node).and_then(|known| {
            let report = known.value.osds.get(&members.ensemble)?.get(number)?;
            (report.identity == members.identity).then_some(report)
        });
        let stored = reader.and_then(|listed| listed.get(&Osd::uuid(&members.identity, *number)));
        KnownOsd { number: *number, osd, report, stored }
    };
    members.osds.osds.iter().map(of).collect()
}

/// The name of an OSD in a sentence, with the number that the store gave it.
#[must_use]
pub fn named(number: MemberNumber, osd: &Osd) -> String {
    let store = osd.store_number.map(|number| format!(" (osd.{number})")).unwrap_or_default();
    format!("OSD {number}{store} with device {}", osd.serial)
}
