//! The turn of a run that has ended the boot of its machine.

use tokio::sync::{OwnedSemaphorePermit, watch};

/// The turn of a run that has ended the boot of the machine, and why nothing else begins. Dropping it lets others begin.
#[derive(Debug)]
pub(crate) struct BootTurn {
    _turn: OwnedSemaphorePermit,
    reason: watch::Sender<Option<String>>,
}

impl BootTurn {
    pub(super) const fn new(turn: OwnedSemaphorePermit, reason: watch::Sender<Option<String>>) -> Self {
        Self { _turn: turn, reason }
    }
}

impl Drop for BootTurn {
    fn drop(&mut self) {
        self.reason.send_replace(None);
    }
}
