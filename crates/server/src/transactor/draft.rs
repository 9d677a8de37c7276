//! A draft: the changes of several operations on a copy of the world, collected to be committed together or not at all.
//! Owns the copy; never reaches the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::records::key::{AnyKey, AnyRecord, Key, Record};
use bellwether_core::records::versioned::Versioned;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

/// Changes that are collected. Clones share them.
#[derive(Debug, Clone)]
pub struct Draft {
    base: Arc<World>,
    state: Arc<Mutex<DraftState>>,
}

/// The world of a draft and the changes that were not taken yet: restored when the last operation turns out to change nothing.
#[derive(Debug, Clone)]
pub struct DraftState {
    world: Arc<World>,
    changeset: Changeset,
    guards: BTreeSet<AnyKey>,
}

impl Draft {
    /// A draft without changes.
    pub(super) fn new(base: Arc<World>) -> Self {
        let state =
            DraftState { world: Arc::clone(&base), changeset: Changeset::default(), guards: BTreeSet::new() };
        Self { base, state: Arc::new(Mutex::new(state)) }
    }

    /// The world that the changes were decided on: what a commit of them is compared with.
    #[must_use]
    pub const fn base(&self) -> &Arc<World> {
        &self.base
    }

    /// The world with the changes so far. Records alone are changed in it: boards, orders and other indexes are as they were.
    #[must_use]
    pub fn world(&self) -> Arc<World> {
        Arc::clone(&self.state().world)
    }

    /// Takes the changes since the last call; one write for each record, the last one. The draft's world keeps them.
    #[must_use]
    pub fn take(&self) -> GuardedChangeset {
        let mut state = self.state();
        let guards = std::mem::take(&mut state.guards).into_iter().collect();
        GuardedChangeset { changeset: std::mem::take(&mut state.changeset), guards }
    }

    /// The changes since the last [`Draft::take`], which stay.
    #[must_use]
    pub(super) fn changes(&self) -> GuardedChangeset {
        let state = self.state();
        let guards = state.guards.iter().cloned().collect();
        GuardedChangeset { changeset: state.changeset.clone(), guards }
    }

    /// The draft as it is, to be restored.
    #[must_use]
    pub fn save(&self) -> DraftState {
        self.state().clone()
    }

    /// Forgets the changes since `saved`.
    pub fn restore(&self, saved: DraftState) {
        *self.state() = saved;
    }

    /// Adds the changes of an operation.
    pub fn collect(&self, namespace: &Namespace, guarded: GuardedChangeset) {
        let GuardedChangeset { changeset, guards } = guarded;
        let mut state = self.state();
        state.guards.extend(guards);
        let mut world = World::clone(&state.world);
        let mut fleet = world.fleets.get(namespace).cloned().unwrap_or_default();
        for write in changeset.writes {
            match &write {
                Write::Put(record) => put(&mut world, &mut fleet, record),
                Write::Delete(key) => delete(&mut world, &mut fleet, key),
            }
            let key = write.key();
            state.changeset.writes.retain(|before| before.key() != key);
            state.changeset.writes.push(write);
        }
        world.fleets.insert_mut(namespace.clone(), fleet);
        state.world = Arc::new(world);
        state.changeset.events.extend(changeset.events);
    }

    /// Number of events since the last [`Draft::take`].
    #[must_use]
    pub fn events(&self) -> usize {
        self.state().changeset.events.len()
    }

