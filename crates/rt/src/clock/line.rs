//! The line of a steered clock: a line through time that bends towards a target, and never leads back.

use bellwether_core::words::time::{Span, Timestamp};

/// How fast a clock is steered. Whatever counts by one that is behind ends earlier by the share that it gains; by one that is ahead nothing ends
/// before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// One part in 1,024, about as much as clocks differ by themselves: somebody counts the same time by another clock.
    Careful,
    /// One part in 64: nobody does.
    Brisk,
    /// As [`Pace::Brisk`] if it is behind. If it is ahead it loses twice as much as any other does: one that all others are ahead of their
    /// system clocks with would never have their time otherwise. Nothing counts by it.
    Apart,
}

impl Pace {
    /// One that is behind gains one part in so many.
    const fn faster(self) -> u64 {
        match self {
            Self::Careful => 1_024,
            Self::Brisk | Self::Apart => 64,
        }
    }

    /// One that is ahead loses one part in so many: it runs at seven eighths of its speed, or at three quarters.
    const fn slower(self) -> u64 {
        match self {
            Self::Careful | Self::Brisk => 8,
            Self::Apart => 4,
        }
    }
}

/// Where the time goes from a point on: it gains or loses a difference little by little, and then goes at its own speed.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLine {
    /// What the ticks were at the point.
    from: Span,
    /// The time at the point.
    at: Timestamp,
    /// Milliseconds to gain, or to lose if negative.
    by_ms: i64,
    pace: Pace,
}

impl TimeLine {
    /// From this point on at its own speed.
    pub(super) const fn through(from: Span, at: Timestamp) -> Self {
        Self { from, at, by_ms: 0, pace: Pace::Careful }
    }

    /// The time at these ticks; never before an earlier one.
    pub(super) fn at(&self, ticks: Span) -> Timestamp {
        let passed = ticks.minus(self.from);
        let most = Span::from_millis(self.by_ms.unsigned_abs());
        let share = |divisor: u64| Span::from_millis(passed.as_millis().checked_div(divisor).unwrap_or(0));
        if self.by_ms >= 0 {
            self.at.plus(passed).plus(share(self.pace.faster()).min(most))
        } else {
            self.at.plus(passed.minus(share(self.pace.slower()).min(most)))
        }
    }

    /// The same up to these ticks, and from then on towards what it differs by.
    pub(super) fn bent(&self, ticks: Span, by_ms: i64, pace: Pace) -> Self {
        Self { from: ticks, at: self.at(ticks), by_ms, pace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &TimeLine, seconds: u64) -> u64 {
        line.at(Span::from_secs(seconds)).as_millis()
    }

    #[test]
    fn a_clock_that_is_ahead_goes_slower_until_it_is_right_and_never_back() {
        let start = TimeLine::through(Span::ZERO, Timestamp::from_millis(1_000_000));
        let bent = start.bent(Span::ZERO, -10_000, Pace::Careful);
        assert_eq!(at(&bent, 8), 1_007_000);
        assert_eq!(at(&bent, 80), 1_070_000);
        assert_eq!(at(&bent, 81), 1_071_000, "it is right, and goes on as always");
        let mut before = 0;
        for second in 0..200 {
            let now = at(&bent, second);
            assert!(now > before);
            before = now;
        }
    }

    #[test]
    fn a_clock_that_is_behind_gains_little_while_somebody_counts_by_it() {
        let start = TimeLine::through(Span::ZERO, Timestamp::EPOCH);
        let careful = start.bent(Span::ZERO, 10_000, Pace::Careful);
        assert_eq!(at(&careful, 1_024), 1_025_000);
        let brisk = start.bent(Span::ZERO, 10_000, Pace::Brisk);
        assert_eq!((at(&brisk, 64), at(&brisk, 640), at(&brisk, 700)), (65_000, 650_000, 710_000));
    }

    #[test]
    fn a_clock_apart_reaches_one_that_goes_slower_as_well() {
        let start = |ahead: u64| TimeLine::through(Span::ZERO, Timestamp::from_millis(1_000_000 + ahead));
        let others = start(0).bent(Span::ZERO, -3_600_000, Pace::Brisk);
        let apart = start(600).bent(Span::ZERO, -600, Pace::Apart);
        assert_eq!((at(&others, 2), at(&apart, 2)), (1_001_750, 1_002_100));
    }

    #[test]
    fn a_line_that_is_bent_again_goes_on_from_where_it_is() {
        let start = TimeLine::through(Span::ZERO, Timestamp::EPOCH).bent(Span::ZERO, -4_000, Pace::Careful);
        let again = start.bent(Span::from_secs(16), 0, Pace::Careful);
        assert_eq!((at(&start, 16), at(&again, 16), at(&again, 17)), (14_000, 14_000, 15_000));
    }
}
