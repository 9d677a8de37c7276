//! Handing out: who is told what next. Never more at once than the batch, never while anything is paused.

use alloc::format;
use alloc::vec::Vec;

use super::pass::Pass;
use crate::records::rollout::{Batch, MAX_BATCHES, State};
use crate::records::target::{DeadlineClock, Outcome, Purpose, TargetState};
use crate::rollout::board::frame::Stage;
use crate::rollout::board::lane::{Lane, LaneSet, TURNED};
use crate::rollout::board::member::Member;
use crate::words::name::TargetName;
use crate::words::version::Version;

/// Tells as many targets as there is room for; says whether it told any.
pub(super) fn hand_out(pass: &mut Pass) -> bool {
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
fn bring_to(pass: &mut Pass, good: &Version) -> bool {
    let names = names_in(pass, Lane::Newcomer, room(pass));
    tell(pass, &names, good, Purpose::KnownGood)
}

/// How many more may be in flight.
fn room(pass: &Pass) -> u64 {
    let flying = u64::from(pass.board.tree().tally().flying);
    pass.board.thresholds().batch.saturating_sub(flying)
}

fn hand_out_turns(pass: &mut Pass, rolling: &Version) -> bool {
    let batch = pass.board.thresholds().batch;
    let flying = u64::from(pass.board.tree().tally().flying);
    if batch == 0 || flying > batch {
        return false;
    }
    let mut names = names_in(pass, Lane::Passing, u64::MAX);
    names.extend(next_in_line(pass, batch - flying));
    open_batch(pass, &names, batch);
    tell(pass, &names, rolling, Purpose::Turn)
}

/// The next targets by name after the last one whose turn it was, then those that were passed over.
fn next_in_line(pass: &Pass, room: u64) -> Vec<TargetName> {
    let tree = pass.board.tree();
    let ready = LaneSet::of(&[Lane::Ready]);
    let last = tree.last_in(TURNED);
    let mut names = tree.names_in(ready, last, room);
    let left = room.saturating_sub(u64::try_from(names.len()).unwrap_or(u64::MAX));
    if let Some(last) = last.filter(|_| left > 0) {
        let passed_over = tree.names_in(ready, None, left);
        names.extend(passed_over.into_iter().take_while(|name| name <= last));
    }
    names
}

/// Opens the next batch when the one before is full.
fn open_batch(pass: &mut Pass, names: &[TargetName], size: u64) {
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
fn hand_out_returns(pass: &mut Pass, good: &Version) -> bool {
    let turning = names_in(pass, Lane::MovedFlight, u64::MAX);
    let silent = names_in(pass, Lane::MovedAway, u64::MAX);
    for name in &silent {
        if let Some(member) = pass.board.tree().get(name) {
            let mut state = pass.assignment(member, good.clone(), Purpose::Rollback);
            state.outcome = Outcome::Unreachable { at: pass.now };
            pass.put(name, Some(state), None);
        }
    }
    let flying = u64::from(pass.board.tree().tally().flying);
    let room = pass.board.thresholds().rollback.saturating_sub(flying);
    let moved = names_in(pass, Lane::Moved, room);
    let turned = tell(pass, &turning, good, Purpose::Rollback);
    let told = tell(pass, &moved, good, Purpose::Rollback);
    turned || told || !silent.is_empty()
}

fn names_in(pass: &Pass, lane: Lane, limit: u64) -> Vec<TargetName> {
    pass.board.tree().names_in(LaneSet::of(&[lane]), None, limit)
}

fn tell(pass: &mut Pass, names: &[TargetName], version: &Version, purpose: Purpose) -> bool {
    for name in names {
        if let Some(member) = pass.board.tree().get(name) {
            let state = pass.assignment(member, version.clone(), purpose);
            pass.put(name, Some(state), None);
        }
    }
    !names.is_empty()
}

impl Pass {
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