    fn state(&self) -> MutexGuard<'_, DraftState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record in the copy. Its revision is never compared: a commit compares with the base.
fn versioned<T: Clone>(value: &T) -> Versioned<T> {
    Versioned { value: Arc::new(value.clone()), revision: Revision::ZERO }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no operation that can be drafted writes another kind")]
fn put(world: &mut World, fleet: &mut Fleet, record: &AnyRecord) {
    let record = match record {
        AnyRecord::Namespaced(record) => record,
        AnyRecord::Global(GlobalRecord::Freeze(freeze)) => {
            return world.freezes.insert_mut(freeze.name.clone(), versioned(freeze));
        }
        AnyRecord::Global(other) => return debug_assert!(false, "{:?} cannot be drafted", other.key()),
    };
    match record {
        Record::Entity(entity) => fleet.entities.insert_mut(entity.name.clone(), versioned(entity)),
        Record::Cluster(cluster) => fleet.clusters.insert_mut(cluster.name.clone(), versioned(cluster)),
        Record::Ensemble(ensemble) => fleet.ensembles.insert_mut(ensemble.name.clone(), versioned(ensemble)),
        // The manager of a cluster.
        Record::Node(node) => fleet.nodes.insert_mut(node.name.clone(), versioned(node)),
        Record::Schedule(schedule) => fleet.schedules.insert_mut(schedule.name.clone(), versioned(schedule)),
        Record::Reaction(reaction) => fleet.reactions.insert_mut(reaction.name.clone(), versioned(reaction)),
        Record::Sink(sink) => fleet.sinks.insert_mut(sink.name.clone(), versioned(sink)),
        Record::SinkState(state) => fleet.sink_states.insert_mut(state.name.clone(), versioned(state)),
        Record::Filter(filter) => fleet.filters.insert_mut(filter.name.clone(), versioned(filter)),
        Record::Freeze(freeze) => fleet.freezes.insert_mut(freeze.name.clone(), versioned(freeze)),
        Record::Pause(pause) => fleet.pauses.insert_mut(pause.name.clone(), versioned(pause)),
        Record::Slot(slot) => fleet.slots.insert_mut(slot.name.clone(), versioned(slot)),
        Record::Definition(definition) => {
            fleet.definitions.insert_mut(definition.id.clone(), versioned(definition));
        }
        Record::Param(param) => fleet.params.insert_mut(param.key.clone(), versioned(param)),
        Record::NodeParams(node) => fleet.node_params.insert_mut(node.node.clone(), versioned(node)),
        Record::Profile(profile) => fleet.profiles.insert_mut(profile.name.clone(), versioned(profile)),
        Record::ProfileRevision(revision) => {
            let key = (revision.profile.clone(), revision.number);
            fleet.profile_revisions.insert_mut(key, versioned(revision));
        }
        other => debug_assert!(false, "{:?} cannot be drafted", other.key()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no operation that can be drafted deletes another kind")]
fn delete(world: &mut World, fleet: &mut Fleet, key: &AnyKey) {
    let _was_there = match key {
        AnyKey::Namespaced(Key::Entity(name)) => fleet.entities.remove_mut(name),
        AnyKey::Namespaced(Key::Cluster(name)) => fleet.clusters.remove_mut(name),
        AnyKey::Namespaced(Key::EnsembleMembers(name)) => fleet.ensemble_members.remove_mut(name),
        AnyKey::Namespaced(Key::ClusterDiscovery(name)) => fleet.cluster_discoveries.remove_mut(name),
        AnyKey::Namespaced(Key::Schedule(name)) => fleet.schedules.remove_mut(name),
        AnyKey::Namespaced(Key::Reaction(name)) => fleet.reactions.remove_mut(name),
        AnyKey::Namespaced(Key::Sink(name)) => fleet.sinks.remove_mut(name),
        AnyKey::Namespaced(Key::SinkState(name)) => fleet.sink_states.remove_mut(name),
        AnyKey::Namespaced(Key::Node(name)) => fleet.nodes.remove_mut(name),
        AnyKey::Namespaced(Key::NodeParams(name)) => fleet.node_params.remove_mut(name),
        AnyKey::Namespaced(Key::Freeze(name)) => fleet.freezes.remove_mut(name),
        AnyKey::Global(GlobalKey::Freeze(name)) => world.freezes.remove_mut(name),
        AnyKey::Namespaced(Key::Pause(name)) => fleet.pauses.remove_mut(name),
        AnyKey::Namespaced(Key::Slot(name)) => fleet.slots.remove_mut(name),
        AnyKey::Namespaced(Key::Definition(id)) => fleet.definitions.remove_mut(id),
        AnyKey::Namespaced(Key::Param(key)) => fleet.params.remove_mut(key),
        AnyKey::Namespaced(Key::Profile(name)) => fleet.profiles.remove_mut(name),
        AnyKey::Namespaced(Key::ProfileRevision(name, number)) => {
            fleet.profile_revisions.remove_mut(&(name.clone(), *number))
        }
        // What goes with the manager of a cluster. No operation that follows in a draft reads it.
        AnyKey::Namespaced(
            Key::Presence(_)
            | Key::Report(_)
            | Key::Order(_)
            | Key::Facts(_)
            | Key::Probes(_)
            | Key::NodeMembers(_)
            | Key::Registrations(_)
            | Key::NotRunnable(_)
            | Key::Log(..)
            | Key::Run(_),
        ) => true,
        other => {
            debug_assert!(false, "{other:?} cannot be drafted");
            false
        }
    };
}
