//! What there is, as documents that change nothing when they are applied.

use bellwether_api::v1::apply::Document;
use bellwether_core::records::node_params::NodeParams;
use bellwether_core::words::name::Namespace;
use bellwether_core::words::precedence::DEFAULTS_PROFILE;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::object::ObjectId;

/// Every object of a namespace that can be applied, and the freezes of every namespace. A freeze that ended is none any
/// more: applied, it would be in force again.
#[must_use]
pub fn documents(world: &World, namespace: &Namespace, now: Timestamp) -> Vec<Document> {
    let empty = Fleet::default();
    let fleet = world.fleets.get(namespace).unwrap_or(&empty);
    let own = fleet.profiles.keys().filter(|name| name.as_str() != DEFAULTS_PROFILE);
    let profiles = own.cloned().map(ObjectId::Profile);
    let params = fleet.params.keys().cloned().map(ObjectId::Param);
    let filters = fleet.filters.keys().cloned().map(ObjectId::Filter);
    let has_data = |node: &&NodeParams| !node.profiles.is_empty() || node.params != "{}";
    let nodes = fleet.node_params.values().map(|kept| &*kept.value).filter(has_data);
    let nodes = nodes.map(|node| ObjectId::Node(node.node.clone()));
    let slots = fleet.slots.values().filter(|kept| !kept.value.is_idle());
    let slots = slots.map(|kept| ObjectId::Slot(kept.value.name.clone()));
    let definitions = fleet.definitions.keys().cloned().map(ObjectId::Definition);
    // A run is started, not applied.
    let entities = fleet.entities.keys().filter(|name| !fleet.runs.contains_key(*name));
    let entities = entities.cloned().map(ObjectId::Entity);
    let schedules = fleet.schedules.keys().cloned().map(ObjectId::Schedule);
    let reactions = fleet.reactions.keys().cloned().map(ObjectId::Reaction);
    let sinks = fleet.sinks.keys().cloned().map(ObjectId::Sink);
    let clusters = fleet.clusters.keys().cloned().map(ObjectId::Cluster);
    let ensembles = fleet.ensembles.keys().cloned().map(ObjectId::Ensemble);
    let pauses = fleet.pauses.keys().cloned().map(ObjectId::Pause);
    let freezes = fleet.freezes.values().filter(|kept| kept.value.is_in_force(now));
    let freezes = freezes.map(|kept| ObjectId::Freeze(kept.value.name.clone()));
    let global = world.freezes.values().filter(|kept| kept.value.is_in_force(now));
    let global = global.map(|kept| ObjectId::GlobalFreeze(kept.value.name.clone()));
    let all = params
        .chain(filters)
        .chain(profiles)
        .chain(nodes)
        .chain(slots)
        .chain(definitions)
        .chain(clusters)
        .chain(ensembles)
        .chain(schedules)
        .chain(reactions)
        .chain(sinks)
        .chain(entities)
        .chain(pauses)
        .chain(freezes)
        .chain(global);
    all.filter_map(|id| id.current(world, fleet)).collect()
}
