//! Who is seen as the primary of an ensemble, which history of writes it has, and what is told of that.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::EnsembleSight;
use crate::decide::placement::primary::{InstanceState, Instances, PrimaryStep, PrimaryWait};
use crate::records::ensemble::EnsembleService;
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use crate::records::event::EventDraft;
use crate::records::member::Replication;
use crate::records::primary::PrimaryRecord;
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

impl EnsembleSight<'_> {
    /// Notes who is seen as the primary, and who has its data.
    pub(super) fn note_lead(&self, members: &mut EnsembleMembers) {
        let said = |number: MemberNumber| {
            let member = members.members.get(&number)?;
            Some(self.said(number, member)?.clone())
        };
        let mut lead = members.lead.clone();
        if let Some(said) = lead.primary.and_then(said).filter(|said| said.is_primary) {
            note_primary(&mut lead, &said, self.now);
        }
        if let Some((to, said)) = lead.handover.and_then(|to| Some((to, said(to)?)))
            && said.is_primary
            && said.former.is_some()
            && said.former == lead.history
        {
            lead.former = lead.history.replace(said.history);
            lead.run = Some(said.run);
            (lead.primary, lead.promotion, lead.handover) = (Some(to), None, None);
            lead.follows.remove(&to);
            lead.cut_off.clear();
        }
        lead.handover = lead.handover.filter(|to| !is_stale(&lead, said, *to));
        self.note_first_history(members, &mut lead);
        // Of one that says nothing it is what it was.
        lead.blocked_since = match lead.primary.and_then(said) {
            Some(said) if said.is_primary && said.cannot_store => lead.blocked_since.or(Some(self.now)),
            Some(_) => None,
            None => lead.blocked_since,
        };
        lead.cut_off = self.cut_off(members, &lead);
        let knows = lead.handover.and_then(said).is_some_and(|said| said.takes_over);
        lead.is_handover_known = lead.handover.is_some() && (lead.is_handover_known || knows);
        for number in members.members.keys() {
            let is_whole = |said: Replication| said.is_whole && Some(&said.history) == lead.history.as_ref();
            if said(*number).is_some_and(is_whole) {
                lead.had_data.insert(*number);
            }
        }
        members.is_bootstrapped |= lead.history.is_some();
        members.lead = lead;
    }

    /// The members that are heard of and cut off from the others, each since when. Of one that is not heard of for a moment it is what it was.
    fn cut_off(&self, members: &EnsembleMembers, lead: &PrimaryRecord) -> BTreeMap<MemberNumber, Timestamp> {
        let (EnsembleService::Redis(redis), Some(primary)) = (&members.service, lead.primary) else {
            return BTreeMap::new();
        };
        let of = members.members.get(&primary).map(|member| &member.peer_url);
        let is_cut = |number: MemberNumber, said: &Replication, was_cut: bool| match number == primary {
            true => said.is_primary && said.replicas.len() < redis.min_replicas as usize,
            // Before it copies anew, or while it does, it is connected.
            false => {
                let was_to_follow = said.follows.as_ref() == of || was_cut && said.follows.is_none();
                !said.is_primary && said.is_whole && !said.streams && was_to_follow
            }
        };
        let since = |(number, member): (&MemberNumber, &Member)| {
            let before = lead.cut_off.get(number).copied();
            let is_cut = match self.said(*number, member) {
                Some(said) => is_cut(*number, said, before.is_some()),
                None => before.is_some() && self.nodes.get(&member.node).is_some_and(|node| node.is_suspect),
            };
            let serves = member.phase == MemberPhase::Serving;
            (is_cut && serves).then(|| (*number, before.unwrap_or(self.now)))
        };
        members.members.iter().filter_map(since).collect()
    }

    /// Of the first replica that a primary gets it is known what history that writes, if the primary itself is not heard of any more.
    fn note_first_history(&self, members: &EnsembleMembers, lead: &mut PrimaryRecord) {
        let Some(primary) = lead.primary.filter(|_| lead.promotion.is_none()) else { return };
        let Some(member) = members.members.get(&primary) else { return };
        if self.said(primary, member).is_some() {
            return;
        }
        let url = &member.peer_url;
        if lead.had_data.iter().any(|number| *number != primary) {
            return;
        }
        let mut said = members.members.iter().filter_map(|(number, member)| self.said(*number, member));
        let first = said.find(|said| said.streams && said.is_whole && said.follows.as_ref() == Some(url));
        if let Some(first) = first.filter(|first| lead.history.as_ref() != Some(&first.history)) {
            lead.former = lead.history.replace(first.history.clone());
        }
    }

    /// That no other member may take over, or that the former primary goes on.
    pub(super) fn primary_held(&self, members: &EnsembleMembers, step: &PrimaryStep) -> Option<EventDraft> {
        let (before, after) = (&self.members.lead, &members.lead);
        let primary = after.primary?;
        let goes_on = before.primary == Some(primary)
            && before.promotion.is_none()
            && after.promotion.as_ref().is_some_and(|promotion| promotion.history.is_none());
        let (kind, cause) = if after.is_held && !before.is_held {
            let reason = held_by(step).unwrap_or_default();
            ("ensemble.failover_held", format!("no other member may take over now{reason}"))
        } else if goes_on {
            let cause = "the former primary goes on with what is on its disk";
            ("ensemble.primary_continued", cause.to_string())
        } else {
            return None;
        };
        Some(EventDraft {
            kind,
            subject: format!("ensemble/{}", members.ensemble),
            before: None,
            after: Some(primary.to_string()),
            cause: format!("{cause}: see why ensemble/{}", members.ensemble),
        })
    }

    /// That a replica is cut off from the primary while that works, or is not any more. One that is being restarted is so as ordered; a primary
    /// without replicas is told of by them.
    pub(super) fn cut_off_changed(
        &self,
        members: &EnsembleMembers,
        instances: &Instances,
    ) -> Vec<EventDraft> {
        let [before, after] = [&self.members.lead, &members.lead];
        let primary = after.primary.and_then(|number| instances.get(&number));
        let is_up = primary.is_some_and(|primary| primary.state == InstanceState::Up);
        let restarted = members.requests.rolling.as_ref().and_then(|request| request.under_way);
        let told = |(number, member): (&MemberNumber, &Member)| {
            let [was_cut, is_cut] = [before, after].map(|lead| lead.cut_off.contains_key(number));
            let gets_data = || self.said(*number, member).is_some_and(|said| said.streams);
            let kind = match was_cut {
                false if is_cut && is_up && restarted != Some(*number) => "ensemble.member_cut_off",
                true if !is_cut && gets_data() => "ensemble.member_reconnected",
                true | false => return None,
            };
            let subject = format!("ensemble/{}", members.ensemble);
            let cause = format!("member {number} on {} and the primary", member.node);
            Some(EventDraft { kind, subject, before: None, after: None, cause })
        };
        let replicas = members.members.iter().filter(|(number, _)| after.primary != Some(**number));
        replicas.filter_map(told).collect()
    }

    /// That another member is the primary.
    pub(super) fn primary_changed(&self, members: &EnsembleMembers) -> Option<EventDraft> {
        let (before, after) = (&self.members.lead, &members.lead);
        let primary = after.primary.filter(|primary| before.primary != Some(*primary))?;
        let on = |number: MemberNumber| match members.members.get(&number) {
            Some(member) => format!("member {number} on {}", member.node),
            None => format!("member {number}"),
        };
        let cause = match (before.primary, &after.promotion) {
            (None, _) => format!("{} is the first", on(primary)),
            (Some(former), Some(_)) => {
                let why = match before.cut_off.contains_key(&former) {
                    true => "was cut off from its replicas",
                    false if before.blocked_since.is_some() => "cannot write to its disk",
                    false => "does not work or was started anew",
                };
                format!("{} takes over from {}, which {why}", on(primary), on(former))
            }
            (Some(former), None) => format!("{} has handed over to {}", on(former), on(primary)),
        };
        Some(EventDraft {
            kind: "ensemble.primary_changed",
            subject: format!("ensemble/{}", members.ensemble),
            before: before.primary.map(|number| number.to_string()),
            after: Some(primary.to_string()),
            cause,
        })
    }
}

