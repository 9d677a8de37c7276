//! Index of waits: entities and services that wait for services, grouped by kind, so that ten thousand nodes
//! that wait alike are one entry; and the cycles among them, which are searched for only when a kind appears
//! or disappears.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::successors;

use crate::records::wait_cycle::{CycleMember, Waiter};
use crate::words::map::Map;
use crate::words::map::Set;
use crate::words::name::{NodeName, ServiceName};

/// Most wait cycles that are reported: more have the same cause.
const MOST: usize = 64;

/// One kind of wait: an entity or service, with all the services it waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitEntry {
    /// The waiting entity or service.
    pub who: Waiter,
    /// The services it waits for; at least one.
    pub waits_for: BTreeSet<ServiceName>,
}

/// What a node contributes to the index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitCause {
    /// An entity or service on it waits.
    Waits(WaitEntry),
    /// An instance on it is not functional.
    Down {
        /// The service of the instance.
        service: ServiceName,
        /// The waits that must end first; empty if it may become functional without any.
        behind: BTreeSet<WaitEntry>,
    },
}

/// All waits, with the nodes on which they occur.
#[derive(Debug, Clone, Default)]
pub struct WaitIndex {
    facts: Map<WaitCause, Set<NodeName>>,
    of: Map<NodeName, Arc<BTreeSet<WaitCause>>>,
    wait_cycles: Arc<Vec<Vec<CycleMember>>>,
}

impl WaitIndex {
    /// The wait cycles: each once, beginning with the member whose name comes first.
    #[must_use]
    pub const fn wait_cycles(&self) -> &Arc<Vec<Vec<CycleMember>>> {
        &self.wait_cycles
    }

    /// Whether a member still waits on the node it is named with.
    #[must_use]
    pub fn has(&self, member: &CycleMember) -> bool {
        self.on(&member.node).any(|wait| wait.who == member.who && wait.waits_for.contains(&member.waits_for))
    }

    /// The waits on a node.
    pub fn on<'a>(&'a self, node: &NodeName) -> impl Iterator<Item = &'a WaitEntry> + use<'a> {
        self.of.get(node).into_iter().flat_map(|facts| facts.iter()).filter_map(|fact| match fact {
            WaitCause::Waits(wait) => Some(wait),
            WaitCause::Down { .. } => None,
        })
    }

    /// Sets what a node contributes, and searches for cycles if that added or removed a kind of wait.
    pub(super) fn put(&mut self, node: &NodeName, facts: BTreeSet<WaitCause>) {
        if self.note(node, facts) {
            self.look();
        }
    }

    /// As [`WaitIndex::put`], without the search; returns whether a kind appeared or disappeared, or its
    /// example node changed.
    pub(super) fn note(&mut self, node: &NodeName, facts: BTreeSet<WaitCause>) -> bool {
        let before = self.of.get(node).cloned().unwrap_or_default();
        if *before == facts {
            return false;
        }
        let mut turned = false;
        for over in before.difference(&facts) {
            let mut nodes = self.facts.get(over).cloned().unwrap_or_default();
            turned |= nodes.first() == Some(node);
            nodes.remove_mut(node);
            if nodes.is_empty() {
                self.facts.remove_mut(over);
            } else {
                self.facts.insert_mut(over.clone(), nodes);
            }
        }
        for new in facts.difference(&before) {
            let mut nodes = self.facts.get(new).cloned().unwrap_or_default();
            nodes.insert_mut(node.clone());
            turned |= nodes.first() == Some(node);
            self.facts.insert_mut(new.clone(), nodes);
        }
        if facts.is_empty() {
            self.of.remove_mut(node);
        } else {
            self.of.insert_mut(node.clone(), Arc::new(facts));
        }
        turned
    }

    /// Searches for cycles.
    pub(super) fn look(&mut self) {
        let found = Graph::of(&self.facts).wait_cycles();
        let members = |path: Vec<(&WaitEntry, &ServiceName)>| {
            let member = |(wait, service): (&WaitEntry, &ServiceName)| {
                let node =
                    self.facts.get(&WaitCause::Waits(wait.clone())).and_then(|nodes| nodes.first().cloned());
                node.map(|node| CycleMember { who: wait.who.clone(), node, waits_for: service.clone() })
            };
            path.into_iter().filter_map(member).collect()
        };
        self.wait_cycles = Arc::new(found.into_iter().map(members).collect());
    }
}

