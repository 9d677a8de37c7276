//! Dispatch: which targets are assigned a version next. Never more at once than the batch, never while paused or
//! frozen.

use alloc::format;
use alloc::vec::Vec;

use super::capacity::{self, NoCapacity};
use super::dispatch_gate::DispatchGate;
use super::outcome::{GONE_IN_ROLLBACK, event, give_up};
use super::pass::Pass;
use super::{deadline, dispatch_gate, event_text, hooked, stage};
use crate::decide::rollout::dispatch_block::DispatchBlock;
use crate::records::rollout::{MAX_BATCHES, RolloutBatch, RolloutState, RolloutWait};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::rollout::board::frame::BoardMode;
use crate::rollout::board::member::{BoardMember, soak_for};
use crate::rollout::board::phase::{PhaseSet, QUEUED, STARTED, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::rollout::observation::is_failing;
use crate::words::name::TargetName;
use crate::words::version::Version;

/// Dispatches as many targets as the capacity allows; returns whether there were any.
pub(super) fn dispatch(pass: &mut Pass<'_>) -> bool {
    pass.shut = None;
    pass.questions.clear();
    let paused = pass.board.rollout().is_some_and(|rollout| matches!(rollout.state, RolloutState::Paused(_)));
    if paused || pass.board.entity().hold.is_some() {
        return false;
    }
    let frame = pass.board.frame();
    match (frame.stage, frame.rolling.clone(), frame.base.clone()) {
        (BoardMode::Judging | BoardMode::Finishing, Some(rolling), good) => {
            // What is known of them already is judged before anything else is assigned.
            if resume_returning(pass, pass.board.thresholds().batch) || enlist_arrived(pass, &rolling) {
                return true;
            }
            let newcomers = good.is_some_and(|good| bring_to(pass, &good));
            let turns = dispatch_updates(pass, &rolling);
            newcomers || turns
        }
        (BoardMode::RollingBack, _, Some(good)) => {
            let back = resume_returning(pass, pass.board.thresholds().rollback);
            let returns = dispatch_rollbacks(pass, &good);
            let newcomers = bring_to(pass, &good);
            back || returns || newcomers
        }
        (BoardMode::Settled | BoardMode::Abandoned, _, Some(good)) => bring_to(pass, &good),
        (
            BoardMode::Judging
            | BoardMode::Finishing
            | BoardMode::RollingBack
            | BoardMode::Settled
            | BoardMode::Abandoned,
            _,
            _,
        ) => false,
    }
}

/// Targets that were given up as unreachable, and are heard of again, are in flight again as far as the batch has room.
/// They keep their assignment, so that no gate applies.
fn resume_returning(pass: &mut Pass<'_>, batch: u64) -> bool {
    let room = batch.saturating_sub(u64::from(pass.board.tree().tally().in_flight));
    let returning = WalkFilter::all(PhaseSet::of(&[TargetPhase::Returning]));
    let names = pass.board.tree().names(&returning, room);
    for name in &names {
        if let Some(member) = pass.board.member(name).cloned() {
            deadline::resume_in_flight(pass, &member);
        }
    }
    !names.is_empty()
}

/// Targets that joined on the rolling version, and are not healthy on it, belong to this rollout: what they do from now on
/// counts. Nothing changes for them, so that no hook is asked.
fn enlist_arrived(pass: &mut Pass<'_>, rolling: &Version) -> bool {
    assign_joined(pass, TargetPhase::Arrived, rolling, AssignmentPurpose::Adopted)
}

/// Assigns last known good to newcomers, within the batch.
fn bring_to(pass: &mut Pass<'_>, good: &Version) -> bool {
    assign_joined(pass, TargetPhase::Newcomer, good, AssignmentPurpose::KnownGood)
}

/// Assigns a version to those that joined, within the batch, unless a freeze blocks them.
fn assign_joined(
    pass: &mut Pass<'_>,
    phase: TargetPhase,
    version: &Version,
    purpose: AssignmentPurpose,
) -> bool {
    let joined = PhaseSet::of(&[phase]);
    if pass.board.tree().tally().count(joined) == 0 {
        return false;
    }
    if let Some(freeze) = pass.environment.freeze(&pass.board.entity().name, pass.now) {
        let until = freeze.until;
        pass.look_again(until);
        return false;
    }
    let gate = DispatchGate::for_known_good(pass);
    let names = gate.together(open_names(pass, joined, capacity::room_for_newcomers(pass), &gate));
    let until = gate.until();
    pass.look_again(until);
    tell(pass, &names, version, purpose)
}

/// At most `limit` names of targets in these phases that no freeze or window blocks.
fn open_names(pass: &Pass<'_>, phases: PhaseSet, limit: u64, gate: &DispatchGate<'_>) -> Vec<TargetName> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut names = Vec::new();
    if limit > 0 {
        pass.board.tree().walk(&WalkFilter::all(phases), &mut |member| {
            if !gate.are_shut_for(member) {
                names.push(member.name.clone());
            }
            names.len() < limit
        });
    }
    names
}

