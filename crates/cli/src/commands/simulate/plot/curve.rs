//! A policy's curve: its typical run as a line, all its runs as a band, and the marks on the line.

use bellwether_core::trial::simulation::timeline::{SimulationEnd, Timeline, TimelineSample};

use super::scale::{Scale, float};
use super::svg::{Svg, number, steps};
use crate::commands::simulate::report::label;
use crate::commands::simulate::trial::{Trials, took};

/// How many places a band has.
const BAND: u64 = 160;

/// Marks that would be closer than this are one, in pixels.
const APART: f64 = 20.0;

/// What is drawn of a policy.
pub(super) struct Curve {
    pub(super) name: String,
    /// How the typical run ended, and how long it took, in milliseconds.
    pub(super) result: &'static str,
    pub(super) took: u64,
    /// Nodes that had the bad version when it was found bad, in the typical run.
    pub(super) touched: Option<u64>,
    /// The share of nodes that must succeed, in percent.
    pub(super) needed: f64,
    line: Vec<Point>,
    good: Option<u64>,
    bad: Option<u64>,
    /// All runs, when there is more than one.
    runs: Vec<Vec<Point>>,
    ends: bool,
}

/// How things stood at a time, in milliseconds since the start.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: u64,
    /// In percent.
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
        Self {
            name: trials.named.name.clone(),
            result: typical.map_or("nothing to do", |run| label(&run.end)),
            took: typical.map(|run| took(run).as_millis()).unwrap_or_default(),
            touched: typical.and_then(|run| run.blast).map(|blast| blast.touched),
            needed: typical.map_or(100.0, |run| float(run.thresholds.needed) / nodes * 100.0),
            line: typical.map(points).unwrap_or_default(),
            good: typical.and_then(|run| run.good_at.map(|at| since(run, at))),
            bad: typical.and_then(|run| run.blast.map(|blast| since(run, blast.stopped))),
            runs: if trials.runs.len() > 1 { trials.runs.iter().map(points).collect() } else { Vec::new() },
            ends: typical.is_some_and(|run| matches!(run.end, SimulationEnd::Over(_))),
        }
    }

    /// The longest time that is drawn of it.
    pub(super) fn longest(&self) -> u64 {
        let ends = self.runs.iter().filter_map(|run| run.last()).map(|point| point.at);
        ends.chain([self.took]).max().unwrap_or_default()
    }

    /// The highest share that is drawn of it, in percent.
    pub(super) fn highest(&self) -> f64 {
        self.runs.iter().flatten().chain(&self.line).map(|point| point.share).fold(0.0, f64::max)
    }

    pub(super) fn draw(&self, svg: &mut Svg, scale: &Scale, (colour, dash): (&str, &str)) {
        if !self.runs.is_empty() {
            let band = self.band(scale);
            svg.shape("path", &format!("d=\"{band}\" fill=\"{colour}\" fill-opacity=\"0.16\""));
        }
        let places: Vec<_> =
            self.line.iter().map(|point| (scale.x(point.at), scale.y(point.share))).collect();
        let path = steps(&thinned(&places));
        let round = "fill=\"none\" stroke-linejoin=\"round\"";
        svg.shape("path", &format!("d=\"{path}\" stroke=\"{colour}\" stroke-width=\"2.5\" {round} {dash}"));
        for at in self.failures(scale) {
            cross(svg, self.place(scale, at), colour);
        }
        if let Some(at) = self.good {
            good(svg, self.place(scale, at), colour);
        }
        if let Some(at) = self.bad {
            bad(svg, self.place(scale, at), colour);
        }
        if let Some((x, y)) = places.last().filter(|_| self.ends) {
            let (x, y) = (number(*x), number(*y));
            svg.shape("circle", &format!("cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\""));
        }
    }

    fn place(&self, scale: &Scale, at: u64) -> (f64, f64) {
        (scale.x(at), scale.y(share_at(&self.line, at)))
    }

    /// When nodes failed, no two closer than a mark is wide.
    fn failures(&self, scale: &Scale) -> Vec<u64> {
        let mut marks: Vec<u64> = Vec::new();
        for (before, after) in self.line.iter().zip(self.line.iter().skip(1)) {
            let far = marks.last().is_none_or(|last| scale.x(after.at) - scale.x(*last) >= APART);
            if after.failed > before.failed && far {
                marks.push(after.at);
            }
        }
        marks
    }

    /// Between the fifth and the ninety-fifth of a hundred runs, over time.
    fn band(&self, scale: &Scale) -> String {
        let rank = |percent: usize| (self.runs.len() * percent).div_ceil(100).max(1) - 1;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for place in 0..=BAND {
            let at = self.longest() * place / BAND;
            let mut shares: Vec<f64> = self.runs.iter().map(|run| share_at(run, at)).collect();
            shares.sort_by(f64::total_cmp);
            let y = |percent| scale.y(shares.get(rank(percent)).copied().unwrap_or_default());
            low.push((scale.x(at), y(5)));
            high.push((scale.x(at), y(95)));
        }
        high.reverse();
        let corner = |(x, y): &(f64, f64)| format!("{} {}", number(*x), number(*y));
        let corners: Vec<String> = low.iter().chain(&high).map(corner).collect();
        format!("M{}Z", corners.join("L"))
    }
}

/// The share at a time: as it was last seen.
fn share_at(run: &[Point], at: u64) -> f64 {
    let place = run.partition_point(|point| point.at <= at);
    place.checked_sub(1).and_then(|place| run.get(place)).map_or(0.0, |point| point.share)
}

/// Without points that fall onto the same pixel as the one before; the last of them counts.
fn thinned(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for place in places {
        match kept.as_slice() {
            [.., _, last] if (place.0 - last.0).abs() < 0.75 && kept.len() > 1 => {
                if let Some(last) = kept.last_mut() {
                    last.1 = place.1;
                }
            }
            _ => kept.push(*place),
        }
    }
    kept
}

/// The mark for nodes that failed.
pub(super) fn cross(svg: &mut Svg, (x, y): (f64, f64), colour: &str) {
    let (left, right, up, down) = (number(x - 4.0), number(x + 4.0), number(y - 4.0), number(y + 4.0));
    let path = format!("M{left} {up}L{right} {down}M{left} {down}L{right} {up}");
    svg.shape("path", &format!("d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.8\" fill=\"none\""));
}

/// The mark for a version that was found bad.
pub(super) fn bad(svg: &mut Svg, (x, y): (f64, f64), colour: &str) {
    let (x, y) = (number(x - 5.0), number(y - 5.0));
    let square = format!("x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\"");
    svg.shape("rect", &format!("{square} fill=\"#fdfdfc\" stroke=\"{colour}\" stroke-width=\"2.5\""));
}

/// The mark for a version that was called good.
pub(super) fn good(svg: &mut Svg, (x, y): (f64, f64), colour: &str) {
    let (left, right, up, down) = (number(x - 6.0), number(x + 6.0), number(y - 6.0), number(y + 6.0));
    let (x, y) = (number(x), number(y));
    let path = format!("M{left} {y}L{x} {up}L{right} {y}L{x} {down}Z");
    svg.shape("path", &format!("d=\"{path}\" fill=\"#fdfdfc\" stroke=\"{colour}\" stroke-width=\"2\""));
}
