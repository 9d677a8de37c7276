//! A change of the members of a store, as it is stored.

use bellwether_core::records::ensemble_members as core;
use bellwether_core::words::counter::MemberNumber;
use serde::{Deserialize, Serialize};

use super::orders::MembershipChange;
use crate::shape::ShapeError;

/// A change in the store and the member that makes it, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChange {
    /// Number of the member that makes it.
    pub by: u64,
    /// The change.
    pub change: MembershipChange,
}

impl TryFrom<StoredChange> for core::OrderedChange {
    type Error = ShapeError;
    fn try_from(from: StoredChange) -> Result<Self, ShapeError> {
        Ok(Self { by: MemberNumber::new(from.by), change: from.change.try_into()? })
    }
}
