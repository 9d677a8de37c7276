//! One target on the board, and what its sighting brings: the rules that turn a report into a verdict.

use alloc::format;
use alloc::sync::Arc;

use super::frame::{Frame, Stage};
use super::lane::Lane;
use super::rank::Rank;
use super::tally::{NEVER, Place};
use crate::records::evidence::Evidence;
use crate::records::target::{DeadlineClock, Outcome, Purpose, TargetState};
use crate::rollout::sighting::{Contact, Doing, Health, Sighting, Word};
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// One target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: TargetName,
    /// Where it stands in line before its name is looked at.
    pub(crate) rank: Option<Arc<Rank>>,
    /// What is seen of it; `None` when it is no target any more.
    pub(crate) sighting: Option<Sighting>,
    /// What it was told.
    pub(crate) state: Option<TargetState>,
    /// What follows for the board.
    pub(crate) place: Place,
}

/// What a target's sighting brings, at a time or at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coming {
    /// Nothing, unless its deadline passes.
    Nothing,
    /// What is kept of it goes: it left.
    Removal,
    /// Its deadline clock has to stop or go on: it was held or let go.
    ClockTurn,
    /// It has failed.
    Failure(Arc<Evidence>),
    /// It succeeds at this time.
    Success(Timestamp),
    /// It counts as succeeded on the rolling version at this time, untold.
    Adoption(Timestamp),
    /// It is on last known good already.
    AlreadyGood,
    /// Its flight joins this rollout.
    Carry,
    /// It failed after it had succeeded.
    FailedLater,
}

impl Coming {
    /// When it comes.
    const fn due(&self) -> Timestamp {
        match self {
            Self::Nothing => NEVER,
            Self::Success(at) | Self::Adoption(at) => *at,
            Self::Removal
            | Self::ClockTurn
            | Self::Failure(_)
            | Self::AlreadyGood
            | Self::Carry
            | Self::FailedLater => Timestamp::EPOCH,
        }
    }
}

impl Member {
    /// A target in its place.
    pub(crate) fn new(
        frame: &Frame,
        name: TargetName,
        sighting: Option<Sighting>,
        state: Option<TargetState>,
    ) -> Self {
        let place = place(frame, sighting.as_ref(), state.as_ref());
        let rank = frame.line.rank(&name, sighting.as_ref().map(|sighting| &sighting.labels));
        Self { name, rank, sighting, state, place }
    }

    /// Finds its place again after the frame changed.
    pub(crate) fn replace(&mut self, frame: &Frame) {
        self.place = place(frame, self.sighting.as_ref(), self.state.as_ref());
    }

    /// What its sighting brings.
    pub(crate) fn coming(&self, frame: &Frame) -> Coming {
        coming(frame, self.place.lane, self.sighting.as_ref(), self.state.as_ref())
    }
}

fn place(frame: &Frame, sighting: Option<&Sighting>, state: Option<&TargetState>) -> Place {
    let lane = frame.lane(sighting, state);
    let flight = state.filter(|state| state.is_in_flight() && sighting.is_some());
    let clock_from = match flight.map(|state| state.clock) {
        Some(DeadlineClock::Running { from }) => from,
        Some(DeadlineClock::Stopped { .. }) | None => NEVER,
    };
    let due = coming(frame, lane, sighting, state).due();
    let broken = sighting.is_some_and(is_broken);
    Place {
        lane,
        member: sighting.is_some(),
        flying: flight.is_some(),
        unavailable: flight.is_some() || broken,
        functional: sighting.is_some() && !broken,
        due,
        clock_from,
    }
}

fn coming(frame: &Frame, lane: Lane, sighting: Option<&Sighting>, state: Option<&TargetState>) -> Coming {
    let Some(sighting) = sighting else {
        return if lane == Lane::Gone { Coming::Removal } else { Coming::Nothing };
    };
    match (lane, state) {
        (Lane::Carried, _) => Coming::Carry,
        (Lane::Adopting, _) => match sighting.healthy_since {
            Some(since) => Coming::Adoption(since.plus(frame.soak)),
            None => Coming::Nothing,
        },
        (Lane::Newcomer, _) if frame.good.as_ref().is_some_and(|good| is_well(sighting, good)) => {
            Coming::AlreadyGood
        }
        (_, Some(state)) => match &state.outcome {
            Outcome::InFlight => in_flight(frame, sighting, state),
            Outcome::Succeeded { failed_later: None, .. } => afterwards(frame, lane, sighting, state),
            Outcome::Succeeded { .. } | Outcome::Failed { .. } | Outcome::Unreachable { .. } => {
                Coming::Nothing
            }
        },
        (_, None) => Coming::Nothing,
    }
}

