//! The frame: everything that a target's phase depends on besides the target itself. When it changes, every
//! target's phase is computed anew.

use super::phase::TargetPhase;
use super::rank::TargetOrdering;
use crate::records::entity::Entity;
use crate::records::progress::{Progress, RolloutActivity};
use crate::records::report::TargetActivity;
use crate::records::rollout::{Rollout, VersionJudgement};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::rollout::observation::{Observation, PresenceState, is_broken, is_well};
use crate::words::counter::RolloutNumber;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// What the phase of every target depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoardFrame {
    pub(crate) stage: BoardMode,
    /// Number of the rollout in progress, or else the newest.
    pub(crate) rollout: RolloutNumber,
    /// The version that a rollout in progress assigns.
    pub(crate) rolling: Option<Version>,
    /// The version that targets without a turn belong on: last known good, or the one of a rollout that continued to
    /// its end in spite of its failures.
    pub(crate) base: Option<Version>,
    pub(crate) soak: Span,
    pub(crate) fail_fast: bool,
    pub(crate) retries: u32,
    /// Whether the monitoring hook must judge a target healthy before it succeeds.
    pub(crate) monitored: bool,
    /// Whether it is a run that a person aborted, or that is rolled back: what its nodes have not ended is withdrawn.
    pub(crate) withdraws: bool,
    /// Whether a rollout of versions was ended before its end: what a target has not begun is withdrawn.
    pub(crate) is_left: bool,
    /// Order in which targets are updated.
    pub(crate) line: TargetOrdering,
}

/// Which rules apply to the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoardMode {
    /// No rollout in progress; targets belong on the base version.
    Settled,
    /// No rollout in progress; targets were left as they are.
    Abandoned,
    /// A rollout rolls forward and its version is not judged good yet.
    Judging,
    /// A rollout rolls forward and its version is good.
    Finishing,
    /// A rollout rolls its targets back.
    RollingBack,
}

impl BoardFrame {
    /// The frame of these records. A rollout that is over, or missing, is ignored: the decider corrects that
    /// before it dispatches anything.
    pub(crate) fn of(entity: &Entity, progress: &Progress, rollout: Option<&Rollout>) -> Self {
        let rollout =
            rollout.filter(|rollout| progress.active() == Some(rollout.number) && !rollout.is_over());
        let stage = match (progress.activity, rollout) {
            (RolloutActivity::Settled | RolloutActivity::Continued, _) => BoardMode::Settled,
            (RolloutActivity::Abandoned, _)
            | (RolloutActivity::RollingForward(_) | RolloutActivity::RollingBack(_), None) => {
                BoardMode::Abandoned
            }
            (RolloutActivity::RollingBack(_), Some(_)) => BoardMode::RollingBack,
            (RolloutActivity::RollingForward(_), Some(rollout)) => match rollout.judgement {
                VersionJudgement::Good { .. } => BoardMode::Finishing,
                VersionJudgement::Open | VersionJudgement::Bad { .. } => BoardMode::Judging,
            },
        };
        Self {
            stage,
            rollout: progress.last,
            rolling: rollout.map(|rollout| rollout.version.clone()),
            base: base(entity, progress).cloned(),
            soak: entity.policy.soak,
            fail_fast: entity.policy.fail_fast,
            retries: entity.policy.retries,
            monitored: entity.policy.hooks.monitoring.is_some(),
            withdraws: entity.kind.is_run() && is_given_up(entity, progress),
            is_left: !entity.kind.is_run() && progress.activity == RolloutActivity::Abandoned,
            line: TargetOrdering::of(&entity.policy),
        }
    }

    /// The phase of a target.
    pub(crate) fn phase(
        &self,
        observation: Option<&Observation>,
        state: Option<&TargetState>,
    ) -> TargetPhase {
        match (observation, self.stage, &self.rolling) {
            (None, _, _) => self.lane_of_former(state),
            (Some(observation), BoardMode::Judging | BoardMode::Finishing, Some(rolling)) => {
                self.lane_forward(rolling, observation, state)
            }
            (Some(observation), BoardMode::RollingBack, _) => self.lane_back(observation, state),
            (Some(observation), BoardMode::Settled, _) => self.lane_settled(observation, state),
            (Some(observation), BoardMode::Abandoned | BoardMode::Judging | BoardMode::Finishing, _) => {
                self.lane_left(observation, state)
            }
        }
    }

