//! What is recorded of an ensemble with one primary that replicas follow: who was ordered to be what, before anybody acts on it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use crate::words::counter::{Epoch, MemberNumber};
use crate::words::time::Timestamp;

/// Who is the primary, and what the others were ordered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrimaryRecord {
    /// The member that was ordered to be the primary; `None` before the first was.
    pub primary: Option<MemberNumber>,
    /// That it was ordered to become it, and was not seen as it yet; `None` once it was.
    pub promotion: Option<Promotion>,
    /// Id of the primary's process; `None` before it was seen. While it runs, it may begin another history by itself.
    pub run: Option<String>,
    /// Id of the history that the primary writes; `None` before it was seen.
    pub history: Option<String>,
    /// Id of the history of which that one is the continuation.
    pub former: Option<String>,
    /// When another one took over without a person; `None` if it never was, or was acknowledged.
    pub failed_over: Option<Timestamp>,
    /// The member to which the primary is to hand over. It stays until that is done, or that one or the primary is gone.
    pub handover: Option<MemberNumber>,
    /// Whether that one knows. Before, it would follow the former primary again once it has taken over.
    pub is_handover_known: bool,
    /// Since when the primary takes no writes because it cannot write to its disk; `None` if it takes them.
    pub blocked_since: Option<Timestamp>,
    /// Since when members that are heard of are cut off: a primary from as many replicas as it needs for writes, a replica from the primary. One that
    /// follows nobody since is cut off still.
    pub cut_off: BTreeMap<MemberNumber, Timestamp>,
    /// By replica: the member that it was ordered to follow. One that is absent follows nobody.
    pub follows: BTreeMap<MemberNumber, MemberNumber>,
    /// The members that were seen with all data of a primary.
    pub had_data: BTreeSet<MemberNumber>,
    /// The members that the others let in no more, before they are removed: their agents are silent, and they still get data.
    pub cut: BTreeSet<MemberNumber>,
    /// Whether the primary does not work, and none may take over before something changes.
    pub is_held: bool,
    /// Whether its members tell of their positions: one of them leaves once others have what it has.
    pub tells_position: bool,
}

/// An order to become the primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// Id of the history that it must have; `None` for whatever it has.
    pub history: Option<String>,
    /// Whether it takes over from another one without a person.
    pub is_failover: bool,
    /// The epoch of the control plane in which a person named it, whatever others have; `None` if nobody did.
    pub named_in: Option<Epoch>,
}