fn dispatch_updates(pass: &mut Pass<'_>, rolling: &Version) -> bool {
    let (batch, tally) = (pass.board.thresholds().batch, pass.board.tree().tally());
    let waiting = tally.count(QUEUED) + tally.of(TargetPhase::Passing);
    if batch == 0 || u64::from(tally.in_flight) > batch || waiting == 0 {
        return false;
    }
    match choose(pass) {
        Ok(names) => {
            open_batch(pass, &names, batch);
            tell(pass, &names, rolling, AssignmentPurpose::Update)
        }
        Err(block) => {
            pass.shut = Some(block);
            false
        }
    }
}

/// The targets to start next, or what blocks every queued one.
fn choose(pass: &mut Pass<'_>) -> Result<Vec<TargetName>, DispatchBlock> {
    if let Some(block) = dispatch_gate::shut(pass).or_else(|| stage::lacks_approval(&pass.board)) {
        return Err(block);
    }
    if pass.board.frame().stage == BoardMode::Finishing && pass.board.entity().policy.hooks.removal.is_some()
    {
        return Err(hooked::removal(pass));
    }
    let tally = pass.board.tree().tally();
    let (in_line, in_flight) = (tally.count(QUEUED), tally.in_flight);
    let stage_room = stage::room(&pass.board);
    let gate = DispatchGate::for_turns(pass);
    let mut names = open_names(pass, PhaseSet::of(&[TargetPhase::Passing]), stage_room, &gate);
    let until = gate.until();
    let block = match capacity::room(pass, &gate) {
        Ok(mut room) => {
            let passing = u64::try_from(names.len()).unwrap_or(u64::MAX);
            room.turns = room.turns.min(stage_room.saturating_sub(passing));
            let next = hooked::next(pass, &room, &gate)?;
            let empty = next.is_empty() && names.is_empty() && room.turns > 0 && in_line > 0;
            let block = if empty && room.spare == 0 {
                let domain = room.domain.filter(|_| room.domain_is_short).map(|(_, value)| value);
                Some(DispatchBlock::of(RolloutWait::Unavailable { domain }))
            } else {
                (empty && in_flight == 0).then(|| gate.block(&pass.board))
            };
            names.extend(gate.together(next));
            block
        }
        Err(NoCapacity::Nobody) => None,
        Err(NoCapacity::NoDomain(key)) => Some(DispatchBlock::of(RolloutWait::NoDomain { key })),
        Err(NoCapacity::Shut) => Some(gate.block(&pass.board)),
    };
    pass.look_again(until);
    match block.filter(|_| names.is_empty()) {
        Some(block) => Err(block),
        None => hooked::approved(pass, names),
    }
}

/// Starts the next batch when the last one is full.
fn open_batch(pass: &mut Pass<'_>, names: &[TargetName], size: u64) {
    let before = pass.board.tree().tally().count(STARTED);
    let after = before + u64::try_from(names.len()).unwrap_or(u64::MAX);
    let Some(rollout) = pass.board.rollout() else { return };
    let (number, full) = rollout.batches.last().map_or((0, 0), |batch| (batch.number, batch.upto));
    if names.is_empty() || after <= full {
        return;
    }
    let cause = format!("batch {}: {}", number + 1, event_text::names(names));
    let counts = pass.board.counts();
    let opened = RolloutBatch { number: number + 1, opened: pass.now, upto: full.max(before) + size, counts };
    let mut draft = pass.draft();
    draft.tell("rollout.batch", cause);
    draft.change_rollout(|rollout| {
        rollout.batches.push(opened);
        let surplus = rollout.batches.len().saturating_sub(MAX_BATCHES);
        rollout.batches.drain(..surplus);
    });
    pass.take(draft);
}

