//! The catalogue: who offers what, at which addresses, and whether it serves. Owns counting; never how an instance came to
//! be published, nor how its checks are run.
//!
//! A value that is cheap to copy. Servers fold it from what nodes offer and whether they are heard from, and send agents
//! what changed; DNS, files, needs and discovery over HTTP read it, on servers and on agents alike.

mod address_counts;
mod digest;
pub mod instance;
pub mod log;
pub mod need;
pub mod selection;

#[cfg(test)]
mod tests;

use alloc::sync::Arc;
use core::net::IpAddr;

use rpds::RedBlackTreeSetSync;

use crate::words::addresses::Addresses;
use crate::words::digest::Digest;
use crate::words::map::Map;
use crate::words::name::{InstanceName, NodeName, ServiceName};
use address_counts::AddressCounts;
use instance::Instance;

/// Who offers what, at which addresses, and whether it serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    services: Map<ServiceName, CatalogueService>,
    hosts: Map<NodeName, Arc<Addresses>>,
    owners: Map<IpAddr, RedBlackTreeSetSync<NodeName>>,
    registrations: AddressCounts,
}

/// One service: its instances, by node and name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogueService {
    instances: Map<(NodeName, InstanceName), Arc<Instance>>,
    functional: usize,
}

impl Catalogue {
    /// A service; also one that was heard of and that nobody offers now.
    #[must_use]
    pub fn service(&self, name: &ServiceName) -> Option<&CatalogueService> {
        self.services.get(name)
    }

    /// Every service that was heard of, in name order.
    pub fn services(&self) -> impl Iterator<Item = (&ServiceName, &CatalogueService)> {
        self.services.iter()
    }

    /// A node's own addresses.
    #[must_use]
    pub fn host(&self, name: &NodeName) -> Option<&Addresses> {
        self.hosts.get(name).map(|addresses| &**addresses)
    }

    /// Every node, in name order.
    pub fn hosts(&self) -> impl Iterator<Item = (&NodeName, &Addresses)> {
        self.hosts.iter().map(|(name, addresses)| (name, &**addresses))
    }

    /// The nodes that have an address, in name order.
    pub fn owners(&self, address: IpAddr) -> impl Iterator<Item = &NodeName> {
        self.owners.get(&address).into_iter().flat_map(|owners| owners.iter())
    }

    /// The services that have an instance at an address, in name order.
    pub fn registrations(&self, address: IpAddr) -> impl Iterator<Item = &ServiceName> {
        self.registrations.at(address)
    }

    /// Remembers a node's addresses in place of those it had; `None` forgets the node, not what it offers.
    pub fn set_host(&mut self, name: &NodeName, addresses: Option<Addresses>) {
        if let Some(old) = self.hosts.get(name).cloned() {
            for address in old.all() {
                let Some(owners) = self.owners.get_mut(&address) else { continue };
                owners.remove_mut(name);
                if owners.is_empty() {
                    self.owners.remove_mut(&address);
                }
            }
        }
        let Some(addresses) = addresses else {
            self.hosts.remove_mut(name);
            return;
        };
        for address in addresses.all() {
            let mut owners = self.owners.get(&address).cloned().unwrap_or_default();
            owners.insert_mut(name.clone());
            self.owners.insert_mut(address, owners);
        }
        self.hosts.insert_mut(name.clone(), Arc::new(addresses));
    }

    /// Takes in an instance, in place of what its node offered under its name for the service.
    pub fn put(&mut self, name: &ServiceName, instance: Instance) {
        self.hear_of(name);
        let Some(service) = self.services.get_mut(name) else { return };
        let key = (instance.node.clone(), instance.name.clone());
        let old = service.forget(&key);
        self.registrations.change(name, old.as_deref(), Some(&instance));
        service.functional += usize::from(instance.level.serves());
        service.instances.insert_mut(key, Arc::new(instance));
    }

    /// Takes an instance away. The service stays known by its name.
    pub fn remove(&mut self, name: &ServiceName, node: &NodeName, instance: &InstanceName) {
        if let Some(service) = self.services.get_mut(name) {
            let old = service.forget(&(node.clone(), instance.clone()));
            self.registrations.change(name, old.as_deref(), None);
        }
    }

    /// A number that changes when who serves for these services, or where, changed. The same on every machine.
    #[must_use]
    pub fn digest<'a>(&self, services: impl Iterator<Item = &'a ServiceName>) -> u64 {
        let mut digest = Digest::default();
        for name in services {
            digest.add(name.as_str().as_bytes());
            let instances = self.service(name).into_iter().flat_map(CatalogueService::instances);
            instances
                .filter(|instance| instance.level.serves())
                .for_each(|instance| digest.instance(instance));
        }
        digest.finish()
    }

    /// Makes a service's name known, whether or not somebody offers it.
    pub fn hear_of(&mut self, name: &ServiceName) {
        if !self.services.contains_key(name) {
            self.services.insert_mut(name.clone(), CatalogueService::default());
        }
    }
}

impl CatalogueService {
    /// All instances, whether or not they serve, by node and name.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values().map(|instance| &**instance)
    }

    /// One of them.
    #[must_use]
    pub fn instance(&self, node: &NodeName, name: &InstanceName) -> Option<&Arc<Instance>> {
        self.instances.get(&(node.clone(), name.clone()))
    }

    /// How many are registered.
    #[must_use]
    pub fn addressable(&self) -> usize {
        self.instances.size()
    }

    /// How many serve: their checks pass, or only warn, and their node is heard from.
    #[must_use]
    pub const fn functional(&self) -> usize {
        self.functional
    }

    fn forget(&mut self, key: &(NodeName, InstanceName)) -> Option<Arc<Instance>> {
        let old = self.instances.get(key).cloned()?;
        self.functional -= usize::from(old.level.serves());
        self.instances.remove_mut(key);
        Some(old)
    }
}
