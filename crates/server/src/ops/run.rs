//! Runs of workflows: starting, reading and deleting. A run is a rollout of an entity of its own, over the nodes that it was
//! started on; its record has what the tasks were then.

mod begin;
mod inputs;
mod needs;
mod plan;
mod room;
mod switch;
mod undo;
mod waits;

use std::collections::BTreeSet;

use bellwether_api::v1::rollout::{RolloutState, RolloutStatus};
use bellwether_api::v1::run::{NewRun, Run as Shape};
use bellwether_core::records::entity::TargetSource;
use bellwether_core::records::key::Key;
use bellwether_core::records::run::Run;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName};
use bellwether_core::world::fleet::Fleet;

pub(super) use self::begin::begun;
use self::begin::{count, shape};
pub use self::inputs::{role_params, spec, take};
pub use self::needs::needs;
pub(super) use self::plan::is_idempotent;
pub use self::undo::undo;
use super::{OpError, event};
use crate::transactor::Transactor;

/// Starts a run of a workflow on these nodes; answers it. With `dry_run` nothing is started.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when something that the workflow names does
/// not exist.
pub async fn start(
    transactor: &Transactor,
    (namespace, actor): (&Namespace, &Actor),
    request: &NewRun,
    nodes: &BTreeSet<NodeName>,
) -> Result<Shape, OpError> {
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let (changeset, shape) = begun(fleet, now, actor, request, nodes)?;
            Ok(((!request.dry_run).then_some(changeset), shape))
        })
        .await
}

/// Deletes a run that has ended, with its history.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while it is in progress.
pub async fn delete(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            if fleet.runs.get(name).is_none() {
                return Err(OpError::NotFound(format!("run {name}")));
            }
            if fleet.is_run_in_progress(name) {
                let reason = format!("delete run {name}: it is in progress");
                let hint = format!("abort it first: bellwether rollout abort {name}");
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let writes =
                vec![Write::delete(Key::Run(name.clone())), Write::delete(Key::Entity(name.clone()))];
            let event = event("run.deleted", format!("entity/{name}"), "its nodes are unchanged");
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// The runs, the newest last.
#[must_use]
pub fn list(fleet: &Fleet) -> Vec<Shape> {
    let mut runs: Vec<Shape> = fleet.runs.values().map(|kept| view(fleet, &kept.value)).collect();
    runs.sort_by_key(|run| run.at_ms);
    runs
}

/// The runs that have not ended on a node, the newest last.
#[must_use]
pub fn list_of(fleet: &Fleet, node: &NodeName) -> Vec<Shape> {
    let names = fleet.entities_of_node.get(node).filter(|name| !fleet.is_over_on(name, node));
    let mut runs: Vec<Shape> = names.filter_map(|name| get(fleet, name)).collect();
    runs.sort_by_key(|run| run.at_ms);
    runs
}

/// A run with its state; `None` if there is none of this name.
#[must_use]
pub fn get(fleet: &Fleet, name: &EntityName) -> Option<Shape> {
    fleet.runs.get(name).map(|kept| view(fleet, &kept.value))
}

fn view(fleet: &Fleet, run: &Run) -> Shape {
    let nodes = match fleet.entities.get(&run.name).map(|kept| &kept.value.source) {
        Some(TargetSource::Listed(nodes)) => count(nodes.len()),
        Some(TargetSource::Nodes(_) | TargetSource::External(_)) | None => 0,
    };
    let rollout = fleet.rollouts.get(&(run.name.clone(), RolloutNumber::new(1))).map(|kept| &kept.value);
    let state = match rollout {
        Some(rollout) => RolloutStatus::from(&rollout.state).state,
        None if fleet.has_ended(&run.name) => RolloutState::Aborted,
        None => RolloutState::InProgress,
    };
    let board = fleet.boards.get(&run.name);
    let counts = match rollout {
        Some(rollout) if rollout.ended.is_some() => rollout.counts,
        Some(_) | None => board.map(|board| board.counts()).unwrap_or_default(),
    };
    Shape { succeeded: counts.succeeded, failed: counts.failed, ..shape(run, nodes, state) }
}