/// Whether a member that is to take over is a former primary that does not know yet that it is none any more, while the present one goes on: it
/// would take itself for one that has taken over.
fn is_stale(
    lead: &PrimaryRecord,
    said: impl Fn(MemberNumber) -> Option<Replication>,
    to: MemberNumber,
) -> bool {
    let goes_on = lead.primary.and_then(&said);
    let goes_on = goes_on.is_some_and(|said| said.is_primary && Some(&said.history) == lead.history.as_ref());
    goes_on && said(to).is_some_and(|said| said.is_primary && said.former != lead.history)
}

/// The member that was ordered to be the primary says that it is.
fn note_primary(lead: &mut PrimaryRecord, said: &Replication, now: Timestamp) {
    match &lead.promotion {
        Some(promotion) => {
            let is_meant = promotion.history.is_none()
                || said.former == promotion.history
                || promotion.history.as_ref() == Some(&said.history);
            if !is_meant {
                return;
            }
            if promotion.is_failover {
                lead.failed_over = Some(now);
            }
            lead.former = promotion.history.clone();
            (lead.history, lead.run) = (Some(said.history.clone()), Some(said.run.clone()));
            lead.promotion = None;
        }
        // A primary begins another history with the first replica that it gets, as nobody has what it wrote before.
        None if lead.run.as_ref() == Some(&said.run) && lead.history.as_ref() != Some(&said.history) => {
            lead.former = lead.history.replace(said.history.clone());
        }
        None => {}
    }
}

