//! The members of a store that was adopted which are not of the ensemble: how many there are, what is told of them, and whose the store is already.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::strangers::number_in;
use crate::decide::placement::quorum::OtherVoters;
use crate::records::ensemble_adoption::{ForeignMember, list, named};
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::event::EventDraft;
use crate::records::member::Membership;
use crate::words::name::EnsembleName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// The members that vote and are not of the ensemble.
#[must_use]
pub fn others(members: &EnsembleMembers) -> OtherVoters {
    let foreign = || members.adoption.iter().flat_map(|adoption| adoption.foreign.values());
    let count = |is: fn(&ForeignMember) -> bool| foreign().filter(|member| is(member)).count();
    OtherVoters {
        working: count(|member| member.votes && member.answers),
        silent: count(|member| member.votes && !member.answers),
        learners: count(|member| !member.votes),
    }
}

/// Those that keep the store from taking another member, each with its name.
pub(super) fn hindering(members: &EnsembleMembers) -> Vec<(&String, &ForeignMember)> {
    let foreign = members.adoption.iter().flat_map(|adoption| &adoption.foreign);
    foreign.filter(|(_, member)| !member.votes || !member.answers).collect()
}

/// The ensemble that has the store already that another one is about to adopt, with the endpoints of that; `None` if none has.
#[must_use]
pub fn taken(fleet: &Fleet, members: &EnsembleMembers) -> Option<(EnsembleName, String)> {
    let adoption = members.adoption.as_ref().filter(|adoption| adoption.cluster_id.is_none())?;
    let read = members.members.iter().filter_map(|(number, member)| {
        let known = fleet.node_members.get(&member.node)?.value.members.get(&members.ensemble)?;
        let is_of = known.report.number == *number && known.report.identity == members.identity;
        known.report.outside.as_ref().filter(|_| is_of)
    });
    let others = || fleet.ensemble_members.values().map(|kept| &*kept.value);
    let has = |other: &EnsembleMembers, read: &Membership| {
        let has_id = other
            .adoption
            .as_ref()
            .is_some_and(|of| of.cluster_id.is_some() && of.cluster_id == read.cluster_id);
        let mut ids = other.members.values().filter_map(|member| member.store_id.as_ref());
        has_id || other.service.is_etcd() && ids.any(|id| read.members.contains_key(id))
    };
    let mut taken = read.filter_map(|read| {
        let of = others().find(|other| other.ensemble != members.ensemble && has(other, read))?;
        Some((of.ensemble.clone(), list(&adoption.endpoints)))
    });
    taken.next()
}

/// That a store belongs to another ensemble already.
#[must_use]
pub fn taken_line((ensemble, endpoints): &(EnsembleName, String)) -> String {
    format!(
        "the store at {endpoints} is that of ensemble {ensemble} already: delete this ensemble, or name another store"
    )
}

/// Each member that is not of the ensemble, with its state and what is to become of it, line by line.
#[must_use]
pub fn lines(members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    let Some(adoption) = &members.adoption else { return Vec::new() };
    let line = |(id, member): (&String, &ForeignMember)| {
        let since = now.since(member.since).brief();
        let votes = if member.votes { "votes" } else { "does not vote" };
        let answers = if member.answers { "answers" } else { "does not answer" };
        let asked = adoption.removals.get(id).map(|asked| {
            format!(
                "; it is to be removed from the store, as was asked {} ago {asked}",
                now.since(asked.at).brief()
            )
        });
        let asked = asked.unwrap_or_default();
        let what = match number_in(members, &member.name).is_some() {
            true => "is run by something else, or by a node on which it is not recorded",
            false => "is run by something else",
        };
        format!("{} {what}: it {votes}, and {answers} for {since}{asked}", named(id, member))
    };
    adoption.foreign.iter().map(line).collect()
}

/// What changed of the members that are not of the ensemble.
pub(super) fn events(before: &EnsembleMembers, after: &EnsembleMembers) -> Vec<EventDraft> {
    let of = |members: &EnsembleMembers| members.adoption.as_ref().map(|adoption| adoption.foreign.clone());
    let (before, present) = (of(before).unwrap_or_default(), of(after).unwrap_or_default());
    let ids: BTreeSet<&String> = before.keys().chain(present.keys()).collect();
    let told = |id: &String| {
        let (former, now) = (before.get(id), present.get(id));
        let [former_state, state] = [former, now].map(|member| member.map(ForeignMember::as_str));
        let member = now.or(former).filter(|_| former_state != state)?;
        Some(EventDraft {
            kind: "ensemble.foreign_member_changed",
            subject: format!("ensemble/{}", after.ensemble),
            before: former_state.map(ToString::to_string),
            after: state.map(ToString::to_string),
            cause: named(id, member),
        })
    };
    ids.into_iter().filter_map(told).collect()
}
