//! Numbers of reports, shared by those who send and those who hear that one arrived.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_api::client::CallError;
use bellwether_api::problem::{Code, LATER_IS_KNOWN};
use bellwether_core::local::report_numbers::ReportNumbers;
use bellwether_core::words::time::Timestamp;

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

    /// The number of the last one that was sent; `None` before the first one.
    pub(super) fn last(&self) -> Option<u64> {
        self.numbers().last()
    }

    /// Hears what became of a report; whether another agent has sent a later one.
    pub(super) fn sent(&self, sent: &Result<(), CallError>) -> bool {
        let Err(CallError::Problem(problem)) = sent else { return false };
        if problem.code != Code::Conflict {
            return false;
        }
        // It may also be that others wrote at the same time.
        self.numbers().overtaken() && problem.detail.contains(LATER_IS_KNOWN)
    }
}