/// Whether the primary does not work, and no other member takes over before something changes.
pub(super) fn is_held(step: &PrimaryStep) -> bool {
    held_by(step).is_some()
}

/// What keeps another member from taking over before something changes, behind that none may; `None` if nothing does.
fn held_by(step: &PrimaryStep) -> Option<String> {
    let PrimaryStep::Wait(wait) = step else { return None };
    let listed = |numbers: &[MemberNumber]| {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!("{} {}", if numbers.len() == 1 { "member" } else { "members" }, numbers.join(" and "))
    };
    match wait {
        PrimaryWait::StillStreams(numbers) => {
            Some(format!(", as {} still had data from it, or connections to it", listed(numbers)))
        }
        PrimaryWait::Quiet { .. } => Some(", as another one took over less than an hour before".to_string()),
        PrimaryWait::TooFewReached { reached, needed, silent, anew, is_back: _ } => {
            let silent = (!silent.is_empty()).then(|| format!("; without contact: {}", listed(silent)));
            let anew = (!anew.is_empty()).then(|| format!("; started anew: {}", listed(anew)));
            let of = format!(", as {reached} of {needed} that are needed were known to have its data");
            Some([Some(of), silent, anew].into_iter().flatten().collect())
        }
        PrimaryWait::NoCandidate => Some(", as none had what it wrote".to_string()),
        PrimaryWait::Blocked { until: None, .. } => {
            Some(", as none had its data, and it cannot write to its disk".to_string())
        }
        PrimaryWait::OthersHaveMore(numbers) => {
            Some(format!(", as it was started anew, and {} may have more keys than it", listed(numbers)))
        }
        PrimaryWait::Joining(_)
        | PrimaryWait::Silent { .. }
        | PrimaryWait::NoSuccessor(_)
        | PrimaryWait::Blocked { until: Some(_), .. }
        | PrimaryWait::Alone { .. }
        | PrimaryWait::LeaverStreams(_)
        | PrimaryWait::Copies(_)
        | PrimaryWait::Syncing { .. }
        | PrimaryWait::NoRoom { .. } => None,
    }
}
