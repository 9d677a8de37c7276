//! What follows for one node from its stored presence and its sessions.

use alloc::string::{String, ToString};

use crate::decide::liveness::contacts::Contacts;
use crate::decide::liveness::context::{LivenessContext, PresenceLimits};
use crate::records::node::PresenceState;
use crate::words::name::{NodeName, ServerName};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Result of examining one node.
pub(super) enum PresenceFinding<'a> {
    /// Its presence matches its sessions, or another server is responsible for it.
    Unchanged,
    /// Nothing changes before this time.
    Waits(Timestamp),
    /// Its presence changes.
    Changes(PresenceChange<'a>),
}

/// A change of a node's presence.
pub(super) struct PresenceChange<'a> {
    /// The new state.
    pub(super) contact: PresenceState,
    /// The server that holds the node's session, or held the last one.
    pub(super) server: &'a ServerName,
    /// The cause, in one line.
    pub(super) cause: String,
}

pub(super) fn look<'a>(
    fleet: &'a Fleet,
    contacts: &Contacts,
    node: &NodeName,
    watch: &LivenessContext<'a>,
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
    // The server that a node connected to last takes it over, once: two servers that both have a session do
    // not take it from each other for ever.
    let takes = connected && (!up || (!mine && (lost || contacts.is_unrecorded(node))));
    if takes || (heard.is_some() && !up) {
        let (contact, cause) = (PresenceState::Up, "connected".to_string());
        return PresenceFinding::Changes(PresenceChange { contact, server: watch.me, cause });
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
            watch.limits,
            now,
        ),
        // Another server holds it: this one forgets its own session once that ended long enough ago.
        (_, false, _) => heard.map_or(PresenceFinding::Unchanged, PresenceFinding::Waits),
        (_, true, _) => PresenceFinding::Unchanged,
    }
}

fn quiet<'a>(
    contact: PresenceState,
    since: Timestamp,
    server: &'a ServerName,
    limits: PresenceLimits,
    now: Timestamp,
) -> PresenceFinding<'a> {
    let quiet = now.since(since);
    let silent = |contact| {
        let cause = alloc::format!("no contact for at least {}", Span::from_secs(quiet.as_millis() / 1_000));
        PresenceFinding::Changes(PresenceChange { contact, server, cause })
    };
    if quiet >= limits.unreachable {
        return silent(PresenceState::Unreachable);
    }
    if quiet >= limits.suspect && contact != PresenceState::Suspect {
        return silent(PresenceState::Suspect);
    }
    PresenceFinding::Waits(since.plus(if quiet < limits.suspect {
        limits.suspect
    } else {
        limits.unreachable
    }))
}
