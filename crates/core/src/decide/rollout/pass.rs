//! A pass: a copy of the board that the rounds change, and a record of what they changed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::draft::RolloutDraft;
use crate::decide::rollout::dispatch_block::DispatchBlock;
use crate::decide::rollout::verdict::{OrderedEvent, RolloutVerdict, TargetChange};
use crate::records::event::EventDraft;
use crate::records::evidence::Evidence;
use crate::records::not_runnable::NotRunnable;
use crate::records::rollout::{MAX_FAILURES, Rollout, TargetFailure};
use crate::records::target::TargetState;
use crate::rollout::board::Board;
use crate::rollout::board::tally::NEVER;
use crate::rollout::environment::RolloutEnvironment;
use crate::rollout::hook_question::HookQuestion;
use crate::words::counter::RolloutNumber;
use crate::words::name::{NodeName, TargetName};
use crate::words::time::Timestamp;

/// A pass in progress.
pub(super) struct Pass<'a> {
    pub(super) now: Timestamp,
    pub(super) board: Board,
    pub(super) environment: &'a RolloutEnvironment,
    /// Whether the rollout continues according to its counts.
    pub(super) going: bool,
    /// Why no target starts, though some could.
    pub(super) shut: Option<DispatchBlock>,
    /// Questions to the policy's hooks.
    pub(super) questions: Vec<HookQuestion>,
    /// Time at which the environment next changes without an operation.
    alarm: Option<Timestamp>,
    rollouts: BTreeMap<RolloutNumber, Arc<Rollout>>,
    events: Vec<OrderedEvent>,
    targets: BTreeMap<TargetName, Vec<OrderedEvent>>,
    /// Nodes that begin no other run.
    stopped: BTreeMap<TargetName, NotRunnable>,
    /// Number of events so far.
    told: usize,
}

impl<'a> Pass<'a> {
    /// A pass without changes yet.
    pub(super) fn new(board: &Board, environment: &'a RolloutEnvironment, now: Timestamp) -> Self {
        Self {
            now,
            board: board.clone(),
            environment,
            going: false,
            shut: None,
            questions: Vec::new(),
            alarm: None,
            rollouts: BTreeMap::new(),
            events: Vec::new(),
            targets: BTreeMap::new(),
            stopped: BTreeMap::new(),
            told: 0,
        }
    }

    /// The event, after all events so far.
    fn in_order(&mut self, event: EventDraft) -> OrderedEvent {
        self.told += 1;
        OrderedEvent { position: self.told, event }
    }

    /// Resets what an earlier round planned; the last round decides.
    pub(super) const fn begin_round(&mut self) {
        self.alarm = None;
    }

    /// Decides again at this time.
    pub(super) fn look_again(&mut self, at: Option<Timestamp>) {
        let later = at.filter(|at| *at > self.now && *at != NEVER);
        self.alarm = [self.alarm, later].into_iter().flatten().min();
    }

    /// The progress and rollout of the board, to be changed and given to [`Pass::take`].
    pub(super) fn draft(&self) -> RolloutDraft {
        RolloutDraft::of(&self.board, self.now)
    }

    /// Applies a changed draft; returns whether it had changes.
    pub(super) fn take(&mut self, draft: RolloutDraft) -> bool {
        let old = self.board.shared_rollout();
        let over = draft.ended.into_iter().map(Some);
        let mut changed = *draft.progress != *self.board.progress();
        for rollout in over.chain([draft.rollout.clone()]).flatten() {
            if old.as_ref().is_none_or(|old| *old != rollout) {
                self.rollouts.insert(rollout.number, rollout);
                changed = true;
            }
        }
        if changed {
            for event in draft.events {
                let ordered = self.in_order(event);
                self.events.push(ordered);
            }
            self.board.fold_progress(draft.progress, draft.rollout);
        }
        changed
    }

