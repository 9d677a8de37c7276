//! Runs of workflows: starting, reading and deleting. A run is a rollout of an entity of its own, over the nodes that it was
//! started on; its record has what the tasks were then.

mod begin;
mod inputs;
mod needs;
mod plan;
mod room;
pub(in crate::ops) mod switch;
mod undo;
mod view;
mod waits;

use std::collections::BTreeSet;

use bellwether_api::v1::run::{NewRun, Run as Shape};
use bellwether_core::records::key::Key;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName};

pub(super) use self::begin::begun;
pub use self::inputs::{lacking_param, role_params, spec, take};
pub use self::needs::needs;
pub(super) use self::plan::is_idempotent;
pub use self::undo::undo;
pub use self::view::{get, list, list_of};
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