/// Rolls back the targets that were updated. Targets in flight are reassigned at once, as that needs no more
/// capacity. Silent targets are reassigned without using capacity, so that they do not return to the bad
/// version.
fn dispatch_rollbacks(pass: &mut Pass<'_>, good: &Version) -> bool {
    let gate = DispatchGate::for_returns(pass);
    let turning = open_names(pass, PhaseSet::of(&[TargetPhase::MovedFlight]), u64::MAX, &gate);
    let silent = open_names(pass, PhaseSet::of(&[TargetPhase::MovedSilent]), u64::MAX, &gate);
    let until = gate.until();
    for name in &silent {
        if let Some(member) = pass.board.member(name) {
            let state = pass.assignment(member, good.clone(), AssignmentPurpose::Rollback);
            give_up(pass, &member.clone(), &state, GONE_IN_ROLLBACK.into());
        }
    }
    let moved = next_moved(pass);
    pass.look_again(until);
    let turned = tell(pass, &turning, good, AssignmentPurpose::Rollback);
    let told = tell(pass, &moved, good, AssignmentPurpose::Rollback);
    turned || told || !silent.is_empty()
}

/// The next targets to roll back: unavailable ones first, then as many others as may become unavailable.
fn next_moved(pass: &Pass<'_>) -> Vec<TargetName> {
    let (tally, thresholds) = (pass.board.tree().tally(), pass.board.thresholds());
    let gate = DispatchGate::for_returns(pass);
    let room = thresholds.rollback.saturating_sub(u64::from(tally.in_flight));
    let mut names = open_names(pass, PhaseSet::of(&[TargetPhase::MovedUnhealthy]), room, &gate);
    let left = room.saturating_sub(u64::try_from(names.len()).unwrap_or(u64::MAX));
    let spare = match thresholds.max_unavailable {
        None => left,
        Some(most) => left.min(most.saturating_sub(u64::from(tally.unavailable))),
    };
    names.extend(gate.together(open_names(pass, PhaseSet::of(&[TargetPhase::Moved]), spare, &gate)));
    names
}

fn tell(pass: &mut Pass<'_>, names: &[TargetName], version: &Version, purpose: AssignmentPurpose) -> bool {
    for name in names {
        if let Some(member) = pass.board.member(name) {
            let missed = purpose == AssignmentPurpose::KnownGood && missed_rollback(pass, member);
            let purpose = if missed { AssignmentPurpose::Rollback } else { purpose };
            let state = pass.assignment(member, version.clone(), purpose);
            let cause = "it is in contact again, and is rolled back now";
            let event = missed.then(|| event(pass, "target.returned", name, version, cause.into()));
            pass.put(name, Some(state), event);
        }
    }
    !names.is_empty()
}

/// Whether a target was out of contact while the last rollout was rolled back.
fn missed_rollback(pass: &Pass<'_>, member: &BoardMember) -> bool {
    member.state.as_ref().is_some_and(|state| {
        state.purpose == AssignmentPurpose::Rollback
            && state.rollout == pass.board.progress().last
            && matches!(state.outcome, AssignmentOutcome::Unreachable { .. })
    })
}

impl Pass<'_> {
    /// The last known good version, if a target is failing on it, or failed on it and was not healthy for the soak since; or if
    /// it was when it was assigned a version that it has not succeeded on since.
    fn failing_before(&self, member: &BoardMember) -> Option<Version> {
        let good = self.board.progress().last_known_good.as_ref()?;
        let (state, observation) = (member.state.as_ref()?, member.observation.as_ref()?);
        let failed = match state.outcome {
            AssignmentOutcome::Failed { .. } | AssignmentOutcome::Succeeded { failed_later: Some(_), .. } => {
                true
            }
            AssignmentOutcome::InFlight
            | AssignmentOutcome::Succeeded { failed_later: None, .. }
            | AssignmentOutcome::Unreachable { .. } => false,
        };
        let fails = state.version == *good && (failed || is_failing(observation, state));
        (fails || state.failing_before.as_ref() == Some(good)).then(|| good.clone())
    }

    /// A new assignment of a target, in flight. Its number is above every earlier one and above the one the
    /// target claims to answer.
    pub(super) fn assignment(
        &self,
        member: &BoardMember,
        version: Version,
        purpose: AssignmentPurpose,
    ) -> TargetState {
        let told = member.state.as_ref().map(|state| state.assignment).unwrap_or_default();
        let answered =
            member.observation.as_ref().map(|observation| observation.answering).unwrap_or_default();
        let held = member.observation.as_ref().is_some_and(|observation| observation.held.is_some());
        let clock = if held {
            DeadlineClock::Stopped { spent: crate::words::time::Span::ZERO }
        } else {
            DeadlineClock::Running { from: self.board.progress().clock.at(self.now), set_at: self.now }
        };
        let failing_before = self.failing_before(member);
        TargetState {
            soak: soak_for(self.board.frame(), purpose),
            failing_before,
            version,
            rollout: self.board.progress().last,
            purpose,
            assignment: told.max(answered).next_in(self.environment.epoch),
            assigned_at: self.now,
            clock,
            outcome: AssignmentOutcome::InFlight,
        }
    }
}
