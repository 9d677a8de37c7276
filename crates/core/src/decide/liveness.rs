//! Who has gone silent. Compares stored presences with the sessions that are open right now, on every server for the
//! nodes that it holds; the leader also for those whose server is gone.

mod contacts;

use alloc::string::{String, ToString};
use alloc::vec;

pub use contacts::Contacts;

use crate::records::event::Draft;
use crate::records::key::Record;
use crate::records::node::{Contact, Presence};
use crate::records::server::Server;
use crate::verdict::{Atom, Verdict, Write};
use crate::words::name::{NodeName, ServerName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;
use crate::world::{Kept, Map};

/// How long a node may be quiet. Counted from the end of its last session; a session that dies without a word is
/// noticed by pings within 15 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Quiet for so long is `suspect`.
    pub suspect: Span,
    /// Quiet for so long is `unreachable`. Longer than `suspect`.
    pub unreachable: Span,
    /// What nodes are given besides to find a server again, when theirs went or began anew.
    pub reconnect: Span,
}

impl Default for Limits {
    /// 5 s and 15 s: with the pings that is at most 20 s and 30 s after a cable is cut. 15 s for a whole fleet to find
    /// another server: agents call again within 8 s, and ten thousand handshakes take a few more.
    fn default() -> Self {
        Self { suspect: Span::from_secs(5), unreachable: Span::from_secs(15), reconnect: Span::from_secs(15) }
    }
}

/// From where it is looked, and with which limits.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// The server that looks.
    pub me: &'a ServerName,
    /// The servers that have their place now.
    pub servers: &'a Map<ServerName, Kept<Server>>,
    /// Whether it leads, and so looks after the nodes of servers that are gone.
    pub leads: bool,
    /// How long a node may be quiet.
    pub limits: Limits,
}

impl Watch<'_> {
    fn lives(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }
}

/// Presences that are out of step with the sessions.
///
/// Woken by: sessions opening and closing, nodes joining, servers coming and going, its own wake.
#[must_use]
pub fn decide(fleet: &Fleet, contacts: &Contacts, watch: &Watch<'_>, now: Timestamp) -> Verdict {
    let mut verdict = Verdict::default();
    for node in contacts.unsettled() {
        let heard = contacts.heard_at(node).is_some_and(|heard| now.since(heard) < watch.limits.suspect);
        let connected = contacts.is_connected(node);
        let kept = fleet.presences.get(node).map(|kept| &*kept.value);
        let held_by = kept.and_then(|presence| presence.server.as_ref());
        let mine = held_by == Some(watch.me);
        let up = kept.is_some_and(|presence| presence.contact == Contact::Up);
        let lost = held_by.is_none_or(|server| !watch.lives(server));
        // The server called last takes a node over, once: two that each hear it do not take it from each other for ever.
        let takes = connected && (!up || (!mine && (lost || contacts.is_untold(node))));
        if takes || (heard && !up) {
            change(fleet, node, (Contact::Up, now), (watch.me, "it holds a session"), &mut verdict);
        }
        let orphan = watch.leads && lost;
        let present = kept.is_some_and(|presence| match presence.contact {
            Contact::Up | Contact::Suspect => true,
            Contact::Never | Contact::Unreachable => false,
        });
        if !connected && (mine || orphan) && (heard || present) {
            let server = held_by.unwrap_or(watch.me);
            quiet(fleet, node, (contacts.quiet_since(node, watch), now), (server, watch), &mut verdict);
        }
    }
    verdict
}

fn quiet(
    fleet: &Fleet,
    node: &NodeName,
    (since, now): (Timestamp, Timestamp),
    (server, watch): (&ServerName, &Watch<'_>),
    verdict: &mut Verdict,
) {
    let (limits, quiet) = (watch.limits, now.since(since));
    if quiet >= limits.unreachable && !is(fleet, node, Contact::Unreachable) {
        return change(fleet, node, (Contact::Unreachable, now), (server, &silent(quiet)), verdict);
    }
    if quiet >= limits.suspect && !is(fleet, node, Contact::Suspect) {
        change(fleet, node, (Contact::Suspect, now), (server, &silent(quiet)), verdict);
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
    (server, cause): (&ServerName, &str),
    verdict: &mut Verdict,
) {
    if fleet.active_node(node).is_none() {
        return;
    }
    let kept = fleet.presences.get(node).map(|kept| &*kept.value);
    let same = kept.filter(|presence| presence.contact == contact);
    let presence =
        Presence { contact, since: same.map_or(now, |same| same.since), server: Some(server.clone()) };
    let write = Write::put(Record::Presence(node.clone(), presence));
    // A node that only calls another server is as up as it was: nothing to tell.
    if same.is_some() {
        return verdict.atoms.push(Atom { writes: vec![write], events: vec![] });
    }
    let before = kept.map(|presence| presence.contact.as_str().to_string());
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
    verdict.atoms.push(Atom { writes: vec![write], events: vec![event] });
}

#[cfg(test)]
mod tests;
