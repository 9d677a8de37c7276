//! Handing out: who is told what next. Never more at once than the batch, never while anything is paused or frozen.

use alloc::format;
use alloc::vec::Vec;

use super::gate::{self, Gate, Shutters};
use super::line::{self, NoRoom};
use super::pass::Pass;
use super::{hooked, stage};
use crate::records::rollout::{Batch, MAX_BATCHES, State, Wait};
use crate::records::target::{DeadlineClock, Outcome, Purpose, TargetState};
use crate::rollout::board::frame::Stage;
use crate::rollout::board::lane::{IN_LINE, Lane, LaneSet, TURNED};
use crate::rollout::board::member::Member;
use crate::rollout::board::tree::Wanted;
use crate::words::name::TargetName;
use crate::words::version::Version;

/// Tells as many targets as there is room for; says whether it told any.
pub(super) fn hand_out(pass: &mut Pass<'_>) -> bool {
    pass.shut = None;
    pass.questions.clear();
    let paused = pass.board.rollout().is_some_and(|rollout| matches!(rollout.state, State::Paused(_)));
    if paused || pass.board.entity().hold.is_some() {
        return false;
    }
    let frame = pass.board.frame();
    match (frame.stage, frame.rolling.clone(), frame.good.clone()) {
        (Stage::Judging | Stage::Finishing, Some(rolling), good) => {
            let newcomers = good.is_some_and(|good| bring_to(pass, &good));
            let turns = hand_out_turns(pass, &rolling);
            newcomers || turns
        }
        (Stage::Back, _, Some(good)) => {
            let returns = hand_out_returns(pass, &good);
            let newcomers = bring_to(pass, &good);
            returns || newcomers
        }
        (Stage::Settled | Stage::Left, _, Some(good)) => bring_to(pass, &good),
        (Stage::Judging | Stage::Finishing | Stage::Back | Stage::Settled | Stage::Left, _, _) => false,
    }
}

/// Brings newcomers to last known good, within the batch.
fn bring_to(pass: &mut Pass<'_>, good: &Version) -> bool {
    let newcomers = LaneSet::of(&[Lane::Newcomer]);
    if pass.board.tree().tally().count(newcomers) == 0 {
        return false;
    }
    if let Some(freeze) = pass.around.freeze(&pass.board.entity().name, pass.now) {
        let until = freeze.until;
        pass.look_again(until);
        return false;
    }
    let shutters = Shutters::for_known_good(pass);
    let (names, until) =
        (open_names(pass, newcomers, line::room_for_newcomers(pass), &shutters), shutters.until());
    pass.look_again(until);
    tell(pass, &names, good, Purpose::KnownGood)
}

/// At most so many names in these lanes whose targets nothing shuts out.
fn open_names(pass: &Pass<'_>, lanes: LaneSet, limit: u64, shutters: &Shutters<'_>) -> Vec<TargetName> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut names = Vec::new();
    if limit > 0 {
        pass.board.tree().walk(&Wanted::all(lanes), &mut |member| {
            if !shutters.are_shut_for(member) {
                names.push(member.name.clone());
            }
            names.len() < limit
        });
    }
    names
}

fn hand_out_turns(pass: &mut Pass<'_>, rolling: &Version) -> bool {
    let (batch, tally) = (pass.board.thresholds().batch, pass.board.tree().tally());
    let waiting = tally.count(IN_LINE) + tally.of(Lane::Passing);
    if batch == 0 || u64::from(tally.flying) > batch || waiting == 0 {
        return false;
    }
    match choose(pass) {
        Ok(names) => {
            open_batch(pass, &names, batch);
            tell(pass, &names, rolling, Purpose::Turn)
        }
        Err(gate) => {
            pass.shut = Some(gate);
            false
        }
    }
}

