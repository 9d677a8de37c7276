//! Presence of nodes. Compares stored presences with the open sessions, on every server for the nodes that
//! hold sessions with it; the leader also for the nodes of servers that are gone.

mod contacts;
pub mod context;
mod finding;
mod settle;

use alloc::string::ToString;
use alloc::vec;

use crate::decide::liveness::context::LivenessContext;
use crate::decide::liveness::finding::{PresenceChange, PresenceFinding, look};
use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::node::{Presence, PresenceState};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::NodeName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;
pub use contacts::Contacts;

/// Updates presences that differ from the sessions. Costs time in proportion to what changed since the last
/// call.
///
/// Woken by: sessions opening and closing, nodes joining, servers coming and going, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, contacts: &Contacts, watch: &LivenessContext<'_>, now: Timestamp) -> Verdict {
    let mut verdict = Verdict { changesets: vec![], wake: contacts.next_due() };
    for node in contacts.unsettled() {
        match look(fleet, contacts, node, watch, now) {
            PresenceFinding::Unchanged => {}
            PresenceFinding::Waits(due) => {
                verdict.wake = Some(verdict.wake.map_or(due, |wake| wake.min(due)))
            }
            PresenceFinding::Changes(found) => verdict.changesets.extend(change(fleet, node, found, now)),
        }
    }
    verdict
}

/// `None` if the node does not exist any more.
fn change(fleet: &Fleet, node: &NodeName, found: PresenceChange<'_>, now: Timestamp) -> Option<Changeset> {
    let PresenceChange { contact, server, cause } = found;
    fleet.active_node(node)?;
    let kept = fleet.presences.get(node).map(|kept| &*kept.value);
    let same = kept.filter(|presence| presence.contact == contact);
    let presence =
        Presence { contact, since: same.map_or(now, |same| same.since), server: Some(server.clone()) };
    let write = Write::put(Record::Presence(node.clone(), presence));
    // A node that only moved to another server is up as before: no event.
    if same.is_some() {
        return Some(Changeset { writes: vec![write], events: vec![] });
    }
    let before = kept.map(|presence| presence.contact.as_str().to_string());
    let event = EventDraft {
        kind: match contact {
            PresenceState::Up => "node.up",
            PresenceState::Suspect => "node.suspect",
            PresenceState::Unreachable | PresenceState::Never => "node.unreachable",
        },
        subject: alloc::format!("node/{node}"),
        before,
        after: Some(contact.as_str().to_string()),
        cause,
    };
    Some(Changeset { writes: vec![write], events: vec![event] })
}

#[cfg(test)]
mod tests;
