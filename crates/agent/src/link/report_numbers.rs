//! Numbers of reports, shared by those who send and those who hear that one arrived.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_api::client::CallError;
use bellwether_api::problem::{Code, LATER_IS_KNOWN};
use bellwether_core::local::report_numbers::ReportNumbers;
use bellwether_core::words::time::Timestamp;
use tokio::sync::watch;

use crate::report_board::ReportBoard;

/// How often a report is sent again at once that a later one is known than: so often, the numbers jump above any other. Who has the key of this
/// node may have sent one with the largest.
pub(super) const MOST_JUMPS: usize = 16;

/// Tells on this machine, and in its reports, that another agent reports as it.
pub(super) fn tell_doubled(board: &watch::Sender<ReportBoard>) {
    board.send_if_modified(|board| !std::mem::replace(&mut board.is_doubled, true));
}

/// Numbers of reports; see [`ReportNumbers`].
#[derive(Debug)]
pub(super) struct SharedNumbers<T>(Mutex<ReportNumbers<T>>);

impl<T: Clone + PartialEq> SharedNumbers<T> {
    pub(super) fn new(now: Timestamp) -> Self {
        // Without chance, two agents of one node that start in one second may report for long before one of them notices; all else is the same.
        let chance = getrandom::u64().unwrap_or_default();
        Self(Mutex::new(ReportNumbers::new(now, chance)))
    }

    fn numbers(&self) -> MutexGuard<'_, ReportNumbers<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn next(&self, reported: &T) -> u64 {
        self.numbers().next(reported)
    }

    pub(super) fn delivered(&self) {
        self.numbers().delivered();
    }

    /// Whether any has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.numbers().has_arrived()
    }

    /// The number of the last one that was sent; `None` before the first one.
    pub(super) fn last(&self) -> Option<u64> {
        self.numbers().last()
    }

    /// Hears what became of a report; whether it is to be sent again at once, with a number further ahead, as a later one is known. Where that is
    /// another agent's, it is told of.
    pub(super) fn is_overtaken(
        &self,
        sent: &Result<(), CallError>,
        machine: Option<&watch::Sender<ReportBoard>>,
    ) -> bool {
        let Err(CallError::Problem(problem)) = sent else { return false };
        if problem.code != Code::Conflict {
            return false;
        }
        let others = self.numbers().overtaken();
        // It may also be that others wrote at the same time.
        let is_later = problem.detail.contains(LATER_IS_KNOWN);
        if let Some(board) = machine.filter(|_| others && is_later) {
            tell_doubled(board);
        }
        is_later
    }
}
