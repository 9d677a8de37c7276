//! Numbers of reports: a server, or a network, may deliver one after a later one. Owns the numbers; never sends.

use crate::words::time::Timestamp;

/// Numbers for each second: an agent that starts again a second later begins above them.
const PER_SECOND: u64 = 1 << 20;

/// That another agent reports as this node.
pub const OTHERS_REPORT: &str = "another agent reports as this node and follows its orders, such as one on a copy of the data directory or of the machine: stop one of \
                       the two, join it as a node of its own, then restart the other (or this machine was set back to a snapshot of its memory: restart the agent)";

/// Gives each report that says something new a number above all before, over restarts of the agent: numbers
/// begin with the time of the start, to the second, and a part by chance: of two agents on copies of one data directory that start in the
/// same second and report in turns, neither would ever be behind the other. Where the time went back, the server says that a later report
/// is known, and they jump ahead.
#[derive(Debug)]
pub struct ReportNumbers<T> {
    last: u64,
    /// What was sent with that number.
    sent: Option<T>,
    acknowledged: bool,
    /// Whether any has arrived.
    any_arrived: bool,
    /// How far to jump ahead the next time.
    jump: u64,
}

impl<T: Clone + PartialEq> ReportNumbers<T> {
    /// Numbers of an agent that starts at this time; `chance` is any number.
    #[must_use]
    pub const fn new(now: Timestamp, chance: u64) -> Self {
        // The other half is for the reports of the first second.
        let last =
            (now.as_millis() / 1_000).saturating_mul(PER_SECOND).saturating_add(chance % (PER_SECOND / 2));
        Self { last, sent: None, acknowledged: false, any_arrived: false, jump: PER_SECOND }
    }

    /// The number of the next report. One that is known to have arrived has the same number when it is sent again.
    pub fn next(&mut self, reported: &T) -> u64 {
        if !self.acknowledged || self.sent.as_ref() != Some(reported) {
            self.last = self.last.saturating_add(1);
            self.sent = Some(reported.clone());
            self.acknowledged = false;
        }
        self.last
    }

    /// The number of the last report; `None` before the first one.
    #[must_use]
    pub const fn last(&self) -> Option<u64> {
        if self.sent.is_some() { Some(self.last) } else { None }
    }

    /// Whether any has arrived.
    #[must_use]
    pub const fn has_arrived(&self) -> bool {
        self.any_arrived
    }

    /// The last report has arrived.
    pub const fn delivered(&mut self) {
        (self.acknowledged, self.any_arrived, self.jump) = (true, true, PER_SECOND);
    }

    /// A later report than the last one is known. Whether somebody else has sent it: before the first one has arrived, it may be one of before a
    /// restart, of a clock that was ahead; afterwards, all of this agent are earlier.
    pub const fn overtaken(&mut self) -> bool {
        self.last = self.last.saturating_add(self.jump);
        self.jump = self.jump.saturating_mul(16);
        self.any_arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_numbered_so_that_a_late_one_is_known() {
        let mut numbers = ReportNumbers::new(Timestamp::from_millis(5_000), 7);
        let first = numbers.next(&1);
        let again = numbers.next(&1);
        assert!(again > first, "nobody knows whether the first one arrives");
        numbers.delivered();
        assert_eq!(numbers.next(&1), again, "it has arrived");
        let other = numbers.next(&2);
        assert!(other > again);
        let mut restarted = ReportNumbers::new(Timestamp::from_millis(6_000), 0);
        assert!(restarted.next(&1) > other);
        let mut latest = ReportNumbers::new(Timestamp::from_millis(5_999), u64::MAX);
        assert!(
            (0..1_000).all(
                |turn| latest.next(&turn) < ReportNumbers::new(Timestamp::from_millis(6_000), 0).next(&1)
            )
        );
        // The clock, or the machine, went back by five years.
        let mut back = ReportNumbers::new(Timestamp::from_millis(5_000), 7);
        let known = ReportNumbers::new(Timestamp::from_millis(157_680_005_000), 1).next(&1);
        let tries = (0..64).take_while(|_| {
            assert!(!back.overtaken(), "it may have been before the restart");
            back.next(&1) < known
        });
        assert!(tries.count() < 8);
    }

    #[test]
    fn who_is_overtaken_after_one_has_arrived_is_not_the_only_one_who_reports() {
        let mut numbers = ReportNumbers::new(Timestamp::from_millis(5_000), 7);
        numbers.next(&1);
        numbers.delivered();
        numbers.next(&2);
        assert!(numbers.overtaken());
    }

    #[test]
    fn of_two_that_start_in_one_second_and_report_in_turns_one_is_behind() {
        let now = Timestamp::from_millis(5_000);
        let (mut one, mut other) = (ReportNumbers::new(now, 7), ReportNumbers::new(now, 70_000));
        assert!((0..100).all(|turn| one.next(&turn) < other.next(&turn)));
    }

    #[test]
    fn a_few_jumps_are_above_the_largest_number_that_somebody_else_may_have_sent() {
        let mut numbers = ReportNumbers::new(Timestamp::from_millis(5_000), 7);
        numbers.next(&1);
        numbers.delivered();
        for _ in 0..16 {
            assert!(numbers.overtaken(), "all of its own are earlier");
        }
        assert_eq!(numbers.next(&2), u64::MAX);
    }
}
