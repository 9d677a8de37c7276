//! A policy's curve: its typical run as a line, all its runs as a band, and the marks on the line. Owns what is drawn of a
//! policy, not how.

use bellwether_core::trial::simulation::timeline::{Timeline, TimelineSample};

use crate::commands::simulate::report::label;
use crate::commands::simulate::trial::{Trials, took};
use crate::show::time::length;

/// How many points a band has.
const BAND: u64 = 160;

/// Marks that would be closer than this part of the plot's width are one.
const APART: u64 = 40;

/// What is drawn of a policy. Times are in milliseconds since the start, shares in percent of the nodes.
pub(super) struct Curve {
    /// The policy's name, and how its typical run ended.
    pub(super) title: String,
    /// The share of nodes that must succeed.
    pub(super) needed: f64,
    /// When the version was called good, in the typical run.
    pub(super) good: Option<u64>,
    /// When it became known bad.
    pub(super) bad: Option<u64>,
    took: u64,
    line: Vec<Point>,
    /// All runs, when there is more than one.
    runs: Vec<Vec<Point>>,
}

/// How things stood at a time.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: u64,
    share: f64,
    failed: u64,
}

impl Curve {
    /// The curve of a policy's trials.
    pub(super) fn of(trials: &Trials, nodes: u32) -> Self {
        let nodes = f64::from(nodes);
        let typical = trials.typical();
        let points = |run: &Timeline| {
            let point = |sample: &TimelineSample| {
                let at = sample.at.since(run.began).as_millis();
                Point { at, share: float(sample.running) / nodes * 100.0, failed: sample.failed }
            };
            run.samples.iter().map(point).collect::<Vec<_>>()
        };
        let since =
            |run: &Timeline, at: bellwether_core::words::time::Timestamp| at.since(run.began).as_millis();
        let took = typical.map(|run| took(run).as_millis()).unwrap_or_default();
        let result = typical.map_or("nothing to do", |run| label(&run.end));
        let mut title = format!("{}: {result} after {}", trials.named.name, length(took));
        if let Some(blast) = typical.and_then(|run| run.blast) {
            title.push_str(&format!(", {} had the bad version", blast.touched));
        }
        Self {
            title,
            needed: typical.map_or(100.0, |run| float(run.thresholds.needed) / nodes * 100.0),
            good: typical.and_then(|run| run.good_at.map(|at| since(run, at))),
            bad: typical.and_then(|run| run.blast.map(|blast| since(run, blast.stopped))),
            took,
            line: typical.map(points).unwrap_or_default(),
            runs: if trials.runs.len() > 1 { trials.runs.iter().map(points).collect() } else { Vec::new() },
        }
    }

    /// The longest time that is drawn of it.
    pub(super) fn longest(&self) -> u64 {
        let ends = self.runs.iter().filter_map(|run| run.last()).map(|point| point.at);
        ends.chain([self.took]).max().unwrap_or_default()
    }

    /// The highest share that is drawn of it.
    pub(super) fn highest(&self) -> f64 {
        self.runs.iter().flatten().chain(&self.line).map(|point| point.share).fold(0.0, f64::max)
    }

    /// The share at the end of the typical run.
    pub(super) fn last(&self) -> f64 {
        self.line.last().map_or(0.0, |point| point.share)
    }

    /// The typical run: level from each change to the next.
    pub(super) fn steps(&self) -> Vec<(u64, f64)> {
        let mut steps = Vec::new();
        let mut before = 0.0;
        for point in &self.line {
            steps.extend([(point.at, before), (point.at, point.share)]);
            before = point.share;
        }
        steps.dedup();
        steps
    }

    /// The corners of what lies between the fifth and the ninety-fifth of a hundred runs; none with a single run.
    pub(super) fn band(&self) -> Vec<(u64, f64)> {
        let rank = |percent: usize| (self.runs.len() * percent).div_ceil(100).max(1) - 1;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for place in 0..=BAND {
            let at = self.longest() * place / BAND;
            let mut shares: Vec<f64> = self.runs.iter().map(|run| share_at(run, at)).collect();
            shares.sort_by(f64::total_cmp);
            low.extend(shares.get(rank(5)).map(|share| (at, *share)));
            high.extend(shares.get(rank(95)).map(|share| (at, *share)));
        }
        low.into_iter().chain(high.into_iter().rev()).collect()
    }

    /// The point of the line at a time.
    pub(super) fn at(&self, at: u64) -> (u64, f64) {
        (at, share_at(&self.line, at))
    }

    /// Where nodes failed, in a plot that is this long.
    pub(super) fn failures(&self, longest: u64) -> Vec<(u64, f64)> {
        let mut marks: Vec<(u64, f64)> = Vec::new();
        for (before, after) in self.line.iter().zip(self.line.iter().skip(1)) {
            let far = marks.last().is_none_or(|(last, _)| (after.at - last) * APART >= longest);
            if after.failed > before.failed && far {
                marks.push((after.at, after.share));
            }
        }
        marks
    }
}

/// The share at a time: as it was last seen.
fn share_at(run: &[Point], at: u64) -> f64 {
    let place = run.partition_point(|point| point.at <= at);
    place.checked_sub(1).and_then(|place| run.get(place)).map_or(0.0, |point| point.share)
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
