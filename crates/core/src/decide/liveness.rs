//! Who has gone silent. Compares stored presences with the sessions that are open right now, on every server for the
//! nodes that it holds; the leader also for those whose server is gone.

mod contacts;

use alloc::string::{String, ToString};
use alloc::vec;

pub use contacts::Contacts;

use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::node::{Presence, PresenceState};
use crate::records::server::Server;
use crate::records::versioned::Versioned;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::map::Map;
use crate::words::name::{NodeName, ServerName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// How long a node may be quiet. Counted from the end of its last session; a session that dies without a word is
/// noticed by its pings, which stay away, within 14 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresenceLimits {
    /// Quiet for so long is `suspect`.
    pub suspect: Span,
    /// Quiet for so long is `unreachable`. Longer than `suspect`.
    pub unreachable: Span,
    /// What nodes are given besides to find a server again, when theirs went or began anew.
    pub reconnect: Span,
}

impl Default for PresenceLimits {
    /// 5 s and 15 s: with the pings that is at most 19 s and 29 s after a cable is cut. 15 s for a whole fleet to find
    /// another server: agents call again within 8 s, and ten thousand handshakes take a few more.
    fn default() -> Self {
        Self { suspect: Span::from_secs(5), unreachable: Span::from_secs(15), reconnect: Span::from_secs(15) }
    }
}

/// From where it is looked, and with which limits.
#[derive(Debug, Clone, Copy)]
pub struct LivenessContext<'a> {
    /// The server that looks.
    pub me: &'a ServerName,
    /// The servers that have their place now.
    pub servers: &'a Map<ServerName, Versioned<Server>>,
    /// Whether it leads, and so looks after the nodes of servers that are gone.
    pub leads: bool,
    /// How long a node may be quiet.
    pub limits: PresenceLimits,
}

impl LivenessContext<'_> {
    fn lives(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }
}

/// What a look at one node comes to.
enum PresenceFinding<'a> {
    /// Its presence says what its sessions say, or it is not this server's to judge.
    Unchanged,
    /// Nothing, before then.
    Waits(Timestamp),
    /// Its presence is to say this, and that this server holds or held it, because of that.
    Changes(PresenceState, &'a ServerName, String),
}

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

fn look<'a>(
    fleet: &'a Fleet,
    contacts: &Contacts,
    (node, watch): (&NodeName, &LivenessContext<'a>),
    now: Timestamp,
) -> PresenceFinding<'a> {
    let heard = contacts.heard_at(node).map(|heard| heard.plus(watch.limits.suspect));
    let heard = heard.filter(|until| now < *until);
    let connected = contacts.is_connected(node);
    let kept = fleet.presences.get(node).map(|kept| &*kept.value);
    let held_by = kept.and_then(|presence| presence.server.as_ref());
    let mine = held_by == Some(watch.me);
    let up = kept.is_some_and(|presence| presence.contact == PresenceState::Up);
    let lost = held_by.is_none_or(|server| !watch.lives(server));
    // The server called last takes a node over, once: two that each hear it do not take it from each other for ever.
    let takes = connected && (!up || (!mine && (lost || contacts.is_untold(node))));
    if takes || (heard.is_some() && !up) {
        return PresenceFinding::Changes(PresenceState::Up, watch.me, "it holds a session".to_string());
    }
    let orphan = watch.leads && lost;
    let present = kept.filter(|presence| match presence.contact {
        PresenceState::Up | PresenceState::Suspect => true,
        PresenceState::Never | PresenceState::Unreachable => false,
    });
    match (present, connected, mine || orphan) {
        (Some(present), false, true) => quiet(
            present.contact,
            contacts.quiet_since(node, watch),
            held_by.unwrap_or(watch.me),
            (watch, now),
        ),
        // Held by another server: this one has heard of it, and lets go of it when that is long enough ago.
        (_, false, _) => heard.map_or(PresenceFinding::Unchanged, PresenceFinding::Waits),
        (_, true, _) => PresenceFinding::Unchanged,
    }
}

fn quiet<'a>(
    contact: PresenceState,
    since: Timestamp,
    server: &'a ServerName,
    (watch, now): (&LivenessContext<'_>, Timestamp),
) -> PresenceFinding<'a> {
    let (limits, quiet) = (watch.limits, now.since(since));
    if quiet >= limits.unreachable {
        return PresenceFinding::Changes(PresenceState::Unreachable, server, silent(quiet));
    }
    if quiet >= limits.suspect && contact != PresenceState::Suspect {
        return PresenceFinding::Changes(PresenceState::Suspect, server, silent(quiet));
    }
    PresenceFinding::Waits(since.plus(if quiet < limits.suspect {
        limits.suspect
    } else {
        limits.unreachable
    }))
}

fn silent(quiet: Span) -> String {
    alloc::format!("nothing was heard from it for {}", Span::from_secs(quiet.as_millis() / 1_000))
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
