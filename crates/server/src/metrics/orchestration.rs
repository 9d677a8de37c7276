//! Metrics of clusters of data stores: conditions that are true, reactions, and how far each sink is.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use bellwether_core::world::World;
use bellwether_core::world::conditions::names;

/// Labels of what is counted by namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InNamespace {
    namespace: String,
}

/// Labels of the gauge of conditions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionOf {
    namespace: String,
    condition: &'static str,
}

/// Labels of what is known of a sink.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SinkOf {
    namespace: String,
    sink: String,
}

/// Registers what the world shows of clusters, reactions and sinks.
pub(super) fn show(registry: &mut Registry, world: &World) {
    show_conditions(registry, world);
    show_reactions(registry, world);
    show_sinks(registry, world);
}

/// Every condition that there is has a value, so that an alert tells none from unknown.
fn show_conditions(registry: &mut Registry, world: &World) {
    let conditions: Family<ConditionOf, Gauge> = Family::default();
    for (namespace, fleet) in world.fleets.iter() {
        let mut counts: BTreeMap<&'static str, i64> = names().map(|name| (name, 0)).collect();
        for is_true in fleet.true_conditions() {
            if let Some(count) = counts.get_mut(is_true.name) {
                *count += 1;
            }
        }
        for (condition, count) in counts {
            let labels = ConditionOf { namespace: namespace.to_string(), condition };
            conditions.get_or_create(&labels).set(count);
        }
    }
    registry.register("conditions", "Conditions that are true, by namespace and name", conditions);
}

fn show_reactions(registry: &mut Registry, world: &World) {
    let limited: Family<InNamespace, Gauge> = Family::default();
    for (namespace, fleet) in world.fleets.iter() {
        let at_limit = fleet.reactions.values().filter(|kept| kept.value.limited_since.is_some()).count();
        let labels = InNamespace { namespace: namespace.to_string() };
        limited.get_or_create(&labels).set(i64::try_from(at_limit).unwrap_or(i64::MAX));
    }
    registry.register(
        "reactions_at_limit",
        "Reactions that started as many runs as they may within an hour",
        limited,
    );
}

fn show_sinks(registry: &mut Registry, world: &World) {
    let pending: Family<SinkOf, Gauge> = Family::default();
    let retrying: Family<SinkOf, Gauge> = Family::default();
    let stopped: Family<SinkOf, Gauge> = Family::default();
    let delivered: Family<SinkOf, Counter> = Family::default();
    let dead: Family<SinkOf, Counter> = Family::default();
    for (namespace, fleet) in world.fleets.iter() {
        for (name, sink) in fleet.sinks.iter() {
            let Some(state) = fleet.sink_states.get(name).map(|kept| &kept.value) else { continue };
            let labels = SinkOf { namespace: namespace.to_string(), sink: name.to_string() };
            let behind = fleet.last_event().get().saturating_sub(state.cursor.get());
            pending.get_or_create(&labels).set(i64::try_from(behind).unwrap_or(i64::MAX));
            retrying.get_or_create(&labels).set(i64::from(state.retry.is_some()));
            stopped.get_or_create(&labels).set(i64::from(state.stop_at(sink.value.revision).is_some()));
            delivered.get_or_create(&labels).inc_by(state.delivered);
            dead.get_or_create(&labels).inc_by(state.dead_lettered);
        }
    }
    let help = "Events that a sink has still to look at, as recorded: up to 500 of them may be done with";
    registry.register("sink_pending_events", help, pending);
    registry.register("sink_retrying", "1 while a sink tries to send an event again", retrying);
    let help = "1 while a sink is stopped since its receiver is gone";
    registry.register("sink_stopped", help, stopped);
    registry.register("sink_delivered_events", "Events that a sink delivered", delivered);
    registry.register("sink_dead_letters", "Events that a sink gave up", dead);
}
