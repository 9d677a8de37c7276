//! What undoes a run: a run of the workflow that its own one names for that, on the nodes that began a task of it.
//!
//! First the run is closed, so that no other node begins it; then it is known where it is to be undone.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;

use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::policy::{Policy, PolicyDraft};
use crate::records::progress::Progress;
use crate::records::run::{Run, UndoState};
use crate::records::target::AssignmentOutcome;
use crate::rollout::operations;
use crate::verdict::{Changeset, Write};
use crate::words::feature::Feature;
use crate::words::name::{Actor, EntityName, NodeName, TargetName};
use crate::words::plural::plural;
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// A run that is to undo another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The run to start.
    pub run: Run,
    /// The nodes to start it on.
    pub nodes: BTreeSet<NodeName>,
    /// The other run, which knows that it is undone.
    pub undone: Run,
}

/// What undoes a run: where it began, or what a run that was to undo it has left; `None` if its workflow named nothing for that, or the run would have no name.
#[must_use]
pub fn undo(fleet: &Fleet, run: &Run, annotation: Annotation) -> Option<Undo> {
    let plan = run.rollback.as_deref()?.clone();
    let started = Run::new(plan, fleet.next_run(), annotation).ok()?;
    let mut started = Run { undoes: Some(run.name.clone()), ..started };
    started.features.insert(Feature::Undo);
    let undone = with(run, UndoState::By(started.name.clone()));
    let nodes = match &run.undo {
        Some(UndoState::By(before)) => {
            let mut rest = nodes_of(fleet, before);
            rest.retain(|node| !is_done(fleet, before, node));
            rest
        }
        Some(UndoState::Closed | UndoState::Nothing) | None => begun(fleet, &run.name),
    };
    Some(Undo { nodes, run: started, undone })
}

/// The nodes of a run that are part of the fleet.
fn nodes_of(fleet: &Fleet, run: &EntityName) -> BTreeSet<NodeName> {
    let Some(entity) = fleet.entities.get(run) else { return BTreeSet::new() };
    let TargetSource::Listed(nodes) = &entity.value.source else { return BTreeSet::new() };
    let is_active =
        |node: &&NodeName| fleet.nodes.get(*node).is_some_and(|kept| kept.value.decommissioned.is_none());
    nodes.iter().filter(is_active).cloned().collect()
}

/// Whether a run is complete on a node.
fn is_done(fleet: &Fleet, run: &EntityName, node: &NodeName) -> bool {
    let state = fleet.boards.get(run).and_then(|board| board.target(&TargetName::from(node))?.state);
    state.is_some_and(|state| matches!(state.outcome, AssignmentOutcome::Succeeded { .. }))
}

/// The nodes that began a task of a run, and are still part of it.
fn begun(fleet: &Fleet, run: &EntityName) -> BTreeSet<NodeName> {
    let mut nodes = nodes_of(fleet, run);
    nodes.retain(|node| {
        let jobs = fleet.jobs.get(&(run.clone(), node.clone()));
        jobs.is_some_and(|kept| !kept.value.jobs.is_empty())
    });
    nodes
}

/// The entity of a new run on these nodes, of which a rollout is requested.
///
/// # Errors
/// The reason why it cannot have one.
pub fn requested(run: &Run, nodes: BTreeSet<NodeName>, policy: Policy) -> Result<Entity, String> {
    let kind = EntityKind::Workflow(run.workflow.clone());
    let source = TargetSource::Listed(Arc::new(nodes));
    let entity = Entity { kind, source, ..Entity::new(run.name.clone(), Selector::all(), policy) };
    let version = run.version().map_err(|error| error.to_string())?;
    operations::start(&entity, &Progress::default(), version, run.annotation.clone())
        .map_err(|error| error.to_string())
}

/// The policy of a run that undoes this one: as many nodes at once as its policy has for rollbacks.
fn policy(fleet: &Fleet, run: &EntityName) -> Policy {
    let batch = fleet.entities.get(run).map(|kept| kept.value.policy.rollback);
    let kind = fleet.entities.get(run).map_or(EntityKind::Version, |kept| kept.value.kind.clone());
    let draft = PolicyDraft { batch, ..PolicyDraft::default() };
    kind.policy(&TargetSource::Listed(Arc::default()), draft).unwrap_or(Policy::DEFAULT)
}

/// The next step of undoing a run that is rolled back.
pub(super) fn step(fleet: &Fleet, run: &Run, now: Timestamp) -> Changeset {
    match &run.undo {
        None => Changeset { writes: vec![put(with(run, UndoState::Closed))], events: vec![] },
        Some(UndoState::Closed | UndoState::Nothing | UndoState::By(_)) => started(fleet, run, now),
    }
}

/// What starts the run that undoes a closed one, each node after what it does.
fn started(fleet: &Fleet, run: &Run, now: Timestamp) -> Changeset {
    let undo = Actor::parse(&format!("run/{}", run.name)).ok().and_then(|by| {
        let annotation = Annotation { by, reason: format!("run {} failed", run.name), at: now };
        undo(fleet, run, annotation).filter(|undo| !undo.nodes.is_empty())
    });
    let requested = undo.and_then(|undo| {
        let entity = requested(&undo.run, undo.nodes.clone(), policy(fleet, &run.name)).ok()?;
        Some((undo, entity))
    });
    let Some((undo, entity)) = requested else {
        let cause = match begun(fleet, &run.name).len() {
            0 => "no node began a task of it".to_string(),
            some => format!("a run that undoes it on {} cannot be started", plural(some, "node")),
        };
        let event = told("run.nothing_to_undo", run, cause);
        return Changeset { writes: vec![put(with(run, UndoState::Nothing))], events: vec![event] };
    };
    let Undo { run: started, nodes, undone } = undo;
    let on = plural(nodes.len(), "node");
    let mut event = told("run.undone", run, format!("it failed; workflow {} runs on {on}", started.workflow));
    event.after = Some(started.name.to_string());
    let writes = vec![put(started), Write::put(Record::Entity(entity)), put(undone)];
    Changeset { writes, events: vec![event] }
}

fn with(run: &Run, state: UndoState) -> Run {
    Run { undo: Some(state), ..run.clone() }
}

fn put(run: Run) -> Write {
    Write::put(Record::Run(run))
}

fn told(kind: &'static str, run: &Run, cause: String) -> EventDraft {
    EventDraft { kind, subject: format!("entity/{}", run.name), before: None, after: None, cause }
}

#[cfg(test)]
mod tests;
