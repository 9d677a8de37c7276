//! One target on the board, and what follows from its observation: the rules that turn a report into an
//! outcome.

use alloc::format;
use alloc::sync::Arc;

use super::frame::{BoardFrame, BoardMode};
use super::phase::TargetPhase;
use super::rank::Rank;
use super::tally::{NEVER, TargetPosition};
use crate::records::evidence::Evidence;
use crate::records::hook_answers::MonitorReport;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::observation::{
    HealthProof, Observation, PresenceState, drifted, is_broken, is_functional, is_well,
};
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};

/// Within this time of its start an answer restarts no deadline: it would change nothing but the record.
const AT_ONCE: Span = Span::from_secs(1);

/// One target on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoardMember {
    pub(crate) name: TargetName,
    /// Its rank in the update order; targets of equal rank are ordered by name.
    pub(crate) rank: Option<Arc<Rank>>,
    /// Its last observation; `None` for a former target.
    pub(crate) observation: Option<Observation>,
    /// Its assignment; `None` if it has none.
    pub(crate) state: Option<TargetState>,
    /// Its position, derived from the other fields and the frame.
    pub(crate) place: TargetPosition,
}

/// The next change that follows from a target's observation, now or at a known time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UpcomingChange {
    /// None before its deadline.
    Nothing,
    /// The record of its assignment is removed: it is a former target.
    Removal,
    /// Its deadline clock stops or continues: it was held or released.
    ClockTurn,
    /// It fails now.
    Failure(Arc<Evidence>),
    /// It was seen, at this time or now, not to have succeeded by its deadline.
    RunOut(Timestamp),
    /// It fell silent while it was rolled back: it is not waited for.
    GivenUp,
    /// It succeeds at this time, unless its observation changes.
    Success(Timestamp),
    /// It counts as succeeded on the rolling version at this time, without an assignment.
    Adoption(Timestamp),
    /// It runs last known good already.
    AlreadyGood,
    /// Its assignment in flight joins this rollout.
    Carry,
    /// It failed, or is on another version, after it had succeeded.
    FailedLater(Arc<Evidence>),
    /// It is in flight again: it had succeeded, has not any more, and the version is not judged yet.
    Relapse(Arc<Evidence>),
    /// It failed after it had succeeded, and will have been healthy again for the soak at this time.
    Recovered(Timestamp),
    /// Its agent is to measure another soak: the policy changed.
    SoakChange(Span),
}

impl UpcomingChange {
    /// Time of the change; immediately for most.
    const fn due(&self) -> Timestamp {
        match self {
            Self::Nothing => NEVER,
            Self::Success(at) | Self::Adoption(at) | Self::RunOut(at) | Self::Recovered(at) => *at,
            Self::Removal
            | Self::ClockTurn
            | Self::Failure(_)
            | Self::GivenUp
            | Self::AlreadyGood
            | Self::Carry
            | Self::FailedLater(_)
            | Self::Relapse(_)
            | Self::SoakChange(_) => Timestamp::EPOCH,
        }
    }
}

impl BoardMember {
    /// A target with its position.
    pub(crate) fn new(
        frame: &BoardFrame,
        name: TargetName,
        observation: Option<Observation>,
        state: Option<TargetState>,
    ) -> Self {
        let place = place(frame, observation.as_ref(), state.as_ref());
        let rank = frame.line.rank(&name, observation.as_ref().map(|observation| &observation.labels));
        Self { name, rank, observation, state, place }
    }

    /// Computes its position again after the frame changed.
    pub(crate) fn replace(&mut self, frame: &BoardFrame) {
        self.place = place(frame, self.observation.as_ref(), self.state.as_ref());
    }

    /// The next change that follows from its observation.
    pub(crate) fn coming(&self, frame: &BoardFrame) -> UpcomingChange {
        coming(frame, self.place.phase, self.observation.as_ref(), self.state.as_ref())
    }
}