/// A path through the graph: each wait with the service it waits for.
type Path<'a> = Vec<(&'a WaitEntry, &'a ServiceName)>;

/// Waits that cannot end, whatever happens to others, and the services they are stuck at.
struct Graph<'a> {
    stuck: BTreeSet<&'a WaitEntry>,
    down: BTreeMap<&'a ServiceName, Vec<&'a BTreeSet<WaitEntry>>>,
}

impl<'a> Graph<'a> {
    fn of(facts: &'a Map<WaitCause, Set<NodeName>>) -> Self {
        let mut graph = Self { stuck: BTreeSet::new(), down: BTreeMap::new() };
        for fact in facts.keys() {
            match fact {
                WaitCause::Waits(wait) => drop(graph.stuck.insert(wait)),
                WaitCause::Down { service, behind } => graph.down.entry(service).or_default().push(behind),
            }
        }
        // A wait for nothing that is stuck can end, and then those that depend on it, until no further one
        // can.
        loop {
            let stays = |wait: &&WaitEntry| wait.waits_for.iter().any(|service| graph.is_stuck_at(service));
            let stuck: BTreeSet<&WaitEntry> = graph.stuck.iter().copied().filter(stays).collect();
            if stuck.len() == graph.stuck.len() {
                return graph;
            }
            graph.stuck = stuck;
        }
    }

    /// Whether every instance of a service that is not functional depends on a stuck wait. A service without
    /// registrations may be registered yet.
    fn is_stuck_at(&self, service: &ServiceName) -> bool {
        let down = self.down.get(service);
        down.is_some_and(|all| all.iter().all(|behind| behind.iter().any(|wait| self.stuck.contains(wait))))
    }

    /// The stuck waits that one depends on, each with the service.
    fn next(&self, wait: &'a WaitEntry) -> impl Iterator<Item = (&'a ServiceName, &'a WaitEntry)> {
        let waits_for = wait.waits_for.iter().filter(|service| self.is_stuck_at(service));
        waits_for.flat_map(move |service| {
            let behind = self.down.get(service).into_iter().flatten().flat_map(|behind| behind.iter());
            behind.filter(|wait| self.stuck.contains(wait)).map(move |wait| (service, wait))
        })
    }

    /// The shortest cycle of every stuck wait that is in one, each cycle once, and beginning with its first
    /// member.
    fn wait_cycles(&self) -> Vec<Path<'a>> {
        let mut found: BTreeMap<Vec<(&Waiter, &ServiceName)>, Path<'a>> = BTreeMap::new();
        let mut named: BTreeSet<&WaitEntry> = BTreeSet::new();
        for start in &self.stuck {
            if named.contains(start) {
                continue;
            }
            let Some(mut path) = self.environment(start) else { continue };
            named.extend(path.iter().map(|(wait, _)| *wait));
            let first = path.iter().enumerate().min_by_key(|(_, of)| **of).map_or(0, |(at, _)| at);
            path.rotate_left(first);
            found.entry(path.iter().map(|(wait, service)| (&wait.who, *service)).collect()).or_insert(path);
            if found.len() >= MOST {
                break;
            }
        }
        found.into_values().collect()
    }

    /// The shortest path from a wait back to itself.
    fn environment(&self, start: &'a WaitEntry) -> Option<Path<'a>> {
        let mut from: BTreeMap<&WaitEntry, (&'a WaitEntry, &'a ServiceName)> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for (service, next) in self.next(at) {
                if next == start {
                    let back = |(wait, _): &(&'a WaitEntry, _)| from.get(wait).copied();
                    let mut path: Path<'a> = successors(Some((at, service)), back).collect();
                    path.reverse();
                    return Some(path);
                }
                if !from.contains_key(next) {
                    from.insert(next, (at, service));
                    queue.push_back(next);
                }
            }
        }
        None
    }
}
