//! The report of the trials of several policies, as data and as a table. Owns percentiles and texts; simulates nothing.

use std::collections::BTreeMap;

use bellwether_api::v1::policy::Policy as PolicyShape;
use bellwether_core::records::rollout::{RolloutPause, RolloutState};
use bellwether_core::trial::simulation::timeline::{SimulatedBatch, SimulationEnd, Timeline, TimelineSample};
use serde::Serialize;

use super::trial::{Trials, took};
use crate::args::Simulate;
use crate::show::table;
use crate::show::time::length;

/// The results of all trials.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    nodes: u32,
    runs: u32,
    seed: u64,
    policies: Vec<Outcome>,
}

/// The results of one policy's trials.
#[derive(Debug, Serialize)]
struct Outcome {
    name: String,
    policy: PolicyShape,
    /// Number of runs by how they ended.
    ends: BTreeMap<&'static str, u64>,
    /// How the run of median length ended, in a sentence.
    end: String,
    took_ms: Range,
    batches: Range,
    assigned: Range,
    failed: Range,
    /// Nodes that counted as succeeded and fail after the soak.
    late: Range,
    in_flight_most: u64,
    /// Most nodes in flight at once during a rollback.
    returning_most: u64,
    /// The effects of the bad version in the runs after which it was known bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_bad: Option<KnownBad>,
    /// The batches of the run of median length.
    opened: Vec<Opened>,
    /// The counts over time of the run of median length.
    series: Vec<Point>,
}

/// The distribution of a number over the runs.
#[derive(Debug, Clone, Copy, Serialize)]
struct Range {
    least: u64,
    p5: u64,
    median: u64,
    p95: u64,
    most: u64,
}

#[derive(Debug, Serialize)]
struct KnownBad {
    runs: u64,
    /// Nodes that were assigned the version when it became known bad.
    touched: Range,
    /// Time from the start until the version was known bad.
    after_ms: Range,
    /// Longest time that any node ran the version.
    longest_ms: Range,
    /// Time that all nodes together ran the version, in seconds.
    node_seconds: Range,
}

#[derive(Debug, Serialize)]
struct Opened {
    number: u64,
    at_ms: u64,
    assigned: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    zones: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct Point {
    at_ms: u64,
    assigned: u64,
    on_new: u64,
    in_flight: u64,
    succeeded: u64,
    failed: u64,
    unreachable: u64,
}

impl Report {
    pub(super) fn of(args: &Simulate, trials: &[Trials]) -> Self {
        let policies = trials.iter().map(Outcome::of).collect();
        Self { nodes: args.nodes, runs: args.runs, seed: args.seed, policies }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.policies.iter().map(|outcome| outcome.name.clone()).collect()
    }

    /// A row for each policy, and a line for each one that did not simply succeed.
    pub(super) fn human(&self) -> String {
        let late = self.policies.iter().any(|outcome| outcome.late.most > 0);
        let mut header = vec!["policy", "result", "took", "batches", "assigned", "failed"];
        if late {
            header.push("failed late");
        }
        header.extend(["in flight", "blast", "stopped after"]);
        let mut text = table(&header, self.policies.iter().map(|outcome| outcome.row(late)));
        for outcome in self.policies.iter().filter(|outcome| !outcome.end.is_empty()) {
            text.push_str(&format!("\n{}: {}", outcome.name, outcome.end));
        }
        text
    }
}

impl Outcome {
    fn of(trials: &Trials) -> Self {
        let runs = &trials.runs;
        let last = |read: fn(&TimelineSample) -> u64| {
            Range::of(runs.iter().map(|run| run.samples.last().map_or(0, read)))
        };
        let mut ends = BTreeMap::new();
        for run in runs {
            *ends.entry(label(&run.end)).or_insert(0) += 1;
        }
        let typical = trials.typical();
        let since = typical.map(|run| run.began.as_millis()).unwrap_or_default();
        Self {
            name: trials.named.name.clone(),
            policy: PolicyShape::from(&trials.named.policy),
            ends,
            end: typical.map(sentence).unwrap_or_default(),
            took_ms: Range::of(runs.iter().map(|run| took(run).as_millis())),
            batches: Range::of(runs.iter().map(|run| run.batches_opened)),
            assigned: last(|sample| sample.assigned),
            failed: last(|sample| sample.failed),
            late: Range::of(runs.iter().map(|run| run.late)),
            in_flight_most: runs.iter().map(|run| run.most_in_flight).max().unwrap_or_default(),
            returning_most: runs.iter().map(|run| run.most_returning).max().unwrap_or_default(),
            known_bad: KnownBad::of(runs),
            opened: typical
                .into_iter()
                .flat_map(|run| &run.batches)
                .map(|batch| opened(batch, since))
                .collect(),
            series: typical.into_iter().flat_map(|run| &run.samples).map(|one| point(one, since)).collect(),
        }
    }

