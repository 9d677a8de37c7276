//! The table of the deciders that the leader runs in each namespace, in this order. A new decider adds one line.

use alloc::boxed::Box;
use core::iter::once;

use super::{drain, external, order, retention, rollout, services, silence, slots, wait_cycles};
use crate::records::key::Key;
use crate::rollout::environment::{RolloutEnvironment, Watch};
use crate::verdict::Verdict;
use crate::words::counter::Term;
use crate::words::name::Namespace;
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
}

impl Default for RetentionLimits {
    fn default() -> Self {
        Self { events: retention::EVENTS_KEPT, services: services::SERVICES_KEPT }
    }
}

/// A verdict, and the record that must not change while it is committed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// The rest of the verdict is dropped once this record changes.
    pub guard: Option<Key>,
    /// What is to be written.
    pub verdict: Verdict,
}

/// Decisions, each computed when the iterator reaches it.
pub type Decisions<'a> = Box<dyn Iterator<Item = Decision> + Send + 'a>;

/// A decider of the table.
#[derive(Debug, Clone, Copy)]
pub struct Decider {
    /// Name of its module.
    pub name: &'static str,
    /// Decides on one namespace.
    pub decide: for<'a> fn(DeciderContext<'a>) -> Decisions<'a>,
}

/// The deciders in the order in which they run; each reads a world that includes the writes of those before
/// it.
pub const DECIDERS: [Decider; 9] = [
    Decider { name: "external", decide: |of| one(external::decide(of.fleet, of.watch.since, of.now)) },
    Decider { name: "silence", decide: |of| one(silence::decide(of.fleet, of.watch.settled(), of.now)) },
    Decider { name: "wait_cycles", decide: |of| one(wait_cycles::decide(of.fleet, of.now)) },
    Decider { name: "slots", decide: |of| one(slots::decide(of.fleet, of.now)) },
    Decider { name: "drain", decide: |of| one(drain::decide(of.fleet, of.watch.settled(), of.now)) },
    Decider { name: "rollout", decide: rollouts },
    Decider { name: "order", decide: |of| one(order::decide(of.fleet, of.term)) },
    Decider { name: "retention", decide: |of| one(retention::decide(of.fleet, of.kept.events)) },
    Decider { name: "services", decide: |of| one(services::decide(of.fleet, of.kept.services, of.now)) },
];

fn one<'a>(verdict: Verdict) -> Decisions<'a> {
    Box::new(once(Decision { guard: None, verdict }))
}

/// One decision per entity. A pause, an abort or a deletion of the entity meanwhile stops the rest of its
/// verdict.
fn rollouts(of: DeciderContext<'_>) -> Decisions<'_> {
    Box::new(of.fleet.boards.iter().map(move |(name, board)| {
        let environment = RolloutEnvironment { watch: of.watch, ..of.world.environment(of.namespace, name) };
        let verdict = rollout::decide(board, &environment, of.now).into_verdict(name);
        Decision { guard: Some(Key::Entity(name.clone())), verdict }
    }))
}
