//! Simulations: a rollout in virtual time. Owns the time and the order of events; the decisions are those of
//! the real decider, and the behaviour of targets is the caller's.
//!
//! ```
//! # use bellwether_core::trial::simulation::{Simulation, SimulationSetup, behaviour::UniformBehaviour};
//! # use bellwether_core::words::time::{Span, Timestamp};
//! # fn board() -> bellwether_core::rollout::board::Board {
//! #     use bellwether_core::{records::{entity::Entity, policy::Policy}, words::selector::Selector};
//! #     let entity = Entity::new("web".parse().unwrap(), Selector::all(), Policy::default());
//! #     bellwether_core::rollout::board::Board::new(entity.into(), Default::default(), None)
//! # }
//! // A board whose entity requests a version, real or simulated.
//! let setup = SimulationSetup { start: Timestamp::EPOCH, ..SimulationSetup::of(board()) };
//! let timeline = Simulation::run(setup, &UniformBehaviour::succeeds(Span::from_secs(30)));
//! assert_eq!(timeline.batches_opened, 0);
//! ```

mod apply;
pub mod behaviour;
pub mod fleet;
mod recorder;
mod targets;
pub mod timeline;

use crate::decide::rollout::decide;
use crate::records::rollout::{RolloutState, RolloutWait};
use crate::rollout::board::Board;
use crate::rollout::environment::RolloutEnvironment;
use crate::rollout::thresholds::Thresholds;
use crate::trial::simulation::behaviour::TargetBehaviour;
pub use crate::trial::simulation::recorder::TimelineDetail;
use crate::trial::simulation::recorder::TimelineRecorder;
use crate::trial::simulation::targets::SimulatedTargets;
use crate::trial::simulation::timeline::{SimulationEnd, Timeline, TimelineSample};
use crate::words::time::{Span, Timestamp};

/// The inputs of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationSetup {
    /// The entity with its targets; a version is requested already, or being rolled out.
    pub board: Board,
    /// The environment of the entity.
    pub environment: RolloutEnvironment,
    /// Virtual start time.
    pub start: Timestamp,
    /// Length of virtual time after which the simulation ends.
    pub horizon: Span,
    /// Length of the intervals that virtual time is divided into: all changes within one are decided in one
    /// pass, at its end. At least a millisecond.
    pub grain: Span,
    /// Seed of every random choice: the same seed gives the same timeline.
    pub seed: u64,
    /// How much of the timeline is kept.
    pub keep: TimelineDetail,
}

/// A simulation in progress.
pub struct Simulation {
    board: Board,
    environment: RolloutEnvironment,
    /// Virtual time of the next pass, or of the last one once it has ended.
    now: Timestamp,
    passed: Timestamp,
    start: Timestamp,
    until: Timestamp,
    grain: Span,
    seed: u64,
    cast: SimulatedTargets,
    notes: TimelineRecorder,
    thresholds: Thresholds,
    /// Virtual time of the last decision that changed anything.
    moved: Timestamp,
    end: Option<SimulationEnd>,
}

impl SimulationSetup {
    /// A board from the epoch on for 30 days, in passes of a second.
    #[must_use]
    pub fn of(board: Board) -> Self {
        Self {
            board,
            environment: RolloutEnvironment::default(),
            start: Timestamp::EPOCH,
            horizon: Span::from_secs(30 * 86_400),
            grain: Span::from_secs(1),
            seed: 0,
            keep: TimelineDetail { samples: 512, batches: 1_000 },
        }
    }
}

impl Simulation {
    /// Runs a simulation to its end.
    #[must_use]
    pub fn run(setup: SimulationSetup, behaviour: &impl TargetBehaviour) -> Timeline {
        let mut simulation = Self::begin(setup, behaviour);
        while simulation.step(behaviour) {}
        simulation.timeline()
    }

    /// Starts a simulation. Targets that are in flight continue with their assignments.
    #[must_use]
    pub fn begin(setup: SimulationSetup, behaviour: &impl TargetBehaviour) -> Self {
        let SimulationSetup { board, environment, start, horizon, grain, seed, keep } = setup;
        let wanted = board.entity().wanted.as_ref().map(|wanted| wanted.version.clone());
        let version = wanted.or_else(|| board.rollout().map(|rollout| rollout.version.clone()));
        let (cast, notes) = (SimulatedTargets::of(&board), TimelineRecorder::new(version, keep));
        let (thresholds, until) = (board.thresholds(), start.plus(horizon));
        let (now, passed, moved, end) = (start, start, start, None);
        let grain = grain.max(Span::from_millis(1));
        let mut simulation = Self {
            board,
            environment,
            now,
            passed,
            start,
            until,
            grain,
            seed,
            cast,
            notes,
            thresholds,
            moved,
            end,
        };
        if let Some(rollout) = simulation.board.shared_rollout() {
            simulation.notes.rollout(&rollout);
        }
        simulation.take_up(behaviour);
        simulation
    }

