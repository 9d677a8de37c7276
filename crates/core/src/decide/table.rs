//! The table of the deciders that the leader runs in each namespace, in this order. A new decider adds one line.

use super::{
    clusters, drain, ensembles, external, order, probes, retention, rollout, runs, services, silence, slots,
    views, wait_cycles,
};
use crate::rollout::environment::{RolloutEnvironment, Watch};
use crate::verdict::Verdict;
use crate::words::counter::Term;
use crate::words::name::{ClusterName, EnsembleName, EntityName, Namespace};
use crate::words::time::{Span, Timestamp};
use crate::world::World;
use crate::world::fleet::Fleet;

/// What a decider may read: one namespace of the world, the time, and the leader's settings.
#[derive(Debug, Clone, Copy)]
pub struct DeciderContext<'a> {
    /// All namespaces, at one revision.
    pub world: &'a World,
    /// The namespace to decide on.
    pub namespace: &'a Namespace,
    /// That namespace's part of `world`.
    pub fleet: &'a Fleet,
    /// The leadership term that writes the verdicts.
    pub term: Term,
    /// Since when this leadership could hear every target.
    pub watch: Watch,
    /// What is kept, and for how long.
    pub kept: RetentionLimits,
    /// Time of the decision.
    pub now: Timestamp,
}

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Events per namespace; the oldest are deleted first.
    pub events: u64,
    /// How long a service without instances stays known.
    pub services: Span,
    /// How long a run of a workflow is kept after its end.
    pub runs: Span,
}

impl Default for RetentionLimits {
    fn default() -> Self {
        Self { events: retention::EVENTS_KEPT, services: services::SERVICES_KEPT, runs: runs::RUNS_KEPT }
    }
}

/// A decider of the table.
#[derive(Debug, Clone, Copy)]
pub struct Decider {
    /// Name of its module.
    pub name: &'static str,
    /// What it decides on at once.
    pub decide: Decide,
}

/// A decider's function.
#[derive(Debug, Clone, Copy)]
pub enum Decide {
    /// Decides on a whole namespace in each pass: its indexes say what is due.
    Namespace(fn(DeciderContext<'_>) -> Verdict),
    /// Decides on one entity, when it is due. The rest of the verdict is dropped once the entity's record changes: a pause, an
    /// abort or a deletion meanwhile stops it.
    Entity(fn(DeciderContext<'_>, &EntityName) -> Verdict),
    /// Decides on the data stores of one cluster, when they are due. It waits for no time.
    Cluster(fn(DeciderContext<'_>, &ClusterName) -> Verdict),
    /// Decides on one ensemble, when it is due.
    Ensemble(fn(DeciderContext<'_>, &EnsembleName) -> Verdict),
}

/// The deciders in the order in which they run; each reads a world that includes the writes of those before
/// it.
pub const DECIDERS: [Decider; 14] = [
    whole("external", |of| external::decide(of.fleet, of.watch.since, of.now)),
    whole("silence", |of| silence::decide(of.fleet, of.watch.settled(), of.now)),
    whole("probes", |of| probes::decide(of.fleet)),
    whole("wait_cycles", |of| wait_cycles::decide(of.fleet, of.now)),
    whole("slots", |of| slots::decide(of.fleet, of.now)),
    whole("clusters", |of| clusters::decide(of.fleet, of.watch.settled(), of.now)),
    Decider { name: "views", decide: Decide::Cluster(|of, name| views::decide(of.fleet, name, of.now)) },
    Decider {
        name: "ensembles",
        decide: Decide::Ensemble(|of, name| {
            let stop = of.world.stop(of.fleet, of.now);
            ensembles::verdict::decide(of.fleet, name, stop.as_deref(), (of.watch, of.now))
        }),
    },
    whole("drain", |of| drain::decide(of.fleet, of.watch.settled(), of.now)),
    Decider { name: "rollout", decide: Decide::Entity(rollout_of) },
    whole("order", |of| order::decide(of.fleet, of.term)),
    whole("retention", |of| retention::decide(of.fleet, of.kept.events)),
    whole("runs", |of| runs::decide(of.fleet, of.kept.runs, of.now)),
    whole("services", |of| services::decide(of.fleet, of.kept.services, of.now)),
];

const fn whole(name: &'static str, decide: fn(DeciderContext<'_>) -> Verdict) -> Decider {
    Decider { name, decide: Decide::Namespace(decide) }
}

fn rollout_of(of: DeciderContext<'_>, name: &EntityName) -> Verdict {
    let Some(board) = of.fleet.boards.get(name) else { return Verdict::default() };
    let environment = RolloutEnvironment { watch: of.watch, ..of.world.environment(of.namespace, name) };
    rollout::decide(board, &environment, of.now).into_verdict(name)
}
