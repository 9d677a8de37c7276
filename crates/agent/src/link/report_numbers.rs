//! Numbers of reports: a server, or a network, may deliver one after a later one.

use std::sync::{Mutex, PoisonError};

use bellwether_core::words::time::Timestamp;

/// Numbers for each second: an agent that starts again a second later begins above them.
const PER_SECOND: u64 = 1 << 20;

/// Gives each report that says something new a number above all before, over restarts of the agent: numbers begin with the time of the
/// start. Where that went back, the server says that a later report is known, and they jump ahead.
#[derive(Debug)]
pub(super) struct ReportNumbers<T>(Mutex<Numbering<T>>);

#[derive(Debug)]
struct Numbering<T> {
    last: u64,
    /// What was sent with that number.
    sent: Option<T>,
    acknowledged: bool,
    /// How far to jump ahead the next time.
    jump: u64,
}

impl<T: Clone + PartialEq> ReportNumbers<T> {
    pub(super) fn new(now: Timestamp) -> Self {
        let last = (now.as_millis() / 1_000).saturating_mul(PER_SECOND);
        Self(Mutex::new(Numbering { last, sent: None, acknowledged: false, jump: PER_SECOND }))
    }

    /// The number of the next report. One that is known to have arrived has the same number when it is sent again.
    pub(super) fn next(&self, reported: &T) -> u64 {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !of.acknowledged || of.sent.as_ref() != Some(reported) {
            of.last = of.last.saturating_add(1);
            of.sent = Some(reported.clone());
            of.acknowledged = false;
        }
        of.last
    }

    /// The last report has arrived.
    pub(super) fn delivered(&self) {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (of.acknowledged, of.jump) = (true, PER_SECOND);
    }

    /// A later report than the last one is known.
    pub(super) fn overtaken(&self) {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of.last = of.last.saturating_add(of.jump);
        of.jump = of.jump.saturating_mul(16);
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::words::counter::Generation;

    use super::*;
    use crate::report_board::ReportBoard;

    #[test]
    fn reports_are_numbered_so_that_a_late_one_is_known() {
        let board =
            |generation| ReportBoard { generation: Generation::new(generation), ..ReportBoard::default() };
        let numbers = ReportNumbers::new(Timestamp::from_millis(5_000));
        let first = numbers.next(&board(1));
        let again = numbers.next(&board(1));
        assert!(again > first, "nobody knows whether the first one arrives");
        numbers.delivered();
        assert_eq!(numbers.next(&board(1)), again, "it has arrived");
        let other = numbers.next(&board(2));
        assert!(other > again);
        let restarted = ReportNumbers::new(Timestamp::from_millis(6_000));
        assert!(restarted.next(&board(1)) > other);
        // The clock, or the machine, went back by five years.
        let back = ReportNumbers::new(Timestamp::from_millis(5_000));
        let known = ReportNumbers::new(Timestamp::from_millis(157_680_005_000)).next(&board(1));
        let tries = (0..64).take_while(|_| {
            back.overtaken();
            back.next(&board(1)) < known
        });
        assert!(tries.count() < 8);
    }
}