    /// Runs the next pass; returns whether there is another.
    pub fn step(&mut self, behaviour: &impl TargetBehaviour) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.notes.passes += 1;
        self.passed = self.now;
        self.show();
        let verdict = decide(&self.board, &self.environment, self.now);
        let (idle, wake) = (verdict.is_empty(), verdict.wake);
        if !idle {
            self.moved = self.now;
        }
        self.take(verdict, behaviour);
        let sample = self.sample();
        self.notes.sample(sample);
        let again = wake.map(|wake| self.slot(wake)).map(|wake| self.not_at_once(wake, idle));
        let next = [again, self.cast.next()].into_iter().flatten().min();
        self.end = self.ending(next);
        self.now = next.unwrap_or(self.now);
        self.end.is_none()
    }

    /// Counts of the board after the last pass.
    #[must_use]
    pub fn sample(&self) -> TimelineSample {
        // Without a rollout in progress the board has no counts of the last one.
        let counts = self.notes.over.unwrap_or_else(|| self.board.counts());
        TimelineSample {
            at: self.passed,
            assigned: self.notes.touched,
            running: self.notes.running,
            in_flight: counts.in_flight,
            succeeded: counts.succeeded,
            failed: counts.failed,
            unreachable: counts.unreachable,
        }
    }

    /// The timeline so far; if the simulation was stopped early, its horizon is the last pass.
    #[must_use]
    pub fn timeline(mut self) -> Timeline {
        let state = self.notes.newest.as_ref().map(|(_, state)| state.clone());
        let (end, ended) = match self.end {
            Some(SimulationEnd::Horizon(state)) => (SimulationEnd::Horizon(state), self.until),
            Some(end) => (end, self.moved),
            None => (state.map_or(SimulationEnd::Nothing, SimulationEnd::Horizon), self.passed),
        };
        for actor in &self.cast.actors {
            if let Some(since) = actor.since {
                self.notes.ran(ended.since(since));
            }
        }
        self.notes.finish(ended);
        let (blast, late) = (self.notes.blast(), self.cast.late());
        let TimelineRecorder {
            version,
            passes,
            batches_opened,
            batches,
            samples,
            most_in_flight,
            most_returning,
            good_at,
            ..
        } = self.notes;
        Timeline {
            began: self.start,
            ended,
            end,
            version,
            thresholds: self.thresholds,
            passes,
            batches_opened,
            batches,
            samples,
            most_in_flight,
            most_returning,
            late,
            good_at,
            blast,
        }
    }

    fn slot(&self, at: Timestamp) -> Timestamp {
        slot(self.start, self.grain, at)
    }

    /// Moves a wake time past the present one if the last pass changed nothing.
    fn not_at_once(&self, wake: Timestamp, idle: bool) -> Timestamp {
        if idle { wake.max(self.now.plus(self.grain)) } else { wake.max(self.now) }
    }

    /// Whether and how the simulation ends, if the next change is at `next`.
    fn ending(&self, next: Option<Timestamp>) -> Option<SimulationEnd> {
        let state = self.notes.newest.as_ref().map(|(_, state)| state.clone());
        let state = state.filter(|_| self.notes.version.is_some());
        let (Some(state), active) = (state, self.board.progress().active()) else {
            return Some(SimulationEnd::Nothing);
        };
        match (active, next, &state) {
            (None, _, _) => Some(SimulationEnd::Over(state)),
            (Some(_), Some(next), _) if next <= self.until => None,
            (Some(_), _, RolloutState::Paused(_) | RolloutState::Waiting(RolloutWait::Approval { .. })) => {
                Some(SimulationEnd::NeedsPerson(state))
            }
            (Some(_), None, _) => Some(SimulationEnd::Stuck(state)),
            (Some(_), Some(_), _) => Some(SimulationEnd::Horizon(state)),
        }
    }
}

/// End of the interval of length `grain` that contains a time.
fn slot(start: Timestamp, grain: Span, at: Timestamp) -> Timestamp {
    let stretches = at.since(start).as_millis().div_ceil(grain.as_millis());
    start.plus(Span::from_millis(stretches.saturating_mul(grain.as_millis())))
}
