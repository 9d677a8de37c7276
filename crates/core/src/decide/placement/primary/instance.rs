//! Members of an ensemble with a primary, as they tell of themselves.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;

/// A member, as it tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its node.
    pub node: NodeName,
    /// Its state.
    pub state: InstanceState,
    /// Whether it is a primary by its own word.
    pub is_primary: bool,
    /// Whom it follows; `None` if it follows nobody.
    pub follows: Option<MemberNumber>,
    /// Whether data comes to it now, by its own word, or by that of the primary where it is silent.
    pub streams: bool,
    /// What it had last as a whole; `None` if it never had.
    pub data: Option<HistoryPosition>,
    /// Whether it has that now: not while it copies anew.
    pub is_whole: bool,
    /// Whether the others may let it in no more, or leave it if it is the primary, and have not done so: its node is gone for good, or somebody asked
    /// for another one in its place.
    pub may_be_cut: bool,
    /// Since when it cannot write to its disk; `None` if it can.
    pub blocked_since: Option<Timestamp>,
    /// Whether its node does not accept its orders, by its own word.
    pub refuses_orders: bool,
    /// Since when it is heard of and cut off: the primary from as many replicas as a write needs, a replica from the primary; `None` if it is not.
    pub cut_since: Option<Timestamp>,
    /// The number of its keys; `None` if it is not known.
    pub keys: Option<u64>,
}

/// How far a member has come in which history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPosition {
    /// Id of the history. Positions of two cannot be compared.
    pub history: String,
    /// Id of the history of which that one is the continuation, if it is known.
    pub former: Option<String>,
    /// The position; `None` if it is not known.
    pub offset: Option<u64>,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// It was ordered, and has not answered yet.
    Joining {
        /// When it was ordered.
        since: Timestamp,
    },
    /// It answers.
    Up,
    /// It was the primary, was started anew, and is none any more. It has what was on its disk.
    Restarted,
    /// It was the primary, and its program has ended: it writes nothing any more.
    Ended,
    /// It does not answer, or nobody knows.
    Silent {
        /// Since when.
        since: Timestamp,
    },
}

/// The members by number.
pub type Instances = BTreeMap<MemberNumber, Instance>;

impl Instance {
    /// Whether it answers and has its data.
    pub(super) fn is_reached(&self) -> bool {
        self.state == InstanceState::Up && self.is_whole
    }

    /// Whether it cannot write to its disk, and its agent does not do what it is told to about that, as on the same disk.
    pub(super) const fn is_stuck(&self) -> bool {
        self.blocked_since.is_some() && self.refuses_orders
    }

    pub(super) const fn is_silent(&self) -> bool {
        matches!(self.state, InstanceState::Silent { .. })
    }
}
