//! Folds runs of workflows, and the marks of nodes that begin none.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::kept;
use crate::records::entity::TargetSource;
use crate::records::not_runnable::NotRunnable;
use crate::records::rollout::RolloutState;
use crate::records::run::{Run, UndoState};
use crate::records::target::{AssignmentOutcome, TargetState};
use crate::words::counter::{Revision, RolloutNumber};
use crate::words::name::{EntityName, NodeName, TargetName};
use crate::world::fleet::Fleet;

impl Fleet {
    pub(super) fn put_run(&mut self, run: Run, revision: Revision) {
        let name = run.name.clone();
        self.runs.insert_mut(name.clone(), kept(run, revision));
        self.run_changed(&name, revision);
    }

    pub(super) fn delete_run(&mut self, name: &EntityName, revision: Revision) {
        self.runs.remove_mut(name);
        self.run_changed(name, revision);
    }

    /// A run was added or removed: whether a node can be a target depends on what its tasks need.
    fn run_changed(&mut self, name: &EntityName, revision: Revision) {
        if self.loading {
            return;
        }
        self.undo_changed(name);
        if !self.boards.contains_key(name) {
            return self.index_run(name, revision);
        }
        self.touch(name, revision);
        self.build_board(name);
        self.refresh_progress_indexes(name, revision);
    }

    pub(super) fn put_not_runnable(&mut self, mark: NotRunnable, revision: Revision) {
        let name = mark.node.clone();
        self.not_runnable.insert_mut(name.clone(), kept(mark, revision));
        self.undone_marks.remove_mut(&name);
        self.runnable_changed(&name);
        self.observations_changed(&name, revision);
        self.candidate_changed(&name, revision);
    }

    pub(super) fn delete_not_runnable(&mut self, name: &NodeName, revision: Revision) {
        self.not_runnable.remove_mut(name);
        self.undone_marks.remove_mut(name);
        self.runnable_changed(name);
        self.observations_changed(name, revision);
        self.candidate_changed(name, revision);
    }

    fn runnable_changed(&mut self, name: &NodeName) {
        if !self.loading {
            self.refresh_node(name);
        }
    }

    /// The index follows a run, its entity, or that one's progress.
    pub(super) fn index_run(&mut self, name: &EntityName, revision: Revision) {
        let is_run = self.runs.contains_key(name);
        let ended = self.run_ended(name).filter(|_| is_run);
        let is_to_undo = is_run && self.is_to_undo(name);
        self.run_index.set(name, ended, is_to_undo);
        let source = self.entities.get(name).map(|kept| kept.value.source.clone());
        let open = match source.filter(|_| is_run && ended.is_none()) {
            Some(TargetSource::Listed(nodes)) => Some(nodes),
            Some(TargetSource::Nodes(_) | TargetSource::External(_)) | None => None,
        };
        if self.run_index.is_open(name) && open.is_none() {
            self.reactions_may_change();
        }
        for node in self.run_index.set_open(name, open) {
            self.queue_changed(name, &node, revision);
        }
    }

    /// A run came to a node, or is not to come there any more: those that were started after it may.
    pub(super) fn queue_changed(&mut self, run: &EntityName, node: &NodeName, revision: Revision) {
        let others = self.run_index.open_on(node).filter(|other| *other != run);
        let others: Vec<EntityName> = others.cloned().collect();
        if !others.is_empty() {
            self.observe_node(node, others, revision);
        }
    }

    /// Why a run does not come to a node yet: another that was started before it has not come there. `None` if none is before it, or it
    /// undoes what failed there.
    pub(super) fn behind(&self, name: &EntityName, node: &NodeName) -> Option<String> {
        let run = &self.runs.get(name)?.value;
        let target = TargetName::from(node);
        let has_come = |run: &EntityName| self.targets.contains_key(&(run.clone(), target.clone()));
        let failed = self.not_runnable.get(node).and_then(|kept| kept.value.run.as_ref());
        if has_come(name) || failed.is_some() && failed == run.undoes.as_ref() {
            return None;
        }
        let is_before = |other: &&EntityName| {
            self.runs.get(*other).is_some_and(|kept| kept.value.number() < run.number()) && !has_come(other)
        };
        let before = self.run_index.open_on(node).find(is_before)?;
        Some(format!("run {before} was started before it, and has not come to this node yet"))
    }

    /// The run that undoes a run; `None` if none does.
    pub(crate) fn undo_of(&self, run: &EntityName) -> Option<&EntityName> {
        match self.runs.get(run)?.value.undo.as_ref()? {
            UndoState::By(by) => Some(by),
            UndoState::Closed | UndoState::Nothing => None,
        }
    }

    /// A run was undone, perhaps: nodes on which it failed begin what undoes it. Costs time in proportion to all nodes that are not
    /// runnable, if it was.
    fn undo_changed(&mut self, run: &EntityName) {
        if self.undo_of(run).is_none() {
            return;
        }
        let marked = self.not_runnable.iter().filter(|(_, kept)| kept.value.run.as_ref() == Some(run));
        let nodes: Vec<NodeName> = marked.map(|(node, _)| node.clone()).collect();
        for node in nodes {
            self.refresh_node(&node);
        }
    }

    /// Notes the mark of a node on which the run that caused it is undone now.
    pub(super) fn note_undone(&mut self, run: &EntityName, target: &TargetName, state: Option<&TargetState>) {
        let Some(undoes) = self.runs.get(run).and_then(|kept| kept.value.undoes.as_ref()) else { return };
        let Some(AssignmentOutcome::Succeeded { .. }) = state.map(|state| &state.outcome) else { return };
        let Ok(node) = NodeName::parse(target.as_str()) else { return };
        if self.not_runnable.get(&node).is_some_and(|kept| kept.value.run.as_ref() == Some(undoes)) {
            self.undone_marks.insert_mut(node);
        }
    }

    fn is_to_undo(&self, run: &EntityName) -> bool {
        let rollout = self.rollouts.get(&(run.clone(), RolloutNumber::new(1)));
        let is_back = rollout.is_some_and(|kept| kept.value.state == RolloutState::RolledBack);
        let undo = self.runs.get(run).map(|kept| &kept.value.undo);
        is_back && matches!(undo, Some(None | Some(UndoState::Closed)))
    }
}
