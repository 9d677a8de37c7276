//! The OSDs restarted after the members, one after the other: those that do not work first, and each other one only where the store says that
//! all data can be read and written without it.

use alloc::format;
use alloc::vec::Vec;

use super::{OsdsSight, StoreOsds, known};
use crate::decide::ensembles::rolling::{finish, told};
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::event::EventDraft;
use crate::records::member::MemberState;
use crate::records::node::PresenceState;
use crate::records::osd::{Osd, OsdPhase, StoreAnswer};
use crate::words::counter::MemberNumber;

impl OsdsSight<'_> {
    /// Records which OSDs were restarted, and orders the next one, if there is one now. Answers what is told of it.
    pub(super) fn restart(
        &self,
        members: &mut EnsembleMembers,
        listed: Option<&StoreOsds>,
    ) -> Vec<EventDraft> {
        let mut events = Vec::new();
        let Some(mut request) = members.requests.rolling.clone() else { return events };
        let runs = |number: &MemberNumber| {
            let osd = members.osds.osds.get(number);
            osd.is_some_and(|osd| !self.is_gone(osd) && matches!(osd.phase, OsdPhase::In | OsdPhase::Out))
        };
        request.osds_left.retain(runs);
        request.osd_under_way = request.osd_under_way.filter(|number| request.osds_left.contains(number));
        if let Some((number, osd)) =
            request.osd_under_way.and_then(|number| Some((number, members.osds.osds.get(&number)?)))
            && self.report(members, number, osd).is_some_and(|report| {
                report.state == MemberState::Working && report.restarted >= Some(request.annotation.at)
            })
        {
            request.osds_left.remove(&number);
            request.osd_under_way = None;
            let cause = format!("{} on {}", known::named(number, osd), osd.node);
            events.push(told("ensemble.member_restarted", members, cause));
        }
        members.requests.rolling = Some(request.clone());
        if request.next_osd().is_some() {
            request.osd_under_way = self.next_restart(members, listed);
            members.requests.rolling = Some(request);
        }
        events.extend(finish(members));
        events
    }

    /// The OSD that is restarted now; `None` while it is waited for something.
    fn next_restart(&self, members: &EnsembleMembers, listed: Option<&StoreOsds>) -> Option<MemberNumber> {
        let request = members.requests.rolling.as_ref()?;
        let works = |number: MemberNumber, osd: &Osd| {
            let report = self.report(members, number, osd);
            self.is_heard(osd) && report.is_some_and(|report| report.state == MemberState::Working)
        };
        let serving = || members.osds.present().filter(|(_, osd)| osd.phase != OsdPhase::Joining);
        // One that does not work takes nothing from the store, and may be what the restart is to mend.
        let broken = || serving().filter(|(number, osd)| !works(*number, osd));
        let may_be_mended =
            |(number, osd): &(MemberNumber, &Osd)| request.osds_left.contains(number) && self.is_heard(osd);
        if broken().next().is_some() {
            return broken().find(may_be_mended).map(|(number, _)| number);
        }
        let next = request.next_osd()?;
        let stored = listed?.get(&Osd::uuid(&members.identity, next))?;
        (stored.ok_to_stop == StoreAnswer::Yes).then_some(next)
    }

    /// Whether its node is heard of.
    fn is_heard(&self, osd: &Osd) -> bool {
        let contact = self.fleet.presences.get(&osd.node).map(|kept| kept.value.contact);
        contact == Some(PresenceState::Up)
    }
}
