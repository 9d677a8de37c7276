//! Absorbs the facts that a node's agent reports.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::facts::NodeFacts;
use crate::records::key::Record;
use crate::verdict::{Changeset, Write};
use crate::words::time::Timestamp;

/// The changes to write for reported facts; `None` if they are the same as the last ones. An event names the disks that appeared
/// or disappeared; other facts change without one.
#[must_use]
pub fn absorb(last: Option<&NodeFacts>, new: NodeFacts, now: Timestamp) -> Option<Changeset> {
    let new = NodeFacts { received_at: now, ..new };
    if last.is_some_and(|last| NodeFacts { received_at: now, ..last.clone() } == new) {
        return None;
    }
    let events = last.and_then(|last| disks_changed(last, &new)).into_iter().collect();
    Some(Changeset { writes: Vec::from([Write::put(Record::Facts(new))]), events })
}

fn disks_changed(last: &NodeFacts, new: &NodeFacts) -> Option<EventDraft> {
    let disks = |facts: &NodeFacts| facts.facts.texts("disks", "name").into_iter().collect::<BTreeSet<_>>();
    let (before, after) = (disks(last), disks(new));
    if before == after {
        return None;
    }
    let list = |disks: &BTreeSet<String>| {
        let names: Vec<&str> = disks.iter().map(String::as_str).collect();
        format!("disks={}", names.join(","))
    };
    Some(EventDraft {
        kind: "node.disks_changed",
        subject: format!("node/{}", new.node),
        before: Some(list(&before)),
        after: Some(list(&after)),
        cause: "reported by the node".to_string(),
    })
}

#[cfg(test)]
mod tests;
