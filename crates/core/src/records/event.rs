//! Events: something that became true, in order, per namespace. Appended with the change they tell of; never changed.

use alloc::string::String;

use crate::words::counter::Sequence;
use crate::words::name::Actor;
use crate::words::time::Timestamp;

/// An event before it has a place in the order: what a decider or an operation wants told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    /// What became true, as `noun.change`: `rollout.started`, `target.failed`, `node.unreachable`.
    pub kind: &'static str,
    /// What it is about, as `kind/name`: `node/web-1`, `entity/web`, `rollout/web/3`, `target/web/web-1`.
    pub subject: String,
    /// What held before, where that means something.
    pub before: Option<String>,
    /// What holds now, where that means something.
    pub after: Option<String>,
    /// One line for a person: why it happened.
    pub cause: String,
}

/// An event in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place in the namespace's order: 1, 2, 3 … without gaps.
    pub sequence: Sequence,
    /// When it was written, by the server's clock.
    pub time: Timestamp,
    /// Who caused it: a token's name, a node, or `bellwether` for a decider.
    pub actor: Actor,
    /// As in [`EventDraft::kind`].
    pub kind: String,
    /// As in [`EventDraft::subject`].
    pub subject: String,
    /// As in [`EventDraft::before`].
    pub before: Option<String>,
    /// As in [`EventDraft::after`].
    pub after: Option<String>,
    /// As in [`EventDraft::cause`].
    pub cause: String,
}
