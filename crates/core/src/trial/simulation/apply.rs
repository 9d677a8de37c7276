//! Changes of the simulated board in a pass: reports of targets, and assignments of a verdict.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Simulation, slot};
use crate::decide::rollout::verdict::{RolloutVerdict, TargetChange};
use crate::records::report::TargetActivity;
use crate::records::rollout::Rollout;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::rollout::board::BoardTarget;
use crate::rollout::board::revise::TargetUpdate;
use crate::rollout::observation::PresenceState;
use crate::trial::simulation::behaviour::{AssignedVersion, TargetBehaviour};
use crate::trial::simulation::targets::ScheduledChange;
use crate::words::name::TargetName;
use crate::words::random::RandomStream;

impl Simulation {
    /// Takes over the present state of targets: which of them run the version, and which are in flight.
    pub(super) fn take_up(&mut self, behaviour: &impl TargetBehaviour) {
        let mut in_flight = Vec::new();
        for (place, target) in self.board.targets().enumerate() {
            let Some(actor) = self.cast.actors.get_mut(place) else { continue };
            let runs = target.observation.and_then(|observation| observation.running.as_ref());
            if self.notes.version.is_some() && runs == self.notes.version.as_ref() {
                actor.since = Some(self.start);
                self.notes.running += 1;
            }
            let assigned =
                target.state.is_some_and(|state| Some(&state.version) == self.notes.version.as_ref());
            if assigned || actor.since.is_some() {
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

    /// Applies the scheduled changes that are due.
    pub(super) fn show(&mut self) {
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
            Some(TargetUpdate::Observation(observation))
        });
    }

    /// Applies a verdict to the board, and schedules the responses of targets that were assigned a version.
    pub(super) fn take(&mut self, verdict: RolloutVerdict, behaviour: &impl TargetBehaviour) {
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
                self.apply_assignment(place, &state, behaviour);
            }
            if run.last().is_some_and(|(last, _)| *last >= target) {
                self.fold_states(core::mem::take(&mut run));
            }
            run.push((target, state));
        }
        self.fold_states(run);
    }

    /// Applies new assignments to the board; they come in name order.
    fn fold_states(&mut self, run: Vec<(TargetName, TargetState)>) {
        self.board.revise(run.into_iter(), |state, _| Some(TargetUpdate::State(state)));
    }

    /// Records the outcome of a target, and schedules its response if it has a new assignment.
    fn apply_assignment(&mut self, place: usize, state: &TargetState, behaviour: &impl TargetBehaviour) {
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

    /// Asks the behaviour for a target's response to an assignment. A silent target does not respond.
    fn ask(&mut self, place: usize, state: &TargetState, behaviour: &impl TargetBehaviour) {
        let Some(actor) = self.cast.actors.get(place) else { return };
        if actor.silent {
            return;
        }
        let assigned = AssignedVersion {
            target: &actor.name,
            version: &state.version,
            purpose: state.purpose,
            assignment: state.assignment,
            at: state.assigned_at,
            policy: &self.board.entity().policy,
        };
        let mut chance = RandomStream::for_one(self.seed, actor.name.as_str(), state.assignment.get());
        let answer = behaviour.answer(&assigned, &mut chance);
        let (start, grain, now) = (self.start, self.grain, self.now);
        self.cast.expect(place, state.assigned_at, answer, |at| slot(start, grain, at).max(now.plus(grain)));
    }
}

/// Whether a target has an assignment that it has not answered yet, and can answer.
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
