//! Metrics of the fleet by state: nodes, rollouts in progress, freezes in force.

use std::collections::BTreeMap;

use bellwether_core::records::node::PresenceState;
use bellwether_core::records::rollout::RolloutState;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Every state of a node that is in use.
const PRESENCES: [PresenceState; 4] =
    [PresenceState::Never, PresenceState::Up, PresenceState::Suspect, PresenceState::Unreachable];

/// Labels of the gauge of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodesIn {
    namespace: String,
    state: &'static str,
}

/// Labels of the gauge of rollouts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RolloutOf {
    namespace: String,
    entity: String,
    state: &'static str,
}

/// Labels of the gauge of freezes; the namespace is empty for those of all namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FreezesIn {
    namespace: String,
}

/// Registers what the world shows of nodes, rollouts and freezes.
pub(super) fn show(registry: &mut Registry, world: &World, now: Timestamp) {
    show_nodes(registry, world);
    show_rollouts(registry, world);
    show_freezes(registry, world, now);
}

/// Every state has a value, so that an alert tells none from unknown.
fn show_nodes(registry: &mut Registry, world: &World) {
    let nodes: Family<NodesIn, Gauge> = Family::default();
    for (namespace, fleet) in world.fleets.iter() {
        let mut counts: BTreeMap<&'static str, i64> =
            PRESENCES.iter().map(|state| (state.as_str(), 0)).collect();
        for (name, node) in fleet.nodes.iter() {
            if node.value.decommissioned.is_some() {
                continue;
            }
            let presence = fleet.presences.get(name);
            let state = presence.map_or(PresenceState::Never, |presence| presence.value.contact);
            if let Some(count) = counts.get_mut(state.as_str()) {
                *count += 1;
            }
        }
        for (state, count) in counts {
            nodes.get_or_create(&NodesIn { namespace: namespace.to_string(), state }).set(count);
        }
    }
    registry.register("node_states", "Nodes that are not decommissioned, by namespace and presence", nodes);
}

fn show_rollouts(registry: &mut Registry, world: &World) {
    let rollouts: Family<RolloutOf, Gauge> = Family::default();
    for (namespace, fleet) in world.fleets.iter() {
        for (entity, progress) in fleet.progresses.iter() {
            let number = progress.value.active();
            let rollout = number.and_then(|number| fleet.rollouts.get(&(entity.clone(), number)));
            let Some(state) = rollout.and_then(|rollout| active_state(&rollout.value.state)) else {
                continue;
            };
            let labels = RolloutOf { namespace: namespace.to_string(), entity: entity.to_string(), state };
            rollouts.get_or_create(&labels).set(1);
        }
    }
    let help = "1 for each rollout that has not ended, by namespace, entity and state";
    registry.register("rollout_state", help, rollouts);
}

/// The name of a state in which a rollout has not ended.
const fn active_state(state: &RolloutState) -> Option<&'static str> {
    match state {
        RolloutState::InProgress => Some("in_progress"),
        RolloutState::Waiting(_) => Some("waiting"),
        RolloutState::Paused(_) => Some("paused"),
        RolloutState::RollingBack => Some("rolling_back"),
        RolloutState::Succeeded
        | RolloutState::PartiallySucceeded { .. }
        | RolloutState::Failed { .. }
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed { .. }
        | RolloutState::Aborted { .. }
        | RolloutState::Superseded { .. } => None,
    }
}

fn show_freezes(registry: &mut Registry, world: &World, now: Timestamp) {
    let freezes: Family<FreezesIn, Gauge> = Family::default();
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let everywhere = world.freezes.values().filter(|freeze| freeze.value.is_in_force(now)).count();
    freezes.get_or_create(&FreezesIn { namespace: String::new() }).set(count(everywhere));
    for (namespace, fleet) in world.fleets.iter() {
        let own = fleet.freezes.values().filter(|freeze| freeze.value.is_in_force(now)).count();
        freezes.get_or_create(&FreezesIn { namespace: namespace.to_string() }).set(count(own));
    }
    registry.register(
        "freezes",
        "Freezes in force, by namespace; that of those for all namespaces is empty",
        freezes,
    );
}
