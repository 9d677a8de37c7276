//! A rehearsal: a rollout in virtual time. Owns the time and the order in which things come; the decisions are the real
//! decider's, and what targets do is the caller's.
//!
//! ```
//! # use bellwether_core::rollout::rehearsal::{Keep, Rehearsal, Scene, behaviour::Everybody};
//! # use bellwether_core::words::time::{Span, Timestamp};
//! # fn board() -> bellwether_core::rollout::board::Board {
//! #     use bellwether_core::{records::{entity::Entity, policy::Policy}, words::selector::Selector};
//! #     let entity = Entity::new("web".parse().unwrap(), Selector::all(), Policy::default());
//! #     bellwether_core::rollout::board::Board::new(entity.into(), Default::default(), None)
//! # }
//! // A board whose entity asks for a version, real or made up.
//! let scene = Scene { start: Timestamp::EPOCH, ..Scene::of(board()) };
//! let timeline = Rehearsal::run(scene, &Everybody::succeeds(Span::from_secs(30)));
//! assert_eq!(timeline.batches_opened, 0);
//! ```

pub mod behaviour;
pub mod fleet;
pub mod random;
mod recorder;
mod targets;
pub mod timeline;

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::decide::rollout::decide;
use crate::decide::rollout::verdict::{RolloutVerdict, TargetChange};
use crate::records::report::TargetActivity;
use crate::records::rollout::{Rollout, RolloutState, RolloutWait};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::rollout::board::revise::TargetUpdate;
use crate::rollout::board::{Board, BoardTarget};
use crate::rollout::environment::RolloutEnvironment;
use crate::rollout::observation::PresenceState;
use crate::rollout::thresholds::Thresholds;
use crate::trial::simulation::behaviour::{AssignedVersion, TargetBehaviour};
use crate::trial::simulation::random::RandomStream;
pub use crate::trial::simulation::recorder::TimelineDetail;
use crate::trial::simulation::recorder::TimelineRecorder;
use crate::trial::simulation::targets::{ScheduledChange, SimulatedTargets};
use crate::trial::simulation::timeline::{SimulationEnd, Timeline, TimelineSample};
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};

/// What is rehearsed.
#[derive(Debug, Clone)]
pub struct SimulationSetup {
    /// The entity with its targets; it asks for a version already, or rolls one out.
    pub board: Board,
    /// What is around it.
    pub environment: RolloutEnvironment,
    /// When it begins.
    pub start: Timestamp,
    /// How long is looked at.
    pub horizon: Span,
    /// What falls into the same stretch of this length is one pass, at its end. At least a millisecond.
    pub grain: Span,
    /// Draws what chance decides: the same seed gives the same timeline.
    pub seed: u64,
    /// How much of it is kept.
    pub keep: TimelineDetail,
}

/// A rollout in virtual time, under way.
pub struct Simulation {
    board: Board,
    environment: RolloutEnvironment,
    /// When the next pass is, and when the last one was.
    now: Timestamp,
    passed: Timestamp,
    start: Timestamp,
    until: Timestamp,
    grain: Span,
    seed: u64,
    cast: SimulatedTargets,
    notes: TimelineRecorder,
    thresholds: Thresholds,
    /// When something was last decided.
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
    /// Rehearses a scene to its end.
    #[must_use]
    pub fn run(setup: SimulationSetup, behaviour: &impl TargetBehaviour) -> Timeline {
        let mut rehearsal = Self::begin(setup, behaviour);
        while rehearsal.step(behaviour) {}
        rehearsal.timeline()
    }

