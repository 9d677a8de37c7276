//! The targets of a simulation, each with its scheduled changes. Owns what a target reports when; decides
//! nothing about the rollout.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::evidence::Evidence;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::target::TargetState;
use crate::rollout::board::{Board, BoardTarget};
use crate::rollout::observation::{HealthProof, Observation, PresenceState};
use crate::trial::simulation::behaviour::SimulatedResponse;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};

/// The targets of a simulation, in name order.
pub(super) struct SimulatedTargets {
    pub(super) actors: Vec<SimulatedTarget>,
    pending: BTreeMap<Timestamp, Vec<ScheduledChange>>,
    could_not: Arc<Evidence>,
    sick: Arc<Evidence>,
}

/// One target.
pub(super) struct SimulatedTarget {
    pub(super) name: TargetName,
    /// Number of its last assignment; changes scheduled for an older one are dropped.
    pub(super) assignment: AssignmentNumber,
    /// Time since which it runs the simulated version.
    pub(super) since: Option<Timestamp>,
    /// Whether it was ever assigned that version, or ran it.
    pub(super) touched: bool,
    /// Whether it counts as succeeded.
    pub(super) succeeded: bool,
    /// Whether its check fails at present.
    pub(super) sick: bool,
    /// Whether it is silent, and so does not respond to assignments.
    pub(super) silent: bool,
}

/// A change that a target reports at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScheduledChange {
    pub(super) actor: usize,
    assignment: AssignmentNumber,
    pub(super) shows: SimulatedReport,
}

/// A change of what a target reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedReport {
    /// It runs the assigned version, and is healthy.
    Healthy,
    /// It runs the assigned version, and a check fails.
    Unhealthy,
    /// It failed, after this many attempts.
    Failed(u32),
    /// It stops reporting.
    Silence,
}

impl SimulatedTargets {
    /// The targets of a board.
    pub(super) fn of(board: &Board) -> Self {
        let (could_not, sick) = (said("apply failed"), said("a check fails"));
        let actors = board.targets().map(SimulatedTarget::of).collect();
        Self { actors, pending: BTreeMap::new(), could_not, sick }
    }

    /// Index of a target; searched for near `hint` first, because targets come in name order.
    pub(super) fn find(&self, hint: usize, name: &TargetName) -> Option<usize> {
        let ahead = self.actors.get(hint..).unwrap_or_default();
        if ahead.first().is_none_or(|first| first.name > *name) {
            return self.actors.binary_search_by(|actor| actor.name.cmp(name)).ok();
        }
        let mut reach = 1;
        while ahead.get(reach).is_some_and(|actor| actor.name <= *name) {
            reach *= 2;
        }
        let near = ahead.get(reach / 2..ahead.len().min(reach)).unwrap_or_default();
        let place = near.binary_search_by(|actor| actor.name.cmp(name)).ok()?;
        Some(hint + reach / 2 + place)
    }

    /// Schedules a change of a target; `slot` maps a time to its pass.
    pub(super) fn expect(
        &mut self,
        actor: usize,
        told_at: Timestamp,
        answer: SimulatedResponse,
        slot: impl Fn(Timestamp) -> Timestamp,
    ) {
        let Some(assignment) = self.actors.get(actor).map(|actor| actor.assignment) else { return };
        let mut note = |at: Timestamp, shows| {
            self.pending.entry(slot(at)).or_default().push(ScheduledChange { actor, assignment, shows });
        };
        match answer {
            SimulatedResponse::Succeeds { apply } => note(told_at.plus(apply), SimulatedReport::Healthy),
            SimulatedResponse::Fails { apply, attempts } => {
                note(told_at.plus(apply), SimulatedReport::Failed(attempts))
            }
            SimulatedResponse::BecomesUnhealthy { apply, healthy_for: Span::ZERO } => {
                note(told_at.plus(apply), SimulatedReport::Unhealthy)
            }
            SimulatedResponse::BecomesUnhealthy { apply, healthy_for } => {
                note(told_at.plus(apply), SimulatedReport::Healthy);
                note(told_at.plus(apply).plus(healthy_for), SimulatedReport::Unhealthy);
            }
            SimulatedResponse::Hangs => {}
            SimulatedResponse::FallsSilent { after } => note(told_at.plus(after), SimulatedReport::Silence),
        }
    }

    /// Time of the next scheduled change.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.pending.first_key_value().map(|(at, _)| *at)
    }

    /// Removes and returns the changes due by `now`, in name order, without those for older assignments.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<ScheduledChange> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now) {
            due.extend(self.pending.pop_first().into_iter().flat_map(|(_, cues)| cues));
        }
        due.retain(|cue| self.actors.get(cue.actor).is_some_and(|actor| actor.assignment == cue.assignment));
        due.sort_by_key(|cue| cue.actor);
        due
    }

    /// The observation of a target after this change.
    pub(super) fn observation(
        &self,
        shows: SimulatedReport,
        before: &Observation,
        state: &TargetState,
        now: Timestamp,
    ) -> Observation {
        // What it said of an earlier assignment, such as for how long it was healthy, is not of this one.
        let answers = Observation {
            answering: state.assignment,
            reported_at: now,
            proof: HealthProof::Contact,
            soak_failure: None,
            agent_restarted: false,
            ..before.clone()
        };
        let runs = || Some(state.version.clone());
        match shows {
            SimulatedReport::Healthy => Observation {
                running: runs(),
                activity: TargetActivity::Nothing,
                health: TargetHealth::Healthy,
                healthy_since: Some(now),
                ..answers
            },
            SimulatedReport::Unhealthy => Observation {
                running: runs(),
                activity: TargetActivity::Nothing,
                health: TargetHealth::Failing { evidence: self.sick.clone() },
                healthy_since: None,
                ..answers
            },
            SimulatedReport::Failed(attempts) => Observation {
                activity: TargetActivity::Failed { attempts, evidence: self.could_not.clone() },
                ..answers
            },
            SimulatedReport::Silence => Observation { contact: PresenceState::Unreachable, ..before.clone() },
        }
    }

    /// Number of targets that succeeded although their check fails, or will fail.
    pub(super) fn late(&self) -> u64 {
        let to_fail = self.pending.values().flatten().filter(|cue| cue.shows == SimulatedReport::Unhealthy);
        let still = |cue: &&ScheduledChange| {
            let actor = self.actors.get(cue.actor);
            actor.is_some_and(|actor| actor.succeeded && !actor.sick && actor.assignment == cue.assignment)
        };
        let later = to_fail.filter(still).count();
        let seen = self.actors.iter().filter(|actor| actor.succeeded && actor.sick).count();
        u64::try_from(seen + later).unwrap_or(u64::MAX)
    }
}

impl SimulatedTarget {
    fn of(target: BoardTarget<'_>) -> Self {
        let assigned = target.state.map(|state| state.assignment).unwrap_or_default();
        let silent = target.observation.is_none_or(|observation| observation.contact != PresenceState::Up);
        let (since, touched, succeeded, sick) = (None, false, false, false);
        Self { name: target.name.clone(), assignment: assigned, since, touched, succeeded, sick, silent }
    }

    /// Records a change; returns whether the target runs the assigned version.
    pub(super) fn show(&mut self, shows: SimulatedReport) -> bool {
        self.sick = shows == SimulatedReport::Unhealthy;
        self.silent |= shows == SimulatedReport::Silence;
        matches!(shows, SimulatedReport::Healthy | SimulatedReport::Unhealthy)
    }
}

fn said(summary: &str) -> Arc<Evidence> {
    Arc::new(Evidence { summary: summary.into(), ..Evidence::default() })
}
