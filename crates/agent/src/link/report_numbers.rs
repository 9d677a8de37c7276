//! Numbers of reports, shared by those who send and those who hear that one arrived.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::local::report_numbers::ReportNumbers;
use bellwether_core::words::time::Timestamp;

/// Numbers of reports; see [`ReportNumbers`].
#[derive(Debug)]
pub(super) struct SharedNumbers<T>(Mutex<ReportNumbers<T>>);

impl<T: Clone + PartialEq> SharedNumbers<T> {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self(Mutex::new(ReportNumbers::new(now)))
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

    pub(super) fn overtaken(&self) {
        self.numbers().overtaken();
    }
}