/// What comes of an assignment without a verdict. Only a report that answers it counts.
fn in_flight(frame: &Frame, sighting: &Sighting, state: &TargetState) -> Coming {
    let stopped = matches!(state.clock, DeadlineClock::Stopped { .. });
    if stopped != stands_still(frame, sighting, state) {
        return Coming::ClockTurn;
    }
    if sighting.answering != state.assignment {
        return Coming::Nothing;
    }
    if frame.fail_fast
        && let Some(evidence) = trouble(frame.retries, sighting, state)
    {
        return Coming::Failure(evidence);
    }
    let needs_word = frame.monitored && state.purpose == Purpose::Turn;
    let word = word_on(frame, sighting, state);
    if let Some(Word { well: false, reason, .. }) = word {
        return Coming::Failure(Arc::new(Evidence::of(format!("the monitoring hook: {reason}"))));
    }
    match sighting.healthy_since {
        Some(since) if is_well(sighting, &state.version) && (!needs_word || word.is_some()) => {
            Coming::Success(since.max(state.assigned_at).plus(soak_for(frame, state.purpose)))
        }
        Some(_) | None => Coming::Nothing,
    }
}

/// Whether the target's deadline stands still: an operator holds it, it waits for something else, or the monitoring hook
/// has not said how it does.
pub(crate) fn stands_still(frame: &Frame, sighting: &Sighting, state: &TargetState) -> bool {
    let answers = sighting.answering == state.assignment;
    let waits = answers && matches!(sighting.doing, Doing::Waiting { .. });
    let unjudged = answers
        && frame.monitored
        && state.purpose == Purpose::Turn
        && is_well(sighting, &state.version)
        && word_on(frame, sighting, state).is_none();
    sighting.held.is_some() || waits || unjudged
}

/// What the monitoring hook said of this assignment, if it is asked.
fn word_on<'a>(frame: &Frame, sighting: &'a Sighting, state: &TargetState) -> Option<&'a Word> {
    let word = sighting.word.as_ref().filter(|word| frame.monitored && word.assignment == state.assignment);
    word.filter(|_| state.purpose == Purpose::Turn)
}

/// What comes of a target that had succeeded: until the version is good its failure counts, later it is only told.
fn afterwards(frame: &Frame, lane: Lane, sighting: &Sighting, state: &TargetState) -> Coming {
    if sighting.answering != state.assignment {
        return Coming::Nothing;
    }
    let counts =
        frame.fail_fast && frame.stage == Stage::Judging && matches!(lane, Lane::Succeeded | Lane::Adopted);
    match trouble(frame.retries, sighting, state) {
        Some(evidence) if counts => Coming::Failure(evidence),
        Some(_) => Coming::FailedLater,
        None => Coming::Nothing,
    }
}

/// The way back and the way to last known good need no soak: that version has proven itself.
const fn soak_for(frame: &Frame, purpose: Purpose) -> Span {
    match purpose {
        Purpose::Turn | Purpose::Adopted => frame.soak,
        Purpose::Rollback | Purpose::KnownGood => Span::ZERO,
    }
}

/// An error past its retries, or a failing check on the version it was told.
fn trouble(retries: u32, sighting: &Sighting, state: &TargetState) -> Option<Arc<Evidence>> {
    match (&sighting.doing, &sighting.health) {
        (Doing::Failed { attempts, evidence }, _) if *attempts > retries => Some(evidence.clone()),
        (Doing::Nothing, Health::Failing { evidence })
            if sighting.running.as_ref() == Some(&state.version) =>
        {
            Some(evidence.clone())
        }
        (
            Doing::Failed { .. } | Doing::Nothing | Doing::Applying { .. } | Doing::Waiting { .. },
            Health::NoChecks | Health::Healthy | Health::Failing { .. },
        ) => None,
    }
}

/// Whether it does not serve: it is not heard from, runs nothing, failed or fails its checks.
pub(crate) fn is_broken(sighting: &Sighting) -> bool {
    let away = match sighting.contact {
        Contact::Unreachable | Contact::Never => true,
        Contact::Up | Contact::Suspect => false,
    };
    away || sighting.running.is_none()
        || matches!(sighting.health, Health::Failing { .. })
        || matches!(sighting.doing, Doing::Failed { .. })
}

/// Whether it is heard from, runs the version, has nothing left to do and is healthy.
pub(crate) fn is_well(sighting: &Sighting, version: &Version) -> bool {
    let healthy = match sighting.health {
        Health::NoChecks | Health::Healthy => sighting.healthy_since.is_some(),
        Health::Failing { .. } => false,
    };
    healthy
        && sighting.contact == Contact::Up
        && sighting.doing == Doing::Nothing
        && sighting.running.as_ref() == Some(version)
}
