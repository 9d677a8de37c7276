//! Changes of a catalogue, in order: copies of the catalogue receive the changes they lack.

use alloc::sync::Arc;

use super::Catalogue;
use super::instance::Instance;
use crate::words::addresses::Addresses;
use crate::words::counter::Revision;
use crate::words::map::Map;
use crate::words::name::{InstanceName, NodeName, ServiceName};

/// Most changes kept; a copy that is further behind receives the whole catalogue.
pub const KEPT: usize = 4_096;

/// One change of a catalogue. Applying one twice has no further effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogueChange {
    /// A service became known by name.
    ServiceKnown(ServiceName),
    /// A service is not known by name any more.
    ServiceForgotten(ServiceName),
    /// A node's addresses; `None` when it was removed.
    Host(NodeName, Option<Arc<Addresses>>),
    /// An instance was registered or changed.
    Put(ServiceName, Arc<Instance>),
    /// An instance was deregistered.
    Removed(ServiceName, NodeName, InstanceName),
}

impl CatalogueChange {
    /// The service whose instances it changes.
    #[must_use]
    pub const fn service(&self) -> Option<&ServiceName> {
        match self {
            Self::ServiceKnown(service)
            | Self::ServiceForgotten(service)
            | Self::Removed(service, _, _)
            | Self::Put(service, _) => Some(service),
            Self::Host(_, _) => None,
        }
    }
}

/// The newest changes, and the revision from which they are complete.
#[derive(Debug, Clone, Default)]
pub struct CatalogueLog {
    changes: Map<u64, (Revision, CatalogueChange)>,
    next: u64,
    /// A copy at this revision or later lacks nothing but the changes kept here.
    whole_after: Revision,
    last: Revision,
}

impl CatalogueLog {
    /// An empty log, of a catalogue whose last change was at `last`.
    #[must_use]
    pub fn begin(last: Revision) -> Self {
        Self { whole_after: last, last, ..Self::default() }
    }

    /// Adds a change made at `revision`, which must not be lower than the last one.
    pub fn add(&mut self, revision: Revision, change: CatalogueChange) {
        self.last = self.last.max(revision);
        self.changes.insert_mut(self.next, (revision, change));
        self.next = self.next.wrapping_add(1);
        if self.changes.size() > KEPT
            && let Some((first, (gone, _))) = self.changes.first().map(|(first, kept)| (*first, kept.clone()))
        {
            self.whole_after = gone;
            self.changes.remove_mut(&first);
        }
    }

    /// The revision of the last change.
    #[must_use]
    pub const fn last(&self) -> Revision {
        self.last
    }

    /// The changes after `seen`; `None` when they are no longer complete, and the whole catalogue must be
    /// sent.
    #[must_use]
    pub fn after(&self, seen: Revision) -> Option<impl Iterator<Item = &CatalogueChange>> {
        let known = seen >= self.whole_after;
        known.then(|| self.changes.values().filter(move |(at, _)| *at > seen).map(|(_, change)| change))
    }
}

impl Catalogue {
    /// Applies a change.
    pub fn take(&mut self, change: &CatalogueChange) {
        match change {
            CatalogueChange::ServiceKnown(service) => self.hear_of(service),
            CatalogueChange::ServiceForgotten(service) => self.forget(service),
            CatalogueChange::Host(node, addresses) => {
                self.set_host(node, addresses.as_ref().map(|addresses| Addresses::clone(addresses)));
            }
            CatalogueChange::Put(service, instance) => self.put(service, Instance::clone(instance)),
            CatalogueChange::Removed(service, node, instance) => self.remove(service, node, instance),
        }
    }

    /// The whole catalogue, as changes of an empty one.
    pub fn whole(&self) -> impl Iterator<Item = CatalogueChange> {
        let hosts = self.hosts.iter().map(|(node, at)| CatalogueChange::Host(node.clone(), Some(at.clone())));
        let services = self.services.iter().flat_map(|(name, service)| {
            let instances = service.instances.values();
            let instances = instances.map(|instance| CatalogueChange::Put(name.clone(), instance.clone()));
            core::iter::once(CatalogueChange::ServiceKnown(name.clone())).chain(instances)
        });
        hosts.chain(services)
    }
}