fn place(
    frame: &BoardFrame,
    observation: Option<&Observation>,
    state: Option<&TargetState>,
) -> TargetPosition {
    let phase = frame.phase(observation, state);
    let flight = state.filter(|state| state.is_in_flight() && observation.is_some());
    let clock_from = match flight.map(|state| state.clock) {
        Some(DeadlineClock::Running { from, .. }) => from,
        Some(DeadlineClock::Silent { since, .. }) => since,
        Some(DeadlineClock::Stopped { .. } | DeadlineClock::Overdue { .. }) | None => NEVER,
    };
    let due = coming(frame, phase, observation, state).due();
    let broken = observation.is_some_and(is_broken);
    TargetPosition {
        phase,
        member: observation.is_some(),
        in_flight: flight.is_some(),
        unavailable: flight.is_some() || broken,
        functional: observation.is_some_and(|observation| is_functional(observation, flight)),
        due,
        clock_from,
    }
}

fn coming(
    frame: &BoardFrame,
    phase: TargetPhase,
    observation: Option<&Observation>,
    state: Option<&TargetState>,
) -> UpcomingChange {
    let Some(observation) = observation else {
        return if phase == TargetPhase::Gone { UpcomingChange::Removal } else { UpcomingChange::Nothing };
    };
    match (phase, state) {
        (TargetPhase::CarriedOver, _) => UpcomingChange::Carry,
        (TargetPhase::Adopting, _) => {
            adoption(frame, observation).map_or(UpcomingChange::Nothing, UpcomingChange::Adoption)
        }
        (TargetPhase::Newcomer, _) if frame.base.as_ref().is_some_and(|base| is_well(observation, base)) => {
            UpcomingChange::AlreadyGood
        }
        (_, Some(state)) if state.awaits_soak() && state.soak != soak_for(frame, state.purpose) => {
            UpcomingChange::SoakChange(soak_for(frame, state.purpose))
        }
        (_, Some(state)) => match &state.outcome {
            AssignmentOutcome::InFlight => in_flight(frame, observation, state),
            AssignmentOutcome::Failed { .. }
                if matches!(phase, TargetPhase::Failed | TargetPhase::FailedAsBefore | TargetPhase::Rest) =>
            {
                success(frame, observation, state).map_or(UpcomingChange::Nothing, UpcomingChange::Success)
            }
            AssignmentOutcome::Succeeded { .. } => afterwards(frame, phase, observation, state),
            AssignmentOutcome::Failed { .. } | AssignmentOutcome::Unreachable { .. } => {
                UpcomingChange::Nothing
            }
        },
        (_, None) => UpcomingChange::Nothing,
    }
}

/// The next change of an assignment without an outcome. Only a report that answers the assignment counts.
fn in_flight(frame: &BoardFrame, observation: &Observation, state: &TargetState) -> UpcomingChange {
    let silent = matches!(observation.contact, PresenceState::Unreachable | PresenceState::Never);
    if silent && state.purpose == AssignmentPurpose::Rollback {
        return UpcomingChange::GivenUp;
    }
    if turns(ClockCourse::of(frame, observation, state), observation, state) {
        return UpcomingChange::ClockTurn;
    }
    if observation.answering != state.assignment {
        return overdue(observation, state).map_or(UpcomingChange::Nothing, UpcomingChange::RunOut);
    }
    if frame.fail_fast
        && let Some(evidence) = trouble(frame.retries, observation, state)
    {
        return UpcomingChange::Failure(evidence);
    }
    if frame.fail_fast
        && let Some(reason) = &observation.soak_failure
    {
        // Nobody may have been there to see it.
        return UpcomingChange::Failure(Arc::new(Evidence::of(format!("in its soak: {reason}"))));
    }
    if let Some(MonitorReport { well: false, reason, .. }) = word_on(frame, observation, state) {
        return UpcomingChange::Failure(Arc::new(Evidence::of(format!("monitoring hook: {reason}"))));
    }
    match (success(frame, observation, state), overdue(observation, state)) {
        (Some(success), Some(limit)) if success > limit.max(observation.reported_at) => {
            UpcomingChange::RunOut(limit)
        }
        (Some(success), _) => UpcomingChange::Success(success),
        (None, Some(limit)) => UpcomingChange::RunOut(limit),
        (None, None) => UpcomingChange::Nothing,
    }
}

