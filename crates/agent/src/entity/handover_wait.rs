//! The wait of a change for the data store that is to hand over before it.

use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::time::Timestamp;

/// A change that waits for its data store. It is not kept: the next agent asks again.
#[derive(Debug)]
pub(super) struct HandoverWait {
    /// The assignment that waits.
    pub(super) number: AssignmentNumber,
    /// Why it could not begin.
    pub(super) reason: String,
    /// Attempts that failed.
    pub(super) failed: u32,
    /// Time of the next one.
    pub(super) at: Timestamp,
}