    /// Sets the scene. Targets that are in flight already go on with what they were told.
    #[must_use]
    pub fn begin(setup: SimulationSetup, behaviour: &impl TargetBehaviour) -> Self {
        let SimulationSetup { board, environment, start, horizon, grain, seed, keep } = setup;
        let wanted = board.entity().wanted.as_ref().map(|wanted| wanted.version.clone());
        let version = wanted.or_else(|| board.rollout().map(|rollout| rollout.version.clone()));
        let (cast, notes) = (SimulatedTargets::of(&board), TimelineRecorder::new(version, keep));
        let (thresholds, until) = (board.thresholds(), start.plus(horizon));
        let (now, passed, moved, end) = (start, start, start, None);
        let grain = grain.max(Span::from_millis(1));
        let mut rehearsal = Self {
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
        if let Some(rollout) = rehearsal.board.shared_rollout() {
            rehearsal.notes.rollout(&rollout);
        }
        rehearsal.take_up(behaviour);
        rehearsal
    }

    /// Makes the next pass; says whether there is another.
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

    /// How things stand after the last pass.
    #[must_use]
    pub fn sample(&self) -> TimelineSample {
        // A board without a rollout under way no longer says how the last one stood.
        let counts = self.notes.over.unwrap_or_else(|| self.board.counts());
        TimelineSample {
            at: self.passed,
            told: self.notes.touched,
            running: self.notes.running,
            in_flight: counts.in_flight,
            succeeded: counts.succeeded,
            failed: counts.failed,
            unreachable: counts.unreachable,
        }
    }

    /// What it has brought; stopped on the way, its horizon is the last pass.
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

    /// Takes up targets where they are: who runs the version already, and who is on the way to something.
    fn take_up(&mut self, behaviour: &impl TargetBehaviour) {
        let mut in_flight = Vec::new();
        for (place, target) in self.board.targets().enumerate() {
            let Some(actor) = self.cast.actors.get_mut(place) else { continue };
            let runs = target.observation.and_then(|observation| observation.running.as_ref());
            if self.notes.version.is_some() && runs == self.notes.version.as_ref() {
                actor.since = Some(self.start);
                self.notes.running += 1;
            }
            let told = target.state.is_some_and(|state| Some(&state.version) == self.notes.version.as_ref());
            if told || actor.since.is_some() {
                actor.touched = true;
                self.notes.touched += 1;
            }
            let outcome = target.state.map(|state| &state.outcome);
            actor.succeeded = matches!(outcome, Some(AssignmentOutcome::Succeeded { .. }));
            in_flight
                .extend(target.state.filter(|_| owes_an_answer(&target)).map(|state| (place, state.clone())));
        }
        for (place, state) in in_flight {
            self.ask(place, &state, behaviour);
        }
    }

    /// Lets targets show what is due.
    fn show(&mut self) {
        let Self { board, cast, notes, now, .. } = self;
        let due = cast.due(*now);
        let named = |cue: ScheduledChange| cast.actors.get(cue.actor).map(|actor| (actor.name.clone(), cue));
        let due: Vec<_> = due.into_iter().filter_map(named).collect();
        board.revise(due.into_iter(), |cue, target| {
            let (Some(before), Some(state)) = (target.observation, target.state) else { return None };
            let observation = cast.observation(cue.shows, before, state, *now);
            if let Some(actor) = cast.actors.get_mut(cue.actor) {
                let rehearsed = Some(&state.version) == notes.version.as_ref();
                match (actor.show(cue.shows), rehearsed, actor.since) {
                    (true, true, None) => {
                        actor.since = Some(*now);
                        notes.running += 1;
                    }
                    (true, false, Some(since)) => {
                        actor.since = None;
                        notes.running -= 1;
                        notes.ran(now.since(since));
                    }
                    (true, true, Some(_)) | (true, false, None) | (false, _, _) => {}
                }
            }
            Some(TargetUpdate::Sighting(observation))
        });
    }

    /// Brings a verdict onto the board, and asks who was told something what it does about it.
    fn take(&mut self, verdict: RolloutVerdict, behaviour: &impl TargetBehaviour) {
        for rollout in &verdict.rollouts {
            self.notes.rollout(rollout);
        }
        if verdict.progress.is_some() || !verdict.rollouts.is_empty() {
            let progress = verdict.progress.map_or_else(|| self.board.shared_progress(), Arc::new);
            let active = progress.active();
            let is_active = |rollout: &Rollout| active == Some(rollout.number);
            let changed = verdict.rollouts.into_iter().find(is_active).map(Arc::new);
            let kept = self.board.shared_rollout().filter(|rollout| is_active(rollout));
            self.board.fold_progress(progress, changed.or(kept));
        }
        let mut hint = 0;
        let mut run: Vec<(TargetName, TargetState)> = Vec::new();
        for TargetChange { target, state, .. } in verdict.targets {
            let Some(state) = state else {
                self.board.fold_state(&target, None);
                continue;
            };
            if let Some(place) = self.cast.find(hint, &target) {
                hint = place;
                self.heed(place, &state, behaviour);
            }
            if run.last().is_some_and(|(last, _)| *last >= target) {
                self.fold_states(core::mem::take(&mut run));
            }
            run.push((target, state));
        }
        self.fold_states(run);
    }

    /// Brings what targets were told onto the board; they come in name order.
    fn fold_states(&mut self, run: Vec<(TargetName, TargetState)>) {
        self.board.revise(run.into_iter(), |state, _| Some(TargetUpdate::State(state)));
    }

    /// Notes what became of a target's state, and what it will do about it if it was told something.
    fn heed(&mut self, place: usize, state: &TargetState, behaviour: &impl TargetBehaviour) {
        let Some(actor) = self.cast.actors.get_mut(place) else { return };
        actor.succeeded = matches!(state.outcome, AssignmentOutcome::Succeeded { .. });
        if state.assignment <= actor.assignment {
            return;
        }
        actor.assignment = state.assignment;
        let turn = matches!(state.purpose, AssignmentPurpose::Update | AssignmentPurpose::Adopted);
        if turn && !actor.touched && Some(&state.version) == self.notes.version.as_ref() {
            actor.touched = true;
            self.notes.touched += 1;
        }
        if state.is_in_flight() {
            if turn {
                self.notes.turn(&actor.name, behaviour);
            }
            self.ask(place, state, behaviour);
        }
    }

    /// Asks a target what it does about what it was told. A silent one does nothing.
    fn ask(&mut self, place: usize, state: &TargetState, behaviour: &impl TargetBehaviour) {
        let Some(actor) = self.cast.actors.get(place) else { return };
        if actor.silent {
            return;
        }
        let told = AssignedVersion {
            target: &actor.name,
            version: &state.version,
            purpose: state.purpose,
            assignment: state.assignment,
            at: state.assigned_at,
            policy: &self.board.entity().policy,
        };
        let mut chance = RandomStream::for_one(self.seed, actor.name.as_str(), state.assignment.get());
        let answer = behaviour.answer(&told, &mut chance);
        let (start, grain, now) = (self.start, self.grain, self.now);
        self.cast.expect(place, state.assigned_at, answer, |at| slot(start, grain, at).max(now.plus(grain)));
    }

    fn slot(&self, at: Timestamp) -> Timestamp {
        slot(self.start, self.grain, at)
    }

    /// A pass that changed nothing is not made again at the same time.
    fn not_at_once(&self, wake: Timestamp, idle: bool) -> Timestamp {
        if idle { wake.max(self.now.plus(self.grain)) } else { wake.max(self.now) }
    }

    /// Whether and how it has ended, if the next thing comes then.
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

/// The end of the stretch that a time falls into.
fn slot(start: Timestamp, grain: Span, at: Timestamp) -> Timestamp {
    let stretches = at.since(start).as_millis().div_ceil(grain.as_millis());
    start.plus(Span::from_millis(stretches.saturating_mul(grain.as_millis())))
}

/// Whether a target was told something that it has not answered yet, and can.
fn owes_an_answer(target: &BoardTarget<'_>) -> bool {
    let (Some(observation), Some(state)) = (target.observation, target.state) else { return false };
    let answered = observation.answering == state.assignment
        && (observation.running.as_ref() == Some(&state.version)
            && observation.activity == TargetActivity::Nothing
            || matches!(observation.activity, TargetActivity::Failed { .. }));
    state.is_in_flight()
        && observation.contact == PresenceState::Up
        && observation.held.is_none()
        && !answered
}
