//! How far the workflows of a node are: by its runs, and what those say of it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::target::AssignmentOutcome;
use crate::words::counter::{RequestNumber, RolloutNumber};
use crate::words::name::{EntityName, NodeName, TargetName};
use crate::words::time::Timestamp;

/// How far the workflows of a node are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowState<'a> {
    /// It ran what it was to run, or was never to run anything.
    Complete,
    /// This run is not over on the node.
    InProgress(&'a EntityName),
    /// No run is in progress, and the newest one, this, failed on the node or ended without it.
    Failed(&'a EntityName),
}

impl Fleet {
    /// How far the workflows of a node are. Costs time in proportion to the runs that are kept of it.
    #[must_use]
    pub fn workflow_state(&self, node: &NodeName) -> WorkflowState<'_> {
        let mut newest = None;
        for name in self.entities_of_node.get(node) {
            let Some(run) = self.runs.get(name).map(|kept| &kept.value) else { continue };
            let state = self.state_in(name, node);
            if let WorkflowState::InProgress(_) = state {
                return state;
            }
            let at = (run.annotation.at, name);
            if newest.is_none_or(|(latest, _)| latest < at) {
                newest = Some((at, state));
            }
        }
        newest.map_or(WorkflowState::Complete, |(_, state)| state)
    }

    /// The runs that are in progress on a node, also those that wait there for others.
    pub fn runs_in_progress(&self, node: &NodeName) -> impl Iterator<Item = &EntityName> {
        let known = self.entities_of_node.get(node).filter(|name| self.runs.get(name).is_some());
        known.filter(|name| matches!(self.state_in(name, node), WorkflowState::InProgress(_)))
    }

    /// Whether nothing of a run is to happen any more on a node, unless a person starts another run there.
    #[must_use]
    pub fn is_over_on(&self, run: &EntityName, node: &NodeName) -> bool {
        match self.state_in(run, node) {
            WorkflowState::Complete => true,
            WorkflowState::InProgress(_) => false,
            // A task that failed may be retried while the run has not ended.
            WorkflowState::Failed(_) => self.has_ended(run),
        }
    }

    /// Why a run does not begin or go on on a node: a person holds the node, or it is not able to run it. `None` if nothing is known to.
    #[must_use]
    pub fn held_back(&self, run: &EntityName, node: &NodeName) -> Option<Arc<str>> {
        self.boards.get(run)?.target(&TargetName::from(node))?.observation?.held.clone()
    }

    /// The nodes that a run failed on, or that it ended without. Costs time in proportion to those while it is in progress, and to all
    /// of its targets once it has ended without success on each.
    #[must_use]
    pub fn failed_nodes(&self, run: &EntityName) -> Vec<NodeName> {
        let Some(board) = self.boards.get(run) else { return Vec::new() };
        let rollout = self.rollouts.get(&(run.clone(), RolloutNumber::new(1)));
        let ended = rollout.filter(|kept| kept.value.ended.is_some()).map(|kept| kept.value.counts);
        let targets: Vec<&TargetName> = match ended {
            None => board.failed_targets(),
            Some(counts) if counts.succeeded == counts.targets => Vec::new(),
            Some(_) => board.targets().map(|target| target.name).collect(),
        };
        let nodes = targets.into_iter().filter_map(|target| NodeName::parse(target.as_str()).ok());
        nodes.filter(|node| matches!(self.state_in(run, node), WorkflowState::Failed(_))).collect()
    }

    /// How a run ended without a node on which nothing failed; `None` if a task failed there, or the run goes on.
    #[must_use]
    pub fn left_without(&self, run: &EntityName, node: &NodeName) -> Option<&'static str> {
        let state = self.boards.get(run)?.target(&TargetName::from(node)).and_then(|target| target.state);
        let has_outcome = state.is_some_and(|state| state.outcome != AssignmentOutcome::InFlight);
        if has_outcome || !self.has_ended(run) {
            return None;
        }
        let was_aborted = self.entities.get(run).is_some_and(|kept| kept.value.abort.is_some());
        let jobs = self.jobs.get(&(run.clone(), node.clone()));
        let has_begun = jobs.is_some_and(|kept| !kept.value.jobs.is_empty());
        Some(match (was_aborted, has_begun) {
            (true, true) => "was aborted",
            (true, false) => "was aborted before it began there",
            (false, true) => "ended before it was complete there",
            (false, false) => "ended before it began there",
        })
    }

    /// Whether something of a run is still to happen.
    #[must_use]
    pub fn is_run_in_progress(&self, run: &EntityName) -> bool {
        let Some(entity) = self.entities.get(run) else { return false };
        let progress = self.progresses.get(run).map(|kept| &kept.value);
        let handled = progress.map_or(RequestNumber::ZERO, |progress| progress.handled);
        progress.is_some_and(|progress| progress.active().is_some()) || entity.value.last_request() > handled
    }

    /// Whether a run has ended.
    #[must_use]
    pub fn has_ended(&self, run: &EntityName) -> bool {
        self.run_ended(run).is_some()
    }

    /// When a run ended; `None` while it is in progress. One that was aborted before its rollout began ended with that.
    #[must_use]
    pub fn run_ended(&self, run: &EntityName) -> Option<Timestamp> {
        if let Some(rollout) = self.rollouts.get(&(run.clone(), RolloutNumber::new(1))) {
            return rollout.value.ended;
        }
        let abort = self.entities.get(run)?.value.abort.as_ref()?.annotation.at;
        (!self.is_run_in_progress(run)).then_some(abort)
    }

    fn state_in<'a>(&'a self, run: &'a EntityName, node: &NodeName) -> WorkflowState<'a> {
        let board = self.boards.get(run);
        let target = TargetName::from(node);
        let state = board.and_then(|board| board.target(&target)).and_then(|target| target.state);
        match state.map(|state| &state.outcome) {
            Some(AssignmentOutcome::Succeeded { .. }) => WorkflowState::Complete,
            Some(AssignmentOutcome::Failed { .. } | AssignmentOutcome::Unreachable { .. }) => {
                WorkflowState::Failed(run)
            }
            Some(AssignmentOutcome::InFlight) | None => {
                if self.has_ended(run) {
                    WorkflowState::Failed(run)
                } else {
                    WorkflowState::InProgress(run)
                }
            }
        }
    }
}
