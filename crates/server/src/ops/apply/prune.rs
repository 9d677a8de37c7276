//! Which objects an apply prunes: those that an earlier one made, and that no document names any more.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::words::label::Labels;
use bellwether_core::world::fleet::Fleet;

use super::object::{Object, ObjectId};

/// The objects of a namespace that carry all of these labels, without those of the documents, in the order in which they are
/// deleted. Only `apply` gives labels to an object, so nothing else is found. Freezes of every namespace are not the
/// namespace's, and stay.
pub(super) fn prunable(
    fleet: &Fleet,
    labels: &BTreeMap<String, String>,
    objects: &[Object],
) -> BTreeSet<ObjectId> {
    let carries = |found: &Labels| {
        !labels.is_empty() && labels.iter().all(|(key, value)| found.get(key) == Some(value.as_str()))
    };
    let mut found = BTreeSet::new();
    let freezes = fleet.freezes.values().filter(|kept| carries(&kept.value.labels));
    found.extend(freezes.map(|kept| ObjectId::Freeze(kept.value.name.clone())));
    let pauses = fleet.pauses.values().filter(|kept| carries(&kept.value.labels));
    found.extend(pauses.map(|kept| ObjectId::Pause(kept.value.name.clone())));
    let entities = fleet.entities.values().filter(|kept| carries(&kept.value.labels));
    found.extend(entities.map(|kept| ObjectId::Entity(kept.value.name.clone())));
    let slots = fleet.slots.values().filter(|kept| carries(&kept.value.labels));
    found.extend(slots.map(|kept| ObjectId::Slot(kept.value.name.clone())));
    let definitions = fleet.definitions.iter().filter(|(_, kept)| carries(&kept.value.labels));
    found.extend(definitions.map(|(id, _)| ObjectId::Definition(id.clone())));
    let clusters = fleet.clusters.values().filter(|kept| carries(&kept.value.labels));
    found.extend(clusters.map(|kept| ObjectId::Cluster(kept.value.name.clone())));
    let schedules = fleet.schedules.values().filter(|kept| carries(&kept.value.labels));
    let reactions = fleet.reactions.values().filter(|kept| carries(&kept.value.labels));
    found.extend(schedules.map(|kept| ObjectId::Schedule(kept.value.name.clone())));
    found.extend(reactions.map(|kept| ObjectId::Reaction(kept.value.name.clone())));
    let sinks = fleet.sinks.values().filter(|kept| carries(&kept.value.labels));
    found.extend(sinks.map(|kept| ObjectId::Sink(kept.value.name.clone())));
    let profiles = fleet.profiles.values().filter(|kept| !kept.value.deleted && carries(&kept.value.labels));
    found.extend(profiles.map(|kept| ObjectId::Profile(kept.value.name.clone())));
    for object in objects {
        found.remove(&object.id);
    }
    found
}
