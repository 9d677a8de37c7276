//! A control plane on older data than its nodes have followed, as when a server was started on a copy of an older directory: what it has recorded of
//! their members may be older than they are.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::restored::LATER_ORDER;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::records::node::PresenceState;
use crate::verdict::{Changeset, GuardedChangeset, Write};
use crate::words::counter::Generation;
use crate::words::name::{EnsembleName, NodeName};
use crate::world::fleet::Fleet;

/// What a node reports, with the ensembles held of which it has a member if it follows an order of a later generation than any that is recorded: that
/// was given before the store was set back. It is committed only if that is its last order still.
#[must_use]
pub fn noted(
    fleet: &Fleet,
    (node, generation): (&NodeName, Generation),
    reported: Option<Changeset>,
) -> Option<GuardedChangeset> {
    let written = fleet.orders.get(node).map(|kept| kept.value.generation);
    let is_later = written.is_some_and(|written| generation > written);
    let contradicted: Vec<(Write, EventDraft)> =
        if is_later { contradictions(fleet, node).collect() } else { Vec::new() };
    if contradicted.is_empty() {
        return reported.map(GuardedChangeset::from);
    }
    let mut changeset = reported.unwrap_or_default();
    for (write, event) in contradicted {
        changeset.writes.push(write);
        changeset.events.push(event);
    }
    Some(changeset.guarded_by([Key::Order(node.clone())]))
}

/// The ensembles of which a node has a member, with that they are older than it.
fn contradictions<'a>(
    fleet: &'a Fleet,
    node: &'a NodeName,
) -> impl Iterator<Item = (Write, EventDraft)> + 'a {
    let content = fleet.contents.get(node).into_iter();
    let names: BTreeSet<&EnsembleName> =
        content.flat_map(|content| content.members.keys().chain(content.osds.keys())).collect();
    let what = format!(
        "node {node} {LATER_ORDER}, as where a server was started on older data, or where somebody else has its key: then decommission it"
    );
    names.into_iter().filter_map(move |name| {
        let members = &*fleet.ensemble_members.get(name)?.value;
        // After a restore that was told it is held already, and its nodes have followed later orders, of whatever, without that saying anything of members.
        if members.epoch < fleet.epoch || members.contradicted.contains(&what) {
            return None;
        }
        let mut members = members.clone();
        members.contradicted.insert(what.clone());
        let subject = format!("ensemble/{name}");
        let held =
            EventDraft { kind: "ensemble.held", subject, before: None, after: None, cause: what.clone() };
        Some((Write::put(Record::EnsembleMembers(members)), held))
    })
}

/// The first node of its members that is heard of and follows orders of a later term, with the reason that it gives; `None` if none does.
#[must_use]
pub fn set_back<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> Option<(&'a NodeName, &'a str)> {
    members.members.values().find_map(|member| {
        let reason = fleet.reports.get(&member.node)?.value.set_back()?;
        let presence = fleet.presences.get(&member.node).map(|kept| kept.value.contact);
        let is_heard = presence.is_some_and(|contact| contact != PresenceState::Unreachable);
        is_heard.then_some((&member.node, reason))
    })
}

/// Why nothing is decided, in one line.
#[must_use]
pub fn line((node, reason): (&NodeName, &str)) -> String {
    format!("no member is changed while node {node} accepts no orders: {reason}")
}