    fn lane_of_former(&self, state: Option<&TargetState>) -> TargetPhase {
        let counted = |state: &TargetState| {
            matches!(state.outcome, AssignmentOutcome::Failed { .. })
                && state.failing_before.is_none()
                && self.is_turn_of_this(state)
        };
        match self.stage {
            BoardMode::Judging | BoardMode::Finishing if state.is_some_and(counted) => TargetPhase::Departed,
            BoardMode::Judging
            | BoardMode::Finishing
            | BoardMode::Settled
            | BoardMode::Abandoned
            | BoardMode::RollingBack => TargetPhase::Gone,
        }
    }

    fn lane_forward(
        &self,
        rolling: &Version,
        observation: &Observation,
        state: Option<&TargetState>,
    ) -> TargetPhase {
        let Some(state) = state else { return self.lane_before_turn(rolling, observation, true) };
        if self.is_turn_of_this(state) {
            return match &state.outcome {
                AssignmentOutcome::InFlight => flight(observation),
                AssignmentOutcome::Succeeded { .. } if state.purpose == AssignmentPurpose::Adopted => {
                    TargetPhase::Adopted
                }
                AssignmentOutcome::Succeeded { .. } => TargetPhase::Succeeded,
                AssignmentOutcome::Failed { .. } => failed(state),
                AssignmentOutcome::Unreachable { at, .. } if is_heard_since(observation, state, *at) => {
                    returning(observation)
                }
                AssignmentOutcome::Unreachable { .. } => TargetPhase::Lost,
            };
        }
        if !state.is_in_flight() {
            return self.lane_before_turn(rolling, observation, false);
        }
        if state.version == *rolling {
            return TargetPhase::CarriedOver;
        }
        let free = match state.purpose {
            AssignmentPurpose::Update | AssignmentPurpose::Adopted => TargetPhase::Passing,
            AssignmentPurpose::Rollback | AssignmentPurpose::KnownGood => TargetPhase::Settling,
        };
        tellable(observation, free)
    }

    fn lane_before_turn(&self, rolling: &Version, observation: &Observation, joined: bool) -> TargetPhase {
        if is_well(observation, rolling) {
            TargetPhase::Adopting
        } else if joined && self.base.as_ref().is_some_and(|base| base != rolling) {
            let arrived = observation.running.as_ref() == Some(rolling);
            tellable(observation, if arrived { TargetPhase::Arrived } else { TargetPhase::Newcomer })
        } else {
            tellable(
                observation,
                if is_broken(observation) { TargetPhase::Unhealthy } else { TargetPhase::Ready },
            )
        }
    }

    fn lane_back(&self, observation: &Observation, state: Option<&TargetState>) -> TargetPhase {
        let (Some(state), Some(base)) = (state, &self.base) else {
            return self.lane_left(observation, state);
        };
        if state.version != *base {
            return match observation.contact {
                PresenceState::Unreachable | PresenceState::Never => TargetPhase::MovedSilent,
                PresenceState::Up | PresenceState::Suspect if state.is_in_flight() => {
                    TargetPhase::MovedFlight
                }
                PresenceState::Up | PresenceState::Suspect if is_broken(observation) => {
                    TargetPhase::MovedUnhealthy
                }
                PresenceState::Up | PresenceState::Suspect => TargetPhase::Moved,
            };
        }
        let returned = state.rollout == self.rollout && state.purpose == AssignmentPurpose::Rollback;
        match &state.outcome {
            AssignmentOutcome::Unreachable { at, .. } if is_heard_since(observation, state, *at) => {
                if returned {
                    returning(observation)
                } else {
                    tellable(observation, TargetPhase::Newcomer)
                }
            }
            AssignmentOutcome::InFlight if returned => flight(observation),
            AssignmentOutcome::Succeeded { .. } if returned => TargetPhase::Succeeded,
            AssignmentOutcome::Failed { .. } if returned => failed(state),
            AssignmentOutcome::Unreachable { .. } if returned => TargetPhase::Lost,
            AssignmentOutcome::InFlight => TargetPhase::Settling,
            AssignmentOutcome::Succeeded { .. }
            | AssignmentOutcome::Failed { .. }
            | AssignmentOutcome::Unreachable { .. } => TargetPhase::Rest,
        }
    }

    fn lane_settled(&self, observation: &Observation, state: Option<&TargetState>) -> TargetPhase {
        let (Some(state), Some(base)) = (state, &self.base) else {
            return self.lane_left(observation, state);
        };
        let silent = match state.outcome {
            AssignmentOutcome::Unreachable { at, .. } => is_heard_since(observation, state, at),
            AssignmentOutcome::InFlight
            | AssignmentOutcome::Succeeded { .. }
            | AssignmentOutcome::Failed { .. } => false,
        };
        if state.is_in_flight() {
            TargetPhase::Settling
        } else if silent || state.version != *base {
            tellable(observation, TargetPhase::Newcomer)
        } else {
            TargetPhase::Rest
        }
    }

