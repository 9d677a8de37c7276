//! The frame: what a target's place depends on beside the target itself. When it changes, every target is placed anew.

use super::lane::Lane;
use super::member::{is_broken, is_well};
use super::rank::Line;
use crate::records::entity::Entity;
use crate::records::progress::{Course, Progress};
use crate::records::rollout::{Judgement, Rollout};
use crate::records::target::{Outcome, Purpose, TargetState};
use crate::rollout::sighting::{Contact, Sighting};
use crate::words::counter::RolloutNumber;
use crate::words::time::Span;
use crate::words::version::Version;

/// What a target's place depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) stage: Stage,
    /// The rollout under way, or the newest.
    pub(crate) rollout: RolloutNumber,
    /// The version that a rollout under way moves targets to.
    pub(crate) rolling: Option<Version>,
    /// Last known good.
    pub(crate) good: Option<Version>,
    pub(crate) soak: Span,
    pub(crate) fail_fast: bool,
    pub(crate) retries: u32,
    /// Whether a monitoring hook has to say that a target does well.
    pub(crate) monitored: bool,
    /// The line in which targets take their turn.
    pub(crate) line: Line,
}

/// Which rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No rollout; members belong on last known good.
    Settled,
    /// No rollout; targets were left as they are.
    Left,
    /// A rollout goes forward and its version is not good yet.
    Judging,
    /// A rollout goes forward and its version is good.
    Finishing,
    /// A rollout takes its targets back.
    Back,
}

impl Frame {
    /// The frame that these records make. A rollout that is over, or missing, frames nothing: the decider mends that
    /// before it hands anything out.
    pub(crate) fn of(entity: &Entity, progress: &Progress, rollout: Option<&Rollout>) -> Self {
        let rollout =
            rollout.filter(|rollout| progress.active() == Some(rollout.number) && !rollout.is_over());
        let stage = match (progress.course, rollout) {
            (Course::Settled, _) => Stage::Settled,
            (Course::Left, _) | (Course::Forward(_) | Course::Back(_), None) => Stage::Left,
            (Course::Back(_), Some(_)) => Stage::Back,
            (Course::Forward(_), Some(rollout)) => match rollout.judgement {
                Judgement::Good { .. } => Stage::Finishing,
                Judgement::Open | Judgement::Bad { .. } => Stage::Judging,
            },
        };
        Self {
            stage,
            rollout: progress.last,
            rolling: rollout.map(|rollout| rollout.version.clone()),
            good: progress.last_known_good.clone(),
            soak: entity.policy.soak,
            fail_fast: entity.policy.fail_fast,
            retries: entity.policy.retries,
            monitored: entity.policy.hooks.monitoring.is_some(),
            line: Line::of(&entity.policy),
        }
    }

    /// The lane of a target.
    pub(crate) fn lane(&self, sighting: Option<&Sighting>, state: Option<&TargetState>) -> Lane {
        match (sighting, self.stage, &self.rolling) {
            (None, _, _) => self.lane_of_former(state),
            (Some(sighting), Stage::Judging | Stage::Finishing, Some(rolling)) => {
                self.lane_forward(rolling, sighting, state)
            }
            (Some(sighting), Stage::Back, _) => self.lane_back(sighting, state),
            (Some(sighting), Stage::Settled, _) => self.lane_settled(sighting, state),
            (Some(sighting), Stage::Left | Stage::Judging | Stage::Finishing, _) => {
                self.lane_left(sighting, state)
            }
        }
    }

    fn lane_of_former(&self, state: Option<&TargetState>) -> Lane {
        let counted = |state: &TargetState| {
            matches!(state.outcome, Outcome::Failed { .. }) && self.is_turn_of_this(state)
        };
        match self.stage {
            Stage::Judging | Stage::Finishing if state.is_some_and(counted) => Lane::Departed,
            Stage::Judging | Stage::Finishing | Stage::Settled | Stage::Left | Stage::Back => Lane::Gone,
        }
    }

