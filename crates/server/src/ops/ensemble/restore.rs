//! Ensembles that are founded from a snapshot: who may do that, and that it stays as it is.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::ensemble::restore::RestoreSpec;
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::ensemble::Ensemble;
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::ensemble_restore::{RestoreSource, SnapshotName};
use bellwether_core::words::plural::plural;
use bellwether_core::world::fleet::Fleet;

use crate::ops::OpError;

/// The right to read all data of an ensemble, which is also needed to restore a snapshot of it into another one.
pub(crate) const READS_DATA: Right = Right::update_field(ObjectKind::Ensemble, "/certificates");

/// The snapshot that a request names.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub(crate) fn named(spec: &RestoreSpec) -> Result<SnapshotName, ShapeError> {
    Ok(RestoreSource::try_from(spec.clone())?.snapshot)
}

/// Refuses a new ensemble whose snapshot is on a node that does not exist: it may be mistyped.
pub(super) fn has_node(fleet: &Fleet, after: &Ensemble) -> Result<(), OpError> {
    let Some(source) = &after.restore else { return Ok(()) };
    let node = &source.node;
    let reason = match fleet.nodes.get(node).map(|kept| &*kept.value) {
        Some(found) if found.decommissioned.is_none() => return Ok(()),
        Some(_) => {
            format!("node {node} is decommissioned: name the one on which the file of the snapshot is")
        }
        None => format!("there is no node {node}: name the one on which the file of the snapshot is"),
    };
    Err(ShapeError::at("restore.node", reason).into())
}

/// Refuses another snapshot for an ensemble that has members, or had some that served: these have their data.
pub(super) fn keeps_source(fleet: &Fleet, before: &Ensemble, after: &Ensemble) -> Result<(), OpError> {
    if before.restore == after.restore {
        return Ok(());
    }
    let name = &before.name;
    let members = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
    let has_any = |members: &&EnsembleMembers| !members.members.is_empty() || members.is_bootstrapped;
    if members.filter(has_any).is_none() {
        return Ok(());
    }
    let from = before
        .restore
        .as_ref()
        .map_or_else(|| "without data".to_owned(), |source| format!("from {}", source.describe()));
    let reason = format!(
        "ensemble {name} was founded {from} and has members: restore the snapshot into a new ensemble, or delete this one first"
    );
    Err(ShapeError::at("restore", reason).into())
}

/// Which snapshots an ensemble that is deleted leaves behind, after what else is said of that; empty if none.
pub(super) fn left_behind(members: Option<&EnsembleMembers>) -> String {
    let taken = members.map(|members| (members, members.snapshots.taken.as_slice()));
    let Some((members, [.., latest])) = taken else { return String::new() };
    let count = members.snapshots.taken.len();
    let verb = if count == 1 { "stays" } else { "stay" };
    let name = members.snapshot_name(latest.id);
    format!("; {} {verb}, the latest as {name} on node {}", plural(count, "snapshot"), latest.node)
}
