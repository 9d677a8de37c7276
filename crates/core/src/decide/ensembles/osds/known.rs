//! What is known of each OSD.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member_state::MemberState;
use crate::records::node::PresenceState;
use crate::records::osd::{Osd, OsdPhase, OsdReport, StoreOsd};
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;
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
    /// Since when its node is unreachable; `None` if it is not.
    pub unreachable_since: Option<Timestamp>,
    /// Whether the store is read now, so that one that it does not list is not in it.
    pub is_read: bool,
}

impl KnownOsd<'_> {
    /// Whether it works, as far as is known now. The store is read from time to time, so that its node may know better that one does not run;
    /// and that one still runs of which nobody hears is not known from what the store said before.
    #[must_use]
    pub fn is_up(&self) -> Option<bool> {
        let stored = self.stored.map(|stored| stored.is_up);
        if self.osd.phase == OsdPhase::Removed {
            return stored;
        }
        if self.unreachable_since.is_some() {
            return stored.filter(|is_up| !is_up);
        }
        match self.report.map(|report| report.state) {
            Some(MemberState::Failed | MemberState::Refused) => stored.map(|_| false),
            // While nobody reads the store, such as just after a monitor was lost, its node knows.
            Some(MemberState::Working) => stored.or_else(|| (!self.is_read).then_some(true)),
            Some(MemberState::Prepared | MemberState::Starting | MemberState::Left) | None => stored,
        }
    }
}

/// The OSDs of an ensemble, with what is known of each.
#[must_use]
pub fn known<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> Vec<KnownOsd<'a>> {
    let reader = read(fleet, members);
    let of = |(number, osd): (&MemberNumber, &'a Osd)| {
        let report = fleet.node_members.get(&osd.node).and_then(|known| {
            let report = known.value.osds.get(&members.ensemble)?.get(number)?;
            (report.identity == members.identity).then_some(report)
        });
        let stored = reader.and_then(|listed| listed.get(&Osd::uuid(&members.identity, *number)));
        let presence = fleet.presences.get(&osd.node).map(|kept| &kept.value);
        let unreachable = presence.filter(|presence| presence.contact == PresenceState::Unreachable);
        let unreachable_since = unreachable.map(|presence| presence.since);
        KnownOsd { number: *number, osd, report, stored, unreachable_since, is_read: reader.is_some() }
    };
    members.osds.osds.iter().map(of).collect()
}

/// What the store has, as was read last; `None` if nobody reads it.
fn read<'a>(fleet: &'a Fleet, members: &EnsembleMembers) -> Option<&'a BTreeMap<String, StoreOsd>> {
    let node = &members.members.get(&members.osds.reader?)?.node;
    fleet.node_members.get(node)?.value.members.get(&members.ensemble)?.report.osds.as_ref()
}

/// The numbers in the store of those that it has and that are not recorded: made after the backup that was restored, or by somebody else.
#[must_use]
pub fn unrecorded(fleet: &Fleet, members: &EnsembleMembers) -> Vec<u32> {
    let own: BTreeSet<String> =
        members.osds.osds.keys().map(|number| Osd::uuid(&members.identity, *number)).collect();
    let others = read(fleet, members).into_iter().flatten().filter(|(uuid, _)| !own.contains(*uuid));
    let mut numbers: Vec<u32> = others.map(|(_, osd)| osd.number).collect();
    numbers.sort_unstable();
    numbers
}

/// The name of an OSD in a sentence, with the number that the store gave it.
#[must_use]
pub fn named(number: MemberNumber, osd: &Osd) -> String {
    let store = osd.store_number.map(|number| format!(" (osd.{number})")).unwrap_or_default();
    format!("OSD {number}{store} with device {}", osd.serial)
}