    /// Changes or removes the assignment of a target.
    pub(super) fn put(&mut self, target: &TargetName, state: Option<TargetState>, event: Option<EventDraft>) {
        self.board.fold_state(target, state);
        let ordered = event.map(|event| self.in_order(event));
        match self.targets.get_mut(target) {
            Some(events) => events.extend(ordered),
            None => drop(self.targets.insert(target.clone(), ordered.into_iter().collect())),
        }
    }

    /// Keeps the evidence of a failure with the rollout, up to the limit; the newest of a target replaces its
    /// last one.
    pub(super) fn keep_failure(&mut self, target: &TargetName, evidence: &Arc<Evidence>) {
        let Some(mut rollout) = self.board.shared_rollout() else { return };
        let known = rollout.failures.iter().position(|failure| failure.target == *target);
        if known.is_none() && rollout.failures.len() >= MAX_FAILURES {
            return;
        }
        let failure = TargetFailure { target: target.clone(), at: self.now, evidence: evidence.clone() };
        let failures = &mut Arc::make_mut(&mut rollout).failures;
        match known.and_then(|index| failures.get_mut(index)) {
            Some(older) => *older = failure,
            None => failures.push(failure),
        }
        self.keep_rollout(rollout);
    }

    /// Forgets the evidence of a failure that is tried again.
    pub(super) fn forget_failure(&mut self, target: &TargetName) {
        let Some(mut rollout) = self.board.shared_rollout() else { return };
        if rollout.failures.iter().any(|failure| failure.target == *target) {
            Arc::make_mut(&mut rollout).failures.retain(|failure| failure.target != *target);
            self.keep_rollout(rollout);
        }
    }

    fn keep_rollout(&mut self, rollout: Arc<Rollout>) {
        self.rollouts.insert(rollout.number, rollout.clone());
        self.board.fold_progress(self.board.shared_progress(), Some(rollout));
    }

    /// Has the node on which a run failed begin no other, until a person has seen to it.
    pub(super) fn stop_node(&mut self, target: &TargetName, evidence: &Evidence) {
        let entity = self.board.entity();
        let Some(node) = NodeName::parse(target.as_str()).ok().filter(|_| entity.kind.is_run()) else {
            return;
        };
        let (run, reason) = (Some(entity.name.clone()), evidence.summary.clone());
        self.stopped.insert(target.clone(), NotRunnable { node, run, by: None, reason, at: self.now });
    }

    /// The changes of all rounds, in a safe order of writing.
    pub(super) fn verdict(mut self, before: &Board) -> RolloutVerdict {
        let wake = self.wake();
        let questions = self.questions;
        let progress = (*self.board.progress() != *before.progress()).then(|| self.board.progress().clone());
        let rollouts = self.rollouts.into_values().map(Arc::unwrap_or_clone).collect();
        let mut targets = Vec::with_capacity(self.targets.len());
        let mut taking = Vec::new();
        for (target, events) in self.targets {
            let state = self.board.target(&target).and_then(|target| target.state).cloned();
            let change = TargetChange { stopped: self.stopped.remove(&target), target, state, events };
            if change.uses_capacity() { taking.push(change) } else { targets.push(change) }
        }
        targets.append(&mut taking);
        RolloutVerdict { rollouts, progress, events: self.events, targets, questions, wake }
    }

    /// Time at which time alone next has an effect.
    fn wake(&self) -> Option<Timestamp> {
        let tally = self.board.tree().tally();
        let due = (tally.due != NEVER).then_some(tally.due);
        let clock = self.board.progress().clock;
        let deadline = (tally.clock_from != NEVER)
            .then(|| tally.clock_from.max(clock.floor).plus(self.board.entity().policy.deadline))
            .and_then(|deadline| clock.when(deadline));
        // What is due already and was not settled waits for the watch, which is an alarm.
        let ahead = [due, deadline].into_iter().flatten().filter(|at| *at > self.now || self.alarm.is_none());
        ahead.chain(self.alarm).min().map(|wake| wake.max(self.now))
    }
}
