//! Trials: repeated runs of a policy on a simulated fleet. Owns the fleet's names and the random faults of each run; the
//! decisions are the real decider's.

use std::io::{IsTerminal, Write};

use bellwether_core::records::node::PresenceState;
use bellwether_core::trial::simulation::behaviour::TargetBehaviour;
use bellwether_core::trial::simulation::fleet::SimulatedFleet;
use bellwether_core::trial::simulation::timeline::Timeline;
use bellwether_core::trial::simulation::{Simulation, SimulationSetup, TimelineDetail};
use bellwether_core::words::label::{Label, Labels};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::{Span, Timestamp};

use crate::args::Simulate;
use crate::exit::Failure;
use crate::simulation::faults::FaultModel;
use crate::simulation::policies::NamedPolicy;

/// Most samples of one run: more than a plot can show. Many runs share a hundred times that.
const SAMPLES: usize = 400;

/// Most batches kept of one run, or of all runs together.
const BATCHES: usize = 1_000;

/// When the rollout is requested: late enough for every node to have been healthy for long.
const START: Timestamp = Timestamp::from_millis(86_400_000);

/// A policy with the results of its runs.
#[derive(Debug)]
pub(super) struct Trials {
    pub(super) named: NamedPolicy,
    /// The runs by their length, shortest first.
    pub(super) runs: Vec<Timeline>,
}

impl Trials {
    /// The run of median length.
    pub(super) fn typical(&self) -> Option<&Timeline> {
        self.runs.get(self.runs.len().saturating_sub(1) / 2)
    }
}

/// The length of a run, in the fleet's time.
pub(super) fn took(timeline: &Timeline) -> Span {
    timeline.ended.since(timeline.began)
}

/// A simulated fleet.
pub(super) struct TrialSetup<'a> {
    args: &'a Simulate,
    names: Vec<TargetName>,
    fleet: SimulatedFleet,
    luck: FaultModel,
    line: ProgressLine,
}

impl<'a> TrialSetup<'a> {
    pub(super) fn new(args: &'a Simulate) -> Result<Self, Failure> {
        let ours = |error: &dyn std::fmt::Display| Failure::ours(format!("simulate a fleet: {error}"));
        let width = args.nodes.to_string().len();
        let names = (1..=args.nodes).map(|number| TargetName::parse(&format!("node-{number:0width$}")));
        let names = names.collect::<Result<_, _>>().map_err(|error| ours(&error))?;
        let version = |text: &str| text.parse().map_err(|error| ours(&error));
        let fleet = SimulatedFleet {
            entity: "simulated".parse().map_err(|error| ours(&error))?,
            by: "simulate".parse().map_err(|error| ours(&error))?,
            good: version("v1")?,
            wanted: version("v2")?,
            at: START,
        };
        let luck = FaultModel {
            apply: args.apply_time,
            unlucky: args.failure_rate,
            bad: args.bad,
            mix: args.failure_mode.clone(),
            late: args.late,
            zones: args.zones,
        };
        Ok(Self { args, names, fleet, luck, line: ProgressLine::new() })
    }

    /// Runs a policy as often as requested.
    pub(super) fn play(&mut self, named: &NamedPolicy) -> Trials {
        let mut runs: Vec<Timeline> = (1..=self.args.runs).map(|run| self.run(named, run)).collect();
        self.line.clear();
        runs.sort_by_key(took);
        Trials { named: named.clone(), runs }
    }

    fn run(&mut self, named: &NamedPolicy, run: u32) -> Timeline {
        let seed = RandomStream::for_one(self.args.seed, "run", u64::from(run)).draw();
        let silent = self.args.unreachable_rate.parts();
        let heard = |name: &TargetName| {
            if RandomStream::for_one(seed, name.as_str(), 0).happens(silent) {
                PresenceState::Unreachable
            } else {
                PresenceState::Up
            }
        };
        let zoned: Vec<Labels> =
            (1..=self.args.zones.max(1)).map(|zone| in_zone(&format!("z{zone}"))).collect();
        let labels = |name: &TargetName| {
            let zone = self.luck.domain(name)?;
            zoned.iter().find(|labels| labels.get("zone") == Some(&*zone)).cloned()
        };
        let targets =
            self.names.iter().map(|name| (name.clone(), heard(name), labels(name).unwrap_or_default()));
        let runs = usize::try_from(self.args.runs).unwrap_or(usize::MAX);
        let keep = TimelineDetail {
            samples: (SAMPLES * 100 / runs).clamp(64, SAMPLES),
            batches: BATCHES.div_ceil(runs),
        };
        let board = self.fleet.board(&named.policy, targets);
        let scene = SimulationSetup {
            start: START,
            horizon: self.args.until,
            seed,
            keep,
            ..SimulationSetup::of(board)
        };
        let mut simulation = Simulation::begin(scene, &self.luck);
        while simulation.step(&self.luck) {
            let assigned = simulation.sample().assigned * 100 / u64::from(self.args.nodes);
            self.line.draw(
                || format!("{}: run {run} of {runs}, {assigned}% assigned", named.name),
                (run, assigned),
            );
        }
        simulation.timeline()
    }
}

/// The labels of a node in a zone.
fn in_zone(zone: &str) -> Labels {
    let mut labels = Labels::default();
    if let Ok(label) = Label::new("zone", zone) {
        // One label always fits.
        drop(labels.set(label));
    }
    labels
}

/// A progress line on the terminal, redrawn when it changes.
struct ProgressLine {
    terminal: bool,
    drawn: Option<(u32, u64)>,
}

impl ProgressLine {
    fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), drawn: None }
    }

    fn draw(&mut self, text: impl FnOnce() -> String, method: (u32, u64)) {
        if self.terminal && self.drawn != Some(method) {
            self.drawn = Some(method);
            let line = crate::show::screen::cut(&text(), crate::show::screen::size().0.saturating_sub(1));
            // With the terminal closed nobody reads the line.
            drop(write!(std::io::stderr(), "\r\x1b[K{line}"));
        }
    }

    fn clear(&mut self) {
        if self.drawn.take().is_some() {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }
}
