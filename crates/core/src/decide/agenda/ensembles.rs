//! The ensembles of a namespace that are due for a decision.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::decide::table::DeciderContext;
use crate::rollout::environment::Watch;
use crate::words::counter::Revision;
use crate::words::name::EnsembleName;
use crate::words::time::{Span, Timestamp};

/// Shortest time between two decisions on an ensemble of which nothing changed but the nodes that might have a member: each reads all nodes,
/// and while a fleet comes back every change of a node would be one.
const NODES_INTERVAL: Span = Span::from_secs(1);

/// When each ensemble is due again.
#[derive(Debug, Clone, Default)]
pub struct EnsembleAgenda {
    decided: BTreeMap<EnsembleName, Decided>,
}

/// The last decision on an ensemble.
#[derive(Debug, Clone, Copy)]
struct Decided {
    loaded: Revision,
    watch: Watch,
    revision: Revision,
    at: Timestamp,
    wake: Option<Timestamp>,
}

impl EnsembleAgenda {
    /// The ensembles that are due. Costs time in proportion to the ensembles.
    pub fn due(&mut self, context: &DeciderContext<'_>) -> BTreeSet<EnsembleName> {
        let fleet = context.fleet;
        let names: BTreeSet<&EnsembleName> =
            fleet.ensembles.keys().chain(fleet.ensemble_members.keys()).collect();
        self.decided.retain(|name, _| names.contains(name));
        names.into_iter().filter(|name| self.is_due(context, name)).cloned().collect()
    }

    fn is_due(&self, context: &DeciderContext<'_>, name: &EnsembleName) -> bool {
        let DeciderContext { world, fleet, watch, now, .. } = *context;
        let Some(last) = self.decided.get(name) else { return true };
        // With a clock that was set back, a time that had come may lie ahead again.
        let is_anew = last.loaded != fleet.loaded || last.watch != watch || now < last.at;
        let is_touched = fleet.touched_ensembles.get(name) > Some(last.revision)
            || fleet.freezes_changed.max(world.freezes_changed) > last.revision;
        let is_awake = last.wake.is_some_and(|wake| wake <= now);
        let nodes_changed = fleet.candidates_changed > last.revision;
        is_anew || is_touched || is_awake || nodes_changed && last.at.plus(NODES_INTERVAL) <= now
    }

    /// An ensemble was decided on: it is due again at `wake`, or when something changes.
    pub fn decided(&mut self, context: &DeciderContext<'_>, name: &EnsembleName, wake: Option<Timestamp>) {
        let DeciderContext { world, fleet, watch, now, .. } = *context;
        let decided = Decided { loaded: fleet.loaded, watch, revision: world.revision, at: now, wake };
        self.decided.insert(name.clone(), decided);
    }

    /// The time at which one is due next without any change.
    #[must_use]
    pub fn wake(&self, context: &DeciderContext<'_>) -> Option<Timestamp> {
        let of = |last: &Decided| {
            let nodes_changed = context.fleet.candidates_changed > last.revision;
            let nodes = nodes_changed.then(|| last.at.plus(NODES_INTERVAL));
            last.wake.into_iter().chain(nodes).min()
        };
        self.decided.values().filter_map(of).min()
    }
}
