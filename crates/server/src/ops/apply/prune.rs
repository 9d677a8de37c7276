//! What an apply prunes: objects that an earlier one made, and that no document names any more.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::words::label::Labels;
use bellwether_core::world::fleet::Fleet;

use super::object::{Object, ObjectId};
use super::set::Session;
use crate::ops::cluster::{self, ClusterScope};
use crate::ops::definition::{self, DefinitionScope};
use crate::ops::freeze::{self, FreezeNamespace};
use crate::ops::reaction::{self, ReactionScope};
use crate::ops::schedule::{self, ScheduleScope};
use crate::ops::scope::SlotScope;
use crate::ops::sink::{self, SinkScope};
use crate::ops::{OpError, entity, param, pause, profile, slot};

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
    let ensembles = fleet.ensembles.values().filter(|kept| carries(&kept.value.labels));
    found.extend(ensembles.map(|kept| ObjectId::Ensemble(kept.value.name.clone())));
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

/// Why an object that would be pruned is kept; `None` if it is not.
pub(super) fn kept(id: &ObjectId) -> Option<String> {
    match id {
        ObjectId::Ensemble(name) => Some(format!(
            "kept: it is never pruned, since its members would stop; to delete it: bellwether ensemble delete {name}"
        )),
        ObjectId::Freeze(_)
        | ObjectId::GlobalFreeze(_)
        | ObjectId::Pause(_)
        | ObjectId::Entity(_)
        | ObjectId::Schedule(_)
        | ObjectId::Reaction(_)
        | ObjectId::Sink(_)
        | ObjectId::Cluster(_)
        | ObjectId::Slot(_)
        | ObjectId::Definition(_)
        | ObjectId::Node(_)
        | ObjectId::Profile(_)
        | ObjectId::Param(_)
        | ObjectId::Filter(_) => None,
    }
}

impl Session {
    /// Deletes an object; one that [`kept`] is about stays.
    pub(super) async fn prune(&self, id: &ObjectId) -> Result<(), OpError> {
        let (transactor, namespace, actor) = (&self.transactor, &self.namespace, &self.actor);
        let place = FreezeNamespace::In(namespace.clone());
        match id {
            ObjectId::Freeze(name) => freeze::delete(transactor, &place, actor, name).await,
            ObjectId::GlobalFreeze(name) => {
                freeze::delete(transactor, &FreezeNamespace::Everywhere, actor, name).await
            }
            ObjectId::Cluster(name) => {
                cluster::delete(transactor, ClusterScope { namespace, name, actor, only_at: None }).await
            }
            ObjectId::Pause(name) => pause::delete(transactor, namespace, actor, name).await,
            ObjectId::Entity(name) => entity::delete(transactor, namespace, actor, name).await,
            ObjectId::Reaction(name) => {
                reaction::delete(transactor, ReactionScope { namespace, name, actor, only_at: None }).await
            }
            ObjectId::Sink(name) => sink::delete(transactor, SinkScope::of(namespace, name, actor)).await,
            ObjectId::Schedule(name) => {
                schedule::delete(transactor, ScheduleScope { namespace, name, actor, only_at: None }).await
            }
            ObjectId::Slot(name) => {
                slot::delete(transactor, SlotScope { namespace, slot: name, actor }).await
            }
            ObjectId::Profile(name) => profile::delete(transactor, namespace, actor, name).await,
            ObjectId::Definition(id) => {
                definition::delete(transactor, DefinitionScope { namespace, id, actor }).await
            }
            ObjectId::Param(key) => param::undeclare(transactor, (namespace, &self.who), key).await,
            ObjectId::Ensemble(_) => Ok(()),
            // These have no labels to be found by.
            ObjectId::Node(_) | ObjectId::Filter(_) => Ok(()),
        }
    }
}