    fn row(&self, late: bool) -> Vec<String> {
        let bad = self.known_bad.as_ref();
        let mut row = vec![
            self.name.clone(),
            self.result(),
            self.took_ms.show(length),
            self.batches.show(|number| number.to_string()),
            self.assigned.show(|number| number.to_string()),
            self.failed.show(|number| number.to_string()),
        ];
        if late {
            row.push(self.late.show(|number| number.to_string()));
        }
        row.push(self.in_flight_most.to_string());
        row.push(bad.map_or_else(|| "-".to_owned(), |bad| bad.touched.extremes()));
        row.push(bad.map_or_else(|| "-".to_owned(), |bad| bad.after_ms.show(length)));
        row
    }

    /// How the runs ended, with counts if they differ.
    fn result(&self) -> String {
        let all: u64 = self.ends.values().sum();
        let mut ends: Vec<_> = self.ends.iter().collect();
        ends.sort_by_key(|(_, runs)| std::cmp::Reverse(**runs));
        match ends.as_slice() {
            [(only, _)] => (*only).to_string(),
            several => {
                let part = |(end, runs): &(&&str, &u64)| format!("{end} {runs}/{all}");
                several.iter().map(part).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

impl KnownBad {
    fn of(runs: &[Timeline]) -> Option<Self> {
        let blasts = || runs.iter().filter_map(|run| run.blast.map(|blast| (run.began, blast)));
        let found = blasts().count();
        (found > 0).then(|| Self {
            runs: u64::try_from(found).unwrap_or(u64::MAX),
            touched: Range::of(blasts().map(|(_, blast)| blast.touched)),
            after_ms: Range::of(blasts().map(|(began, blast)| blast.stopped.since(began).as_millis())),
            longest_ms: Range::of(blasts().map(|(_, blast)| blast.longest.as_millis())),
            node_seconds: Range::of(
                blasts().map(|(_, blast)| u64::try_from(blast.target_millis / 1_000).unwrap_or(u64::MAX)),
            ),
        })
    }
}

impl Range {
    fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = numbers.collect();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or_default()
        };
        Self { least: at(0), p5: at(5), median: at(50), p95: at(95), most: at(100) }
    }

    /// The median, and the range of nine runs in ten if they differ.
    fn show(&self, word: impl Fn(u64) -> String) -> String {
        let (low, high) = (word(self.p5), word(self.p95));
        let median = word(self.median);
        if low == high && low == median { median } else { format!("{median} ({low} to {high})") }
    }

    /// Best, median and worst, if they differ.
    fn extremes(&self) -> String {
        let Self { least, median, most, .. } = self;
        if least == most { median.to_string() } else { format!("{least} / {median} / {most}") }
    }
}

/// How a run ended, in a few words.
pub(super) const fn label(end: &SimulationEnd) -> &'static str {
    match end {
        SimulationEnd::Over(state) => state.label(),
        SimulationEnd::NeedsPerson(_) => "paused",
        SimulationEnd::Stuck(_) => "waits forever",
        SimulationEnd::Horizon(_) => "unfinished",
        SimulationEnd::Nothing => "nothing to do",
    }
}

/// The reason of an end that needs one.
fn sentence(run: &Timeline) -> String {
    match &run.end {
        SimulationEnd::Over(_) | SimulationEnd::Nothing => String::new(),
        SimulationEnd::NeedsPerson(state @ RolloutState::Paused(RolloutPause::TooManyUnreachable { .. })) => {
            format!("{state}; it resumes by itself when enough of them report again")
        }
        SimulationEnd::NeedsPerson(state @ RolloutState::Paused(RolloutPause::OnlyFailingBefore { .. })) => {
            format!("{state}; it resumes by itself when one of them succeeds")
        }
        SimulationEnd::NeedsPerson(state) => format!("{state}; only an operator can resume it"),
        SimulationEnd::Stuck(state) => format!("{state}; this does not end without an operator"),
        SimulationEnd::Horizon(state) => {
            format!("still {state} after {}; use a longer --until", length(took(run).as_millis()))
        }
    }
}

fn opened(batch: &SimulatedBatch, since: u64) -> Opened {
    let names = batch.names.as_ref();
    Opened {
        number: batch.number,
        at_ms: batch.opened.as_millis().saturating_sub(since),
        assigned: batch.assigned,
        first: names.map(|(first, _)| first.to_string()),
        last: names.map(|(_, last)| last.to_string()),
        zones: batch.domains.iter().map(|(zone, assigned)| (zone.to_string(), *assigned)).collect(),
    }
}

fn point(sample: &TimelineSample, since: u64) -> Point {
    Point {
        at_ms: sample.at.as_millis().saturating_sub(since),
        assigned: sample.assigned,
        on_new: sample.running,
        in_flight: sample.in_flight,
        succeeded: sample.succeeded,
        failed: sample.failed,
        unreachable: sample.unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_by_nearest_rank() {
        let range = Range::of(1..=100);
        assert_eq!((range.least, range.p5, range.median, range.p95, range.most), (1, 5, 50, 95, 100));
        assert_eq!(range.show(|number| number.to_string()), "50 (5 to 95)");
        assert_eq!(range.extremes(), "1 / 50 / 100");
        let alike = Range::of([7, 7].into_iter());
        assert_eq!((alike.show(|number| number.to_string()), alike.extremes()), ("7".into(), "7".into()));
    }
}
