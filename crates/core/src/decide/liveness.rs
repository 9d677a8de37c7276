//! Who has gone silent. Compares stored presences with the sessions that are open right now.

mod contacts;

use alloc::string::{String, ToString};
use alloc::vec;

pub use contacts::Contacts;

use crate::records::event::Draft;
use crate::records::key::Record;
use crate::records::node::{Contact, Presence};
use crate::verdict::{Atom, Verdict, Write};
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// How long a node may be quiet. Counted from the end of its last session; a session that dies without a word is
/// noticed by pings within 15 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Quiet for so long is `suspect`.
    pub suspect: Span,
    /// Quiet for so long is `unreachable`. Longer than `suspect`.
    pub unreachable: Span,
}

impl Default for Limits {
    /// 5 s and 15 s: with the pings that is at most 20 s and 30 s after a cable is cut.
    fn default() -> Self {
        Self { suspect: Span::from_secs(5), unreachable: Span::from_secs(15) }
    }
}

/// Presences that are out of step with the sessions.
///
/// Woken by: sessions opening and closing, nodes joining, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, contacts: &Contacts, limits: Limits, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for node in contacts.unsettled() {
        let heard = contacts.heard_at(node).is_some_and(|heard| now.since(heard) < limits.suspect);
        if (contacts.is_connected(node) || heard) && !is(fleet, node, Contact::Up) {
            change(fleet, node, (Contact::Up, now), "it holds a session", &mut verdict);
        }
        if !contacts.is_connected(node) && (heard || fleet.present.contains(node)) {
            quiet(fleet, node, (contacts.quiet_since(node), now), limits, &mut verdict);
        }
    }
    verdict
}

fn quiet(
    fleet: &Fleet,
    node: &NodeName,
    (since, now): (Timestamp, Timestamp),
    limits: Limits,
    verdict: &mut Verdict,
) {
    let quiet = now.since(since);
    if quiet >= limits.unreachable && !is(fleet, node, Contact::Unreachable) {
        return change(fleet, node, (Contact::Unreachable, now), &silent(quiet), verdict);
    }
    if quiet >= limits.suspect && !is(fleet, node, Contact::Suspect) {
        change(fleet, node, (Contact::Suspect, now), &silent(quiet), verdict);
    }
    let due = since.plus(if quiet < limits.suspect { limits.suspect } else { limits.unreachable });
    verdict.wake = Some(verdict.wake.map_or(due, |other| other.min(due)));
}

fn is(fleet: &Fleet, node: &NodeName, contact: Contact) -> bool {
    fleet.presences.get(node).is_some_and(|kept| kept.value.contact == contact)
}

fn silent(quiet: Span) -> String {
    alloc::format!("nothing was heard from it for {}", Span::from_secs(quiet.as_millis() / 1_000))
}

fn change(
    fleet: &Fleet,
    node: &NodeName,
    (contact, now): (Contact, Timestamp),
    cause: &str,
    verdict: &mut Verdict,
) {
    if fleet.active_node(node).is_none() {
        return;
    }
    let before = fleet.presences.get(node).map(|kept| kept.value.contact.as_str().to_string());
    let event = Draft {
        kind: match contact {
            Contact::Up => "node.up",
            Contact::Suspect => "node.suspect",
            Contact::Unreachable | Contact::Never => "node.unreachable",
        },
        subject: alloc::format!("node/{node}"),
        before,
        after: Some(contact.as_str().to_string()),
        cause: cause.to_string(),
    };
    let presence = Presence { contact, since: now };
    let write = Write::put(Record::Presence(node.clone(), presence));
    verdict.atoms.push(Atom { writes: vec![write], events: vec![event] });
}

#[cfg(test)]
mod tests;
