//! Nodes of which a key was shown that they had before: a copy of a machine renewed its certificate, or it was joined elsewhere. Each server
//! remembers for itself, in memory, of which ones it has told.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bellwether_core::records::event::EventDraft;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::{Span, Timestamp};

/// For how long a key is shown before it is told of. A request may still be on its way with the key before when a node has shown its next one.
const SHOWN_FOR: Span = Span::from_secs(10);

/// What was shown longer ago is another time.
const FORGOTTEN_AFTER: Span = Span::from_secs(600);

/// How often it is told of a node.
const TOLD_EVERY: Span = Span::from_secs(3_600);

/// The nodes of which an earlier key was shown; each is a node that is known, or was.
#[derive(Debug, Default)]
pub struct EarlierKeys(Mutex<BTreeMap<(Namespace, NodeName), ShownKey>>);

/// When an earlier key of a node was shown.
#[derive(Debug, Clone, Copy)]
struct ShownKey {
    first: Timestamp,
    last: Timestamp,
    told: Option<Timestamp>,
}

impl EarlierKeys {
    /// Notes that one was shown; whether it is to be told of now.
    pub(crate) fn shown(&self, node: &(Namespace, NodeName), now: Timestamp) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.entry(node.clone()).or_insert(ShownKey { first: now, last: now, told: None });
        if now.since(entry.last) > FORGOTTEN_AFTER {
            entry.first = now;
        }
        entry.last = now;
        let is_due = entry.told.is_none_or(|told| now.since(told) >= TOLD_EVERY);
        let is_told = is_due && now.since(entry.first) >= SHOWN_FOR;
        if is_told {
            entry.told = Some(now);
        }
        is_told
    }
}

/// That an earlier key of a node is shown, as an event.
pub(crate) fn event(node: &NodeName) -> EventDraft {
    let cause = "an agent shows a key that this node had before, and is refused: its certificate was renewed elsewhere since, as by who copied its data \
                 directory, or it was joined on another machine; if nobody meant that, decommission the node, and join the machine again";
    EventDraft {
        kind: "node.earlier_key_shown",
        subject: format!("node/{node}"),
        before: None,
        after: None,
        cause: cause.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_of_once_an_hour_and_not_for_a_request_that_was_on_its_way() {
        let keys = EarlierKeys::default();
        let node = ("default".parse().unwrap(), "web-1".parse().unwrap());
        let shown =
            |seconds: u64| keys.shown(&node, Timestamp::EPOCH.plus(Span::from_secs(10_000 + seconds)));
        assert!(!shown(0) && !shown(1), "requests on their way");
        // At the next renewal, half a day later.
        assert!(!shown(43_200) && !shown(43_201));
        assert!(shown(43_211), "an agent that goes on with it");
        assert!(!shown(43_212) && !shown(43_212 + 3_500));
        assert!(!shown(43_212 + 3_599 + 600));
        assert!((0..20).any(|round| shown(50_000 + round)), "it still does");
    }
}
