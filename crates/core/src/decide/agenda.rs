//! The entities and clusters of one namespace that are due for a decision: those that were touched, whose time has come, or whose
//! surroundings changed since they were decided. The leader has one between its passes.

mod ensembles;

use alloc::collections::{BTreeMap, BTreeSet};

pub use self::ensembles::EnsembleAgenda;
use super::table::DeciderContext;
use crate::rollout::environment::Watch;
use crate::verdict::Verdict;
use crate::words::counter::Revision;
use crate::words::name::{ClusterName, EntityName};
use crate::words::time::Timestamp;

/// When each entity of a namespace is due again.
#[derive(Debug, Clone, Default)]
pub struct Agenda {
    /// What the last complete pass decided on; `None` before the first.
    decided: Option<Basis>,
    /// Revision at which the namespace was loaded, and that of the world when the last decision on data stores was complete.
    viewed: Option<(Revision, Revision)>,
    wakes: BTreeMap<EntityName, Timestamp>,
    by_time: BTreeSet<(Timestamp, EntityName)>,
    /// The ensembles of the namespace.
    pub ensembles: EnsembleAgenda,
}

/// What a pass decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    surroundings: Surroundings,
    revision: Revision,
    now: Timestamp,
}

/// What every decision reads besides the entity: after a change all of them are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Surroundings {
    loaded: Revision,
    freezes: Revision,
    watch: Watch,
    settled: bool,
}

impl Basis {
    /// The basis of a pass.
    #[must_use]
    pub fn of(context: &DeciderContext<'_>) -> Self {
        let DeciderContext { world, fleet, watch, now, .. } = *context;
        let surroundings = Surroundings {
            loaded: fleet.loaded,
            freezes: world.freezes_changed.max(fleet.freezes_changed),
            watch,
            settled: watch.settled() <= now,
        };
        Self { surroundings, revision: world.revision, now }
    }
}

impl Agenda {
    /// The entities that are due, by name. Costs time in proportion to these, or to all after a change of what all read.
    pub fn due(&mut self, context: &DeciderContext<'_>) -> BTreeSet<EntityName> {
        let (fleet, basis) = (context.fleet, Basis::of(context));
        // With a clock that was set back, a time that had come may lie ahead again.
        let last =
            self.decided.filter(|last| last.surroundings == basis.surroundings && last.now <= basis.now);
        let Some(last) = last else {
            self.wakes.retain(|entity, _| fleet.boards.contains_key(entity));
            self.by_time.retain(|(_, entity)| fleet.boards.contains_key(entity));
            return fleet.boards.keys().cloned().collect();
        };
        let touched = fleet.touched.after(last.revision).cloned();
        let awake =
            self.by_time.iter().take_while(|(at, _)| *at <= basis.now).map(|(_, entity)| entity.clone());
        let due: BTreeSet<EntityName> = touched.chain(awake).collect();
        let (due, gone): (BTreeSet<_>, BTreeSet<_>) =
            due.into_iter().partition(|entity| fleet.boards.contains_key(entity));
        for entity in gone {
            self.decided(&entity, None);
        }
        due
    }

    /// The clusters whose data stores are due for a decision, by name: those that were touched, or all after the namespace was loaded.
    pub fn due_views(&mut self, context: &DeciderContext<'_>) -> BTreeSet<ClusterName> {
        let fleet = context.fleet;
        match self.viewed {
            Some((loaded, revision)) if loaded == fleet.loaded => {
                fleet.touched_views.after(revision).cloned().collect()
            }
            Some(_) | None => fleet.clusters.keys().chain(fleet.cluster_views.keys()).cloned().collect(),
        }
    }

    /// The data stores of every due cluster were decided on, at this revision of the world.
    pub fn viewed(&mut self, loaded: Revision, revision: Revision) {
        self.viewed = Some((loaded, revision));
    }

    /// An entity was decided: it is due again at `wake`, or when it is touched. One for which something was written is due at
    /// once.
    pub fn decided(&mut self, entity: &EntityName, wake: Option<Timestamp>) {
        if let Some(before) = self.wakes.remove(entity) {
            self.by_time.remove(&(before, entity.clone()));
        }
        if let Some(at) = wake {
            self.wakes.insert(entity.clone(), at);
            self.by_time.insert((at, entity.clone()));
        }
    }

    /// Every due entity was decided, on this basis.
    pub fn complete(&mut self, basis: Basis) {
        self.decided = Some(basis);
    }

    /// An entity for which something would be written although it is not due; `None` if there is none, which is the law. Costs
    /// time in proportion to all targets.
    pub fn overlooked(
        &self,
        context: &DeciderContext<'_>,
        decide: fn(DeciderContext<'_>, &EntityName) -> Verdict,
    ) -> Option<EntityName> {
        let is_due = |entity: &EntityName| {
            let touched = context.fleet.touched.get(entity);
            let since = self.decided.map_or(Revision::ZERO, |basis| basis.revision);
            touched > Some(since) || self.wakes.get(entity).is_some_and(|at| *at <= context.now)
        };
        let overslept = |entity: &EntityName| {
            let Verdict { changesets, wake } = decide(*context, entity);
            let planned = self.wakes.get(entity).copied();
            !changesets.is_empty() || wake.is_some_and(|wake| planned.is_none_or(|planned| wake < planned))
        };
        context.fleet.boards.keys().find(|entity| !is_due(entity) && overslept(entity)).cloned()
    }

    /// The time at which an entity is due next without any change.
    #[must_use]
    pub fn wake(&self) -> Option<Timestamp> {
        let unsettled =
            self.decided.map(|basis| basis.surroundings).filter(|surroundings| !surroundings.settled);
        let settles = unsettled.map(|surroundings| surroundings.watch.settled());
        self.by_time.first().map(|(at, _)| *at).into_iter().chain(settles).min()
    }
}

#[cfg(test)]
mod tests;