/// Whose turn it is, or what keeps everyone in line from taking one.
fn choose(pass: &mut Pass<'_>) -> Result<Vec<TargetName>, Gate> {
    if let Some(gate) = gate::shut(pass).or_else(|| stage::lacks_approval(&pass.board)) {
        return Err(gate);
    }
    if pass.board.frame().stage == Stage::Finishing && pass.board.entity().policy.hooks.removal.is_some() {
        return Err(hooked::removal(pass));
    }
    let tally = pass.board.tree().tally();
    let (in_line, flying) = (tally.count(IN_LINE), tally.flying);
    let stage_room = stage::room(&pass.board);
    let shutters = Shutters::for_turns(pass);
    let mut names = open_names(pass, LaneSet::of(&[Lane::Passing]), stage_room, &shutters);
    let until = shutters.until();
    let gate = match line::room(pass, &shutters) {
        Ok(mut room) => {
            let passing = u64::try_from(names.len()).unwrap_or(u64::MAX);
            room.turns = room.turns.min(stage_room.saturating_sub(passing));
            let next = hooked::next(pass, &room, &shutters)?;
            let empty = next.is_empty() && names.is_empty() && room.turns > 0 && in_line > 0;
            let gate = if empty && room.spare == 0 {
                let domain = room.domain.filter(|_| room.domain_is_short).map(|(_, value)| value);
                Some(Gate::of(Wait::Unavailable { domain }))
            } else {
                (empty && flying == 0).then_some(Gate { wait: Wait::Shut { until }, until })
            };
            names.extend(next);
            gate
        }
        Err(NoRoom::Nobody) => None,
        Err(NoRoom::NoDomain(key)) => Some(Gate::of(Wait::NoDomain { key })),
        Err(NoRoom::Shut) => Some(Gate { wait: Wait::Shut { until }, until }),
    };
    pass.look_again(until);
    match gate.filter(|_| names.is_empty()) {
        Some(gate) => Err(gate),
        None => hooked::approved(pass, names),
    }
}

/// Opens the next batch when the one before is full.
fn open_batch(pass: &mut Pass<'_>, names: &[TargetName], size: u64) {
    let before = pass.board.tree().tally().count(TURNED);
    let after = before + u64::try_from(names.len()).unwrap_or(u64::MAX);
    let Some(rollout) = pass.board.rollout() else { return };
    let (number, full) = rollout.batches.last().map_or((0, 0), |batch| (batch.number, batch.upto));
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return };
    if after <= full {
        return;
    }
    let cause = format!("batch {}: {} told, {first} to {last}", number + 1, names.len());
    let figures = pass.board.figures();
    let opened = Batch { number: number + 1, opened: pass.now, upto: full.max(before) + size, figures };
    let mut head = pass.head();
    head.tell("rollout.batch", cause);
    head.change_rollout(|rollout| {
        rollout.batches.push(opened);
        let surplus = rollout.batches.len().saturating_sub(MAX_BATCHES);
        rollout.batches.drain(..surplus);
    });
    pass.take(head);
}

/// Takes back what was moved. Whoever is in flight turns round at once: that needs no more room. Whoever is silent is
/// told without taking a place, so that it does not come back to the version it was taken from.
fn hand_out_returns(pass: &mut Pass<'_>, good: &Version) -> bool {
    let shutters = Shutters::for_returns(pass);
    let turning = open_names(pass, LaneSet::of(&[Lane::MovedFlight]), u64::MAX, &shutters);
    let silent = open_names(pass, LaneSet::of(&[Lane::MovedAway]), u64::MAX, &shutters);
    let until = shutters.until();
    for name in &silent {
        if let Some(member) = pass.board.member(name) {
            let mut state = pass.assignment(member, good.clone(), Purpose::Rollback);
            state.outcome = Outcome::Unreachable { at: pass.now };
            pass.put(name, Some(state), None);
        }
    }
    let flying = u64::from(pass.board.tree().tally().flying);
    let room = pass.board.thresholds().rollback.saturating_sub(flying);
    let moved = open_names(pass, LaneSet::of(&[Lane::Moved]), room, &Shutters::for_returns(pass));
    pass.look_again(until);
    let turned = tell(pass, &turning, good, Purpose::Rollback);
    let told = tell(pass, &moved, good, Purpose::Rollback);
    turned || told || !silent.is_empty()
}

fn tell(pass: &mut Pass<'_>, names: &[TargetName], version: &Version, purpose: Purpose) -> bool {
    for name in names {
        if let Some(member) = pass.board.member(name) {
            let state = pass.assignment(member, version.clone(), purpose);
            pass.put(name, Some(state), None);
        }
    }
    !names.is_empty()
}

impl Pass<'_> {
    /// A new assignment of a target, in flight. Its number is above everything the target was told or claims to answer.
    pub(super) fn assignment(&self, member: &Member, version: Version, purpose: Purpose) -> TargetState {
        let told = member.state.as_ref().map(|state| state.assignment).unwrap_or_default();
        let answered = member.sighting.as_ref().map(|sighting| sighting.answering).unwrap_or_default();
        let held = member.sighting.as_ref().is_some_and(|sighting| sighting.held.is_some());
        let clock = if held {
            DeadlineClock::Stopped { spent: crate::words::time::Span::ZERO }
        } else {
            DeadlineClock::Running { from: self.board.progress().clock.at(self.now) }
        };
        TargetState {
            version,
            rollout: self.board.progress().last,
            purpose,
            assignment: told.max(answered).next(),
            assigned_at: self.now,
            clock,
            outcome: Outcome::InFlight,
        }
    }
}
