//! The service catalogue: instances, their addresses and states. Owns the counts; how instances are
//! registered, and how their checks run, is decided elsewhere.
//!
//! A value that is cheap to copy. Servers fold it from service registrations and presences, and send the
//! changes to agents; DNS, rendered files, needs and discovery over HTTP read it, on servers and on agents
//! alike.

mod address_counts;
mod digest;
mod host_domains;
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
use host_domains::HostDomains;
use instance::Instance;

/// Every service with its instances, and every node with its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalogue {
    services: Map<ServiceName, CatalogueService>,
    hosts: Map<NodeName, Arc<Addresses>>,
    domains: HostDomains,
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
    /// A service by name, including known ones without instances.
    #[must_use]
    pub fn service(&self, name: &ServiceName) -> Option<&CatalogueService> {
        self.services.get(name)
    }

    /// Every known service, in name order.
    pub fn services(&self) -> impl Iterator<Item = (&ServiceName, &CatalogueService)> {
        self.services.iter()
    }

    /// Addresses of a node.
    #[must_use]
    pub fn host(&self, name: &NodeName) -> Option<&Addresses> {
        self.hosts.get(name).map(|addresses| &**addresses)
    }

    /// Every node with its addresses, in name order.
    pub fn hosts(&self) -> impl Iterator<Item = (&NodeName, &Addresses)> {
        self.hosts.iter().map(|(name, addresses)| (name, &**addresses))
    }

    /// Whether the name of a node with addresses ends with a dot and `domain`.
    #[must_use]
    pub fn has_host_in(&self, domain: &str) -> bool {
        self.domains.contains(domain)
    }

    /// The nodes that have an address, in name order.
    pub fn owners(&self, address: IpAddr) -> impl Iterator<Item = &NodeName> {
        self.owners.get(&address).into_iter().flat_map(|owners| owners.iter())
    }

    /// The services that have an instance at an address, in name order.
    pub fn registrations(&self, address: IpAddr) -> impl Iterator<Item = &ServiceName> {
        self.registrations.at(address)
    }

    /// Sets a node's addresses; `None` removes the node, but not its instances.
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
            if self.hosts.remove_mut(name) {
                self.domains.remove(name);
            }
            return;
        };
        if !self.hosts.contains_key(name) {
            self.domains.add(name);
        }
        for address in addresses.all() {
            let mut owners = self.owners.get(&address).cloned().unwrap_or_default();
            owners.insert_mut(name.clone());
            self.owners.insert_mut(address, owners);
        }
        self.hosts.insert_mut(name.clone(), Arc::new(addresses));
    }

    /// Adds an instance, or replaces the one of the same node, service and name.
    pub fn put(&mut self, name: &ServiceName, instance: Instance) {
        self.hear_of(name);
        let Some(service) = self.services.get_mut(name) else { return };
        let key = (instance.node.clone(), instance.name.clone());
        let old = service.forget(&key);
        self.registrations.change(name, old.as_deref(), Some(&instance));
        service.functional += usize::from(instance.level.serves());
        service.instances.insert_mut(key, Arc::new(instance));
    }

    /// Makes a service unknown, unless it has instances.
    pub fn forget(&mut self, name: &ServiceName) {
        if self.services.get(name).is_some_and(|service| service.addressable() == 0) {
            self.services.remove_mut(name);
        }
    }

    /// Removes an instance. The service stays known by name.
    pub fn remove(&mut self, name: &ServiceName, node: &NodeName, instance: &InstanceName) {
        if let Some(service) = self.services.get_mut(name) {
            let old = service.forget(&(node.clone(), instance.clone()));
            self.registrations.change(name, old.as_deref(), None);
        }
    }

    /// A digest that changes when the functional instances of these services, or their addresses, ports, tags
    /// or metadata, change. The same on every machine.
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

    /// Makes a service known by name, with or without instances.
    pub fn hear_of(&mut self, name: &ServiceName) {
        if !self.services.contains_key(name) {
            self.services.insert_mut(name.clone(), CatalogueService::default());
        }
    }
}

impl CatalogueService {
    /// All instances in any state, by node and name.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values().map(|instance| &**instance)
    }

    /// One instance, by node and name.
    #[must_use]
    pub fn instance(&self, node: &NodeName, name: &InstanceName) -> Option<&Arc<Instance>> {
        self.instances.get(&(node.clone(), name.clone()))
    }

    /// Number of registered instances.
    #[must_use]
    pub fn addressable(&self) -> usize {
        self.instances.size()
    }

    /// Number of functional instances: passing or warning, on a node that reports.
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
