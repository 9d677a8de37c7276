//! Scales: from time and share to places in the picture, with ticks a person reads easily.

use crate::show::time::length;

/// Steps between ticks of time that read well, in milliseconds: seconds, minutes, hours, days, weeks.
const STEPS: [u64; 25] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    14_400_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    345_600_000,
    604_800_000,
    1_209_600_000,
    2_592_000_000,
    5_184_000_000,
    15_552_000_000,
];

/// Tops of the axis of shares, in percent, each with the step between its ticks.
const TOPS: [(f64, f64); 7] =
    [(1.0, 0.2), (2.0, 0.5), (5.0, 1.0), (10.0, 2.0), (25.0, 5.0), (50.0, 10.0), (100.0, 20.0)];

/// Most ticks of time: more run into each other.
const MOST_TICKS: u64 = 10;

/// The two scales of a plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// The longest time, in milliseconds; at least 1.
    pub(super) longest: u64,
    /// The top of the axis of shares, in percent, and the step between its ticks.
    pub(super) shares: (f64, f64),
}

impl Scale {
    /// Scales over these borders for times up to `longest` and shares up to `highest` percent.
    pub(super) fn new(
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        longest: u64,
        highest: f64,
    ) -> Self {
        let fits = |(top, _): &&(f64, f64)| highest <= *top * 0.92;
        let shares = TOPS.iter().find(fits).copied().unwrap_or((100.0, 20.0));
        Self { left, right, top, bottom, longest: longest.max(1), shares }
    }

    /// Where a time is, in milliseconds since the start.
    pub(super) fn x(&self, millis: u64) -> f64 {
        self.left + (self.right - self.left) * float(millis) / float(self.longest)
    }

    /// Where a share is, in percent.
    pub(super) fn y(&self, percent: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * percent.clamp(0.0, self.shares.0) / self.shares.0
    }

    /// The ticks of time with their words.
    pub(super) fn times(&self) -> Vec<(u64, String)> {
        let fits = |step: &&u64| self.longest / **step <= MOST_TICKS;
        let step = STEPS.iter().find(fits).copied().unwrap_or(self.longest);
        (0..=self.longest / step).map(|count| (count * step, length(count * step))).collect()
    }

    /// The ticks of shares with their words.
    pub(super) fn percents(&self) -> Vec<(f64, String)> {
        let (top, step) = self.shares;
        let ticks = std::iter::successors(Some(0.0), move |tick| Some(tick + step));
        let within = ticks.take_while(|tick| *tick <= top + step / 2.0);
        within.map(|tick| (tick, format!("{}%", super::svg::number(tick)))).collect()
    }
}

/// A count as a place on a scale; what is lost above 2⁵³ nobody sees.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "it only becomes a place in a picture"
)]
pub(super) const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        for longest in [1, 900, 45_000, 5_400_000, 86_400_000, 31_536_000_000] {
            let scale = Scale::new((0.0, 0.0), (100.0, 100.0), longest, 100.0);
            let ticks = scale.times();
            assert!((1..=11).contains(&ticks.len()), "{longest}: {ticks:?}");
        }
        let small = Scale::new((0.0, 0.0), (100.0, 100.0), 1, 4.0);
        assert_eq!(small.shares, (5.0, 1.0));
        assert_eq!(
            small.percents().iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>(),
            ["0%", "1%", "2%", "3%", "4%", "5%"]
        );
    }
}
