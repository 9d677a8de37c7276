//! What starts a run, and what is told of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::shape::{ShapeError, read, reason};
use bellwether_api::v1::rollout::RolloutState;
use bellwether_api::v1::run::{BusyNodes, NewRun, Run as Shape, RunTask as TaskShape};
use bellwether_core::decide::runs::undo::requested;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::{EntityKind, TargetSource};
use bellwether_core::records::key::Record;
use bellwether_core::records::policy::Policy;
use bellwether_core::records::run::{MAX_NODES, NameTooLong, Run, UndoState};
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::{Actor, NodeName, WorkflowName};
use bellwether_core::words::plural::plural;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::{plan, room, switch, waits};
use crate::ops::run_policy::may_roll_back;
use crate::ops::{OpError, cause, entity, event};

/// A number that the run which undoes another may have: its name must have room for it, when it is too late to refuse.
const LATER: Sequence = Sequence::new(9_999_999_999_999_999);

/// What starts a run of a workflow on these nodes, and the run.
pub(in crate::ops) fn begun(
    fleet: &Fleet,
    now: Timestamp,
    actor: &Actor,
    request: &NewRun,
    nodes: &BTreeSet<NodeName>,
) -> Result<(GuardedChangeset, Shape), OpError> {
    let workflow: WorkflowName = read("workflow", &request.workflow)?;
    let why = reason(&request.reason)?;
    enough(fleet, nodes.len(), request)?;
    let (plans, guards) = plan::frozen(fleet, &workflow, request.from.as_deref())?;
    let annotation = Annotation { by: actor.clone(), reason: why, at: now };
    if let Some(plan) = &plans.rollback {
        Run::new(plan.clone(), LATER, annotation.clone()).map_err(too_long)?;
    }
    let run = Run::new(plans.run, fleet.next_run(), annotation).map_err(too_long)?;
    let run = Run { rollback: plans.rollback.map(Box::new), ..run };
    let kind = EntityKind::Workflow(workflow);
    let policy = entity::policy(&kind, &TargetSource::Listed(Arc::default()), &request.policy)?;
    may_roll_back(&run, &policy)?;
    let (changeset, shape) = started(fleet, (&run, nodes), policy, request.busy)?;
    let warning = shape.warning.map(|warning| format!("warning: {warning}"));
    Ok((GuardedChangeset { changeset, guards }, Shape { warning, ..shape }))
}

/// What starts this run on these nodes, and what to tell of it, with the reason of a warning.
pub(super) fn started(
    fleet: &Fleet,
    (run, nodes): (&Run, &BTreeSet<NodeName>),
    policy: Policy,
    busy: Option<BusyNodes>,
) -> Result<(Changeset, Shape), OpError> {
    let (mut writes, mut events) = room::made(fleet, &run.workflow, nodes)?;
    let switch = switch::switched(fleet, (run, nodes), busy, &run.annotation)?;
    let entity =
        requested(run, nodes.clone(), policy).map_err(|reason| OpError::Refused { reason, hint: None })?;
    let shape = shape(run, count(nodes.len()), RolloutState::InProgress);
    let shape = Shape { warning: waits::warning(fleet, run, nodes), ..shape };
    let (subject, on) = (format!("entity/{}", run.name), plural(nodes.len(), "node"));
    let why = cause(&run.annotation.reason);
    let mut started = event("run.started", subject, format!("on {on}: {why}"));
    started.after = Some(run.workflow.to_string());
    writes.extend([Write::put(Record::Run(run.clone())), Write::put(Record::Entity(entity))]);
    writes.extend(switch.writes);
    events.extend(switch.events.into_iter().chain([started]));
    Ok((Changeset { writes, events }, shape))
}

fn too_long(error: NameTooLong) -> OpError {
    OpError::Refused { reason: error.to_string(), hint: Some("give it a shorter name".to_owned()) }
}

/// What is told of a run.
pub(super) fn shape(run: &Run, nodes: u64, state: RolloutState) -> Shape {
    Shape {
        name: run.name.to_string(),
        workflow: run.workflow.to_string(),
        digest: run.digest.clone(),
        tasks: run.tasks.iter().map(TaskShape::from).collect(),
        nodes,
        state,
        succeeded: 0,
        failed: 0,
        by: run.annotation.by.to_string(),
        at_ms: run.annotation.at.as_millis(),
        reason: run.annotation.reason.clone(),
        rollback: run.rollback.as_ref().map(|plan| plan.workflow.to_string()),
        undoes: run.undoes.as_ref().map(ToString::to_string),
        undone_by: match &run.undo {
            Some(UndoState::By(by)) => Some(by.to_string()),
            Some(UndoState::Closed | UndoState::Nothing) | None => None,
        },
        undo_state: None,
        warning: None,
        nothing_to_undo: run.undo == Some(UndoState::Nothing),
    }
}

pub(super) fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

fn enough(fleet: &Fleet, nodes: usize, request: &NewRun) -> Result<(), OpError> {
    let on = &request.on;
    if nodes == 0 {
        let filter = Filter::parse(on, &NODES).ok();
        let names = filter.as_ref().and_then(|filter| filter.required_values("name", ""));
        let mut named = names.into_iter().flatten().filter_map(|name| NodeName::parse(name).ok());
        let cluster = named.find_map(|name| fleet.active_node(&name)?.value.logical.clone());
        let hint = match cluster {
            Some(cluster) => {
                format!("on the manager of a cluster: bellwether cluster run {cluster} {}", request.workflow)
            }
            None => "try it: bellwether node list FILTER".to_owned(),
        };
        let reason = format!("run a workflow on {on:?}: no node matches");
        return Err(OpError::Refused { reason, hint: Some(hint) });
    }
    if nodes > MAX_NODES {
        let reason = format!("{nodes} nodes match; a run has at most {MAX_NODES}");
        return Err(ShapeError::at("on", reason).into());
    }
    Ok(())
}
