//! Who has gone silent. Compares stored presences with the sessions that are open right now, on every server for the
//! nodes that it holds; the leader also for those whose server is gone.

mod contacts;
pub mod context;
mod finding;
mod settle;

use alloc::string::ToString;
use alloc::vec;

use crate::decide::liveness::context::LivenessContext;
use crate::decide::liveness::finding::{PresenceFinding, look};
use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::node::{Presence, PresenceState};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{NodeName, ServerName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;
pub use contacts::Contacts;

/// Presences that are out of step with the sessions. Costs what changed since the last look, not what there is.
///
/// Woken by: sessions opening and closing, nodes joining, servers coming and going, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, contacts: &Contacts, watch: &LivenessContext<'_>, now: Timestamp) -> Verdict {
    let mut verdict = Verdict { changesets: vec![], wake: contacts.next_due() };
    for node in contacts.unsettled() {
        match look(fleet, contacts, (node, watch), now) {
            PresenceFinding::Unchanged => {}
            PresenceFinding::Waits(due) => {
                verdict.wake = Some(verdict.wake.map_or(due, |wake| wake.min(due)))
            }
            PresenceFinding::Changes(contact, server, cause) => {
                verdict.changesets.extend(change(fleet, node, (contact, now), (server, &cause)));
            }
        }
    }
    verdict
}

/// Nothing, if there is no such node any more.
fn change(
    fleet: &Fleet,
    node: &NodeName,
    (contact, now): (PresenceState, Timestamp),
    (server, cause): (&ServerName, &str),
) -> Option<Changeset> {
    fleet.active_node(node)?;
    let kept = fleet.presences.get(node).map(|kept| &*kept.value);
    let same = kept.filter(|presence| presence.contact == contact);
    let presence =
        Presence { contact, since: same.map_or(now, |same| same.since), server: Some(server.clone()) };
    let write = Write::put(Record::Presence(node.clone(), presence));
    // A node that only calls another server is as up as it was: nothing to tell.
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
        cause: cause.to_string(),
    };
    Some(Changeset { writes: vec![write], events: vec![event] })
}

#[cfg(test)]
mod tests;
