//! Runs as they are shown.

use bellwether_api::v1::rollout::{RolloutState, RolloutStatus};
use bellwether_api::v1::run::Run as Shape;
use bellwether_core::records::entity::TargetSource;
use bellwether_core::records::rollout::Rollout;
use bellwether_core::records::run::{Run, UndoState};
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::{EntityName, NodeName};
use bellwether_core::world::fleet::Fleet;

use super::begin::{count, shape};

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
    let rollout = rollout_of(fleet, run);
    let state = state_of(fleet, run);
    let board = fleet.boards.get(&run.name);
    let counts = match rollout {
        Some(rollout) if rollout.ended.is_some() => rollout.counts,
        Some(_) | None => board.map(|board| board.counts()).unwrap_or_default(),
    };
    let undo_state = match &run.undo {
        Some(UndoState::By(by)) => fleet.runs.get(by).map(|kept| state_of(fleet, &kept.value)),
        Some(UndoState::Closed | UndoState::Nothing) | None => None,
    };
    let (succeeded, failed) = (counts.succeeded, counts.failed);
    Shape { succeeded, failed, undo_state, ..shape(run, nodes, state) }
}

fn rollout_of<'a>(fleet: &'a Fleet, run: &Run) -> Option<&'a Rollout> {
    fleet.rollouts.get(&(run.name.clone(), RolloutNumber::new(1))).map(|kept| &*kept.value)
}

/// The state of the rollout that a run is.
pub(super) fn state_of(fleet: &Fleet, run: &Run) -> RolloutState {
    match rollout_of(fleet, run) {
        Some(rollout) => RolloutStatus::from(&rollout.state).state,
        None if fleet.has_ended(&run.name) => RolloutState::Aborted,
        None => RolloutState::InProgress,
    }
}