/// When a target that answers its assignment will have been healthy for the soak; `None` while it is not healthy.
fn success(frame: &BoardFrame, observation: &Observation, state: &TargetState) -> Option<Timestamp> {
    let needs_word = frame.monitored && state.purpose == AssignmentPurpose::Update;
    let agreed =
        !needs_word || word_on(frame, observation, state).is_some_and(|MonitorReport { well, .. }| *well);
    soaked(observation, state).filter(|_| agreed)
}

/// When a target that answers its assignment will have been healthy for the soak, or was seen to have been; `None` while it is
/// not healthy, or its next report decides.
pub(crate) fn soaked(observation: &Observation, state: &TargetState) -> Option<Timestamp> {
    let well = observation.answering == state.assignment && is_well(observation, &state.version);
    let since = observation.healthy_since.filter(|_| well)?;
    let soaked = since.max(state.assigned_at).plus(state.soak);
    match observation.proof {
        HealthProof::Contact => Some(soaked),
        HealthProof::Confirmed(healthy) => (healthy >= state.soak).then_some(Timestamp::EPOCH),
        HealthProof::Reports => (observation.reported_at >= soaked).then_some(Timestamp::EPOCH),
    }
}

/// When a target that runs the rolling version without an assignment will have been healthy for the soak. Its agent measures
/// no soak of a version that it was not assigned: contact counts.
fn adoption(frame: &BoardFrame, observation: &Observation) -> Option<Timestamp> {
    let soaked = observation.healthy_since?.plus(frame.soak);
    let unproved = observation.proof == HealthProof::Reports && observation.reported_at < soaked;
    (!unproved).then_some(soaked)
}

/// When a target past its deadline is judged: once its contact has lasted, or, where only reports prove contact, now if it
/// reported since. The first report alone proves nothing of a node: it may have stood still until then.
fn overdue(observation: &Observation, state: &TargetState) -> Option<Timestamp> {
    match state.clock {
        DeadlineClock::Overdue { until: Some(until), .. } => Some(until),
        DeadlineClock::Overdue { at, until: None } => {
            (observation.reported_at >= at).then_some(Timestamp::EPOCH)
        }
        DeadlineClock::Running { .. } | DeadlineClock::Stopped { .. } | DeadlineClock::Silent { .. } => None,
    }
}

/// What a target's deadline clock does, as its observation has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockCourse {
    /// It runs: the target is in contact.
    Runs,
    /// It stands still: the target waits, or is held.
    StandsStill,
    /// The target is out of contact, or in contact and does not accept its orders.
    Silent,
}

impl ClockCourse {
    pub(crate) fn of(frame: &BoardFrame, observation: &Observation, state: &TargetState) -> Self {
        if stands_still(frame, observation, state) {
            Self::StandsStill
        } else if observation.contact == PresenceState::Up && observation.refuses.is_none() {
            Self::Runs
        } else {
            Self::Silent
        }
    }
}

/// Whether the stored clock must be turned to that course, or started anew because contact was regained.
fn turns(course: ClockCourse, observation: &Observation, state: &TargetState) -> bool {
    match (state.clock, course) {
        (
            DeadlineClock::Running { set_at: since, .. } | DeadlineClock::Overdue { at: since, .. },
            ClockCourse::Runs,
        ) => observation.contact_since > since || accepted_after(since, observation, state),
        (DeadlineClock::Stopped { .. }, ClockCourse::StandsStill)
        | (DeadlineClock::Silent { .. }, ClockCourse::Silent) => false,
        (
            DeadlineClock::Running { .. }
            | DeadlineClock::Overdue { .. }
            | DeadlineClock::Stopped { .. }
            | DeadlineClock::Silent { .. },
            _,
        ) => true,
    }
}

/// Whether the target first answered its assignment clearly after the clock was started: its deadline counts from then on.
fn accepted_after(started: Timestamp, observation: &Observation, state: &TargetState) -> bool {
    observation.answering == state.assignment && observation.answered_at > started.plus(AT_ONCE)
}