    fn lane_forward(&self, rolling: &Version, sighting: &Sighting, state: Option<&TargetState>) -> Lane {
        let Some(state) = state else { return self.lane_before_turn(rolling, sighting, true) };
        if self.is_turn_of_this(state) {
            return match &state.outcome {
                Outcome::InFlight => flight(sighting),
                Outcome::Succeeded { .. } if state.purpose == Purpose::Adopted => Lane::Adopted,
                Outcome::Succeeded { .. } => Lane::Succeeded,
                Outcome::Failed { .. } => Lane::Failed,
                Outcome::Unreachable { .. } if sighting.contact == Contact::Up => {
                    self.lane_before_turn(rolling, sighting, false)
                }
                Outcome::Unreachable { .. } => Lane::Lost,
            };
        }
        if !state.is_in_flight() {
            return self.lane_before_turn(rolling, sighting, false);
        }
        if state.version == *rolling {
            return Lane::Carried;
        }
        let free = match state.purpose {
            Purpose::Turn | Purpose::Adopted => Lane::Passing,
            Purpose::Rollback | Purpose::KnownGood => Lane::Settling,
        };
        tellable(sighting, free)
    }

    fn lane_before_turn(&self, rolling: &Version, sighting: &Sighting, joined: bool) -> Lane {
        if is_well(sighting, rolling) {
            Lane::Adopting
        } else if joined && self.good.as_ref().is_some_and(|good| good != rolling) {
            tellable(sighting, Lane::Newcomer)
        } else {
            tellable(sighting, if is_broken(sighting) { Lane::Sick } else { Lane::Ready })
        }
    }

    fn lane_back(&self, sighting: &Sighting, state: Option<&TargetState>) -> Lane {
        let (Some(state), Some(good)) = (state, &self.good) else {
            return self.lane_left(sighting, state);
        };
        if state.version != *good {
            return match sighting.contact {
                Contact::Unreachable | Contact::Never => Lane::MovedAway,
                Contact::Up | Contact::Suspect if state.is_in_flight() => Lane::MovedFlight,
                Contact::Up | Contact::Suspect => Lane::Moved,
            };
        }
        let returned = state.rollout == self.rollout && state.purpose == Purpose::Rollback;
        match &state.outcome {
            Outcome::Unreachable { .. } if sighting.contact == Contact::Up => {
                tellable(sighting, Lane::Newcomer)
            }
            Outcome::InFlight if returned => flight(sighting),
            Outcome::Succeeded { .. } if returned => Lane::Succeeded,
            Outcome::Failed { .. } if returned => Lane::Failed,
            Outcome::Unreachable { .. } if returned => Lane::Lost,
            Outcome::InFlight => Lane::Settling,
            Outcome::Succeeded { .. } | Outcome::Failed { .. } | Outcome::Unreachable { .. } => Lane::Rest,
        }
    }

    fn lane_settled(&self, sighting: &Sighting, state: Option<&TargetState>) -> Lane {
        let (Some(state), Some(good)) = (state, &self.good) else {
            return self.lane_left(sighting, state);
        };
        let silent = matches!(state.outcome, Outcome::Unreachable { .. });
        if state.is_in_flight() {
            Lane::Settling
        } else if silent || state.version != *good {
            tellable(sighting, Lane::Newcomer)
        } else {
            Lane::Rest
        }
    }

    fn lane_left(&self, sighting: &Sighting, state: Option<&TargetState>) -> Lane {
        match state {
            None if self.good.is_some() => tellable(sighting, Lane::Newcomer),
            Some(state) if state.is_in_flight() => Lane::Settling,
            None | Some(_) => Lane::Rest,
        }
    }

    fn is_turn_of_this(&self, state: &TargetState) -> bool {
        state.rollout == self.rollout && matches!(state.purpose, Purpose::Turn | Purpose::Adopted)
    }
}

const fn flight(sighting: &Sighting) -> Lane {
    if sighting.held.is_some() { Lane::HeldFlight } else { Lane::InFlight }
}

/// The lane of a target that can be told, or the one that says why it cannot.
const fn tellable(sighting: &Sighting, free: Lane) -> Lane {
    match sighting.contact {
        Contact::Unreachable | Contact::Never => Lane::Away,
        Contact::Up | Contact::Suspect if sighting.held.is_some() => Lane::Held,
        Contact::Up => free,
        Contact::Suspect => Lane::Quiet,
    }
}