    fn lane_left(&self, observation: &Observation, state: Option<&TargetState>) -> TargetPhase {
        match state {
            None if self.base.is_some() => tellable(observation, TargetPhase::Newcomer),
            Some(state) if self.is_left && has_not_begun(observation, state) => TargetPhase::Passing,
            Some(state) if state.is_in_flight() => TargetPhase::Settling,
            Some(state) if self.withdraws && goes_on(observation, state) => TargetPhase::Settling,
            None | Some(_) => TargetPhase::Rest,
        }
    }

    fn is_turn_of_this(&self, state: &TargetState) -> bool {
        state.rollout == self.rollout
            && matches!(state.purpose, AssignmentPurpose::Update | AssignmentPurpose::Adopted)
    }
}

/// Whether a run ended before its end. One that settles without having been known good is rolled back.
fn is_given_up(entity: &Entity, progress: &Progress) -> bool {
    match progress.activity {
        RolloutActivity::Abandoned => entity.abort.is_some(),
        RolloutActivity::Settled => progress.last_known_good.is_none(),
        RolloutActivity::Continued | RolloutActivity::RollingForward(_) | RolloutActivity::RollingBack(_) => {
            false
        }
    }
}

/// The version that targets without a turn belong on. `None` for a run that was aborted: it is withdrawn from those that have not
/// succeeded, though it may have been known good before.
fn base<'a>(entity: &Entity, progress: &'a Progress) -> Option<&'a Version> {
    let good = progress.last_known_good.as_ref();
    match progress.activity {
        RolloutActivity::Abandoned if entity.kind.is_run() => None,
        RolloutActivity::Continued => progress.target.as_ref().or(good),
        RolloutActivity::Settled
        | RolloutActivity::Abandoned
        | RolloutActivity::RollingForward(_)
        | RolloutActivity::RollingBack(_) => good,
    }
}

/// Whether a target waits for something before it begins what it was assigned.
fn has_not_begun(observation: &Observation, state: &TargetState) -> bool {
    state.is_in_flight()
        && observation.answering == state.assignment
        && matches!(observation.activity, TargetActivity::Waiting { .. })
        && observation.running.as_ref() != Some(&state.version)
}

/// Whether a node may still work on an assignment that was given up: it is silent, or its deadline is over and its job is not.
fn goes_on(observation: &Observation, state: &TargetState) -> bool {
    match state.outcome {
        AssignmentOutcome::Unreachable { .. } => true,
        AssignmentOutcome::Failed { .. } => {
            let is_open = match observation.activity {
                TargetActivity::Applying { .. } | TargetActivity::Waiting { .. } => true,
                TargetActivity::Nothing | TargetActivity::Failed { .. } => false,
            };
            is_open && observation.answering == state.assignment
        }
        AssignmentOutcome::InFlight | AssignmentOutcome::Succeeded { .. } => false,
    }
}

const fn failed(state: &TargetState) -> TargetPhase {
    if state.failing_before.is_some() { TargetPhase::FailedAsBefore } else { TargetPhase::Failed }
}

const fn flight(observation: &Observation) -> TargetPhase {
    if observation.held.is_some() { TargetPhase::HeldFlight } else { TargetPhase::InFlight }
}

/// The phase of a target that was given up in this rollout and is in contact again.
const fn returning(observation: &Observation) -> TargetPhase {
    if observation.held.is_some() { TargetPhase::HeldReturning } else { TargetPhase::Returning }
}

/// Whether a target that was given up at `at` is in contact again: it connected since, or reported that it accepted its
/// assignment, and accepts its orders. One that goes on reporting without accepting it is given up once.
fn is_heard_since(observation: &Observation, state: &TargetState, at: Timestamp) -> bool {
    let answers = observation.reported_at > at && observation.answering == state.assignment;
    observation.contact == PresenceState::Up
        && observation.refuses.is_none()
        && (observation.contact_since >= at || answers)
}

/// `free` for a target that can be assigned a version now, else the phase that says why it cannot.
const fn tellable(observation: &Observation, free: TargetPhase) -> TargetPhase {
    match observation.contact {
        PresenceState::Unreachable | PresenceState::Never => TargetPhase::Silent,
        PresenceState::Up | PresenceState::Suspect if observation.held.is_some() => TargetPhase::Held,
        PresenceState::Up => free,
        PresenceState::Suspect => TargetPhase::Quiet,
    }
}