/// Whether the target's deadline clock stands still: an operator holds it, it waits for something else, or
/// the monitoring hook has not judged it.
pub(crate) fn stands_still(frame: &BoardFrame, observation: &Observation, state: &TargetState) -> bool {
    let answers = observation.answering == state.assignment;
    // What a machine that cannot record a step waits for is nothing that comes by itself.
    let waits = answers
        && observation.refuses.is_none()
        && matches!(observation.activity, TargetActivity::Waiting { .. });
    let unjudged = answers
        && frame.monitored
        && state.purpose == AssignmentPurpose::Update
        && is_well(observation, &state.version)
        && word_on(frame, observation, state).is_none();
    observation.held.is_some() || waits || unjudged
}

/// The monitoring hook's answer about this assignment, if the policy has that hook.
fn word_on<'a>(
    frame: &BoardFrame,
    observation: &'a Observation,
    state: &TargetState,
) -> Option<&'a MonitorReport> {
    let word =
        observation.word.as_ref().filter(|word| frame.monitored && word.assignment == state.assignment);
    word.filter(|_| state.purpose == AssignmentPurpose::Update)
}

/// The next change of a target that had succeeded: a failure counts until the version is good, and is only
/// reported later.
fn afterwards(
    frame: &BoardFrame,
    phase: TargetPhase,
    observation: &Observation,
    state: &TargetState,
) -> UpcomingChange {
    let failed_later = match state.outcome {
        AssignmentOutcome::Succeeded { failed_later, .. } => failed_later,
        AssignmentOutcome::InFlight
        | AssignmentOutcome::Failed { .. }
        | AssignmentOutcome::Unreachable { .. } => None,
    };
    if observation.answering != state.assignment {
        return UpcomingChange::Nothing;
    }
    let counts =
        frame.stage == BoardMode::Judging && matches!(phase, TargetPhase::Succeeded | TargetPhase::Adopted);
    let evidence = trouble(frame.retries, observation, state).or_else(|| drift(observation, state));
    let recovery =
        || success(frame, observation, state).map_or(UpcomingChange::Nothing, UpcomingChange::Recovered);
    match (evidence, failed_later) {
        (Some(evidence), _) if counts && frame.fail_fast => UpcomingChange::Failure(evidence),
        (Some(evidence), _) if counts => UpcomingChange::Relapse(evidence),
        (Some(evidence), None) => UpcomingChange::FailedLater(evidence),
        (None, Some(_)) => recovery(),
        (Some(_), Some(_)) | (None, None) => UpcomingChange::Nothing,
    }
}

/// Evidence that a target fell back to another version without an error.
fn drift(observation: &Observation, state: &TargetState) -> Option<Arc<Evidence>> {
    let running = drifted(observation, state)?;
    Some(Arc::new(Evidence::of(format!("runs {running}, without an error"))))
}

/// A rollback, or a move to last known good, needs no soak: that version is proven.
pub(crate) const fn soak_for(frame: &BoardFrame, purpose: AssignmentPurpose) -> Span {
    match purpose {
        AssignmentPurpose::Update | AssignmentPurpose::Adopted => frame.soak,
        AssignmentPurpose::Rollback | AssignmentPurpose::KnownGood => Span::ZERO,
    }
}

/// Evidence of an error after the last retry, or of a failing check on the assigned version.
fn trouble(retries: u32, observation: &Observation, state: &TargetState) -> Option<Arc<Evidence>> {
    match (&observation.activity, &observation.health) {
        (TargetActivity::Failed { attempts, evidence }, _) if *attempts > retries => Some(evidence.clone()),
        (TargetActivity::Nothing, TargetHealth::Failing { evidence })
            if observation.running.as_ref() == Some(&state.version) =>
        {
            Some(evidence.clone())
        }
        (
            TargetActivity::Failed { .. }
            | TargetActivity::Nothing
            | TargetActivity::Applying { .. }
            | TargetActivity::Waiting { .. },
            TargetHealth::NoChecks | TargetHealth::Healthy | TargetHealth::Failing { .. },
        ) => None,
    }
}
