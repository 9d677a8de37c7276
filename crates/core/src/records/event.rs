//! Events: changes of state in the order they happened, per namespace. Appended in the transaction of the
//! change they describe; never modified.

use alloc::string::String;

use crate::words::counter::Sequence;
use crate::words::name::Actor;
use crate::words::time::Timestamp;

/// Kind of the event of a forgotten service.
pub const FORGOTTEN: &str = "service.forgotten";

/// An event without a sequence number, as a decider or an operation creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    /// What happened, as `noun.change`: `rollout.started`, `target.failed`, `node.unreachable`.
    pub kind: &'static str,
    /// The object concerned, as `kind/name`: `node/web-1`, `entity/web`, `rollout/web/3`, `target/web/web-1`.
    pub subject: String,
    /// The state before, where there is one.
    pub before: Option<String>,
    /// The state after, where there is one.
    pub after: Option<String>,
    /// Why it happened, in one line for people.
    pub cause: String,
}

/// Which event led to one that is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CausedBy {
    /// The one of this number.
    Event(Sequence),
    /// An earlier one of the same transaction, by its position there, from 0.
    Earlier(usize),
}

/// An event with its sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the namespace's order: 1, 2, 3 … without gaps.
    pub sequence: Sequence,
    /// Time it was written, by the server's clock.
    pub time: Timestamp,
    /// Who caused it: a token's name, a node's name, or `bellwether` for a decider.
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
    /// Number of the event that led to it; `None` if none did, or none that was among the newest.
    pub caused_by: Option<Sequence>,
}
