//! The catalogue in Consul's shapes, as its own clients read them. Only what has a counterpart here is written: a field that
//! is left out is zero or empty to them. Nothing here is read back, and nothing here is ours to change.

pub mod health;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance::Instance;
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{Datacentre, NodeName, ServiceName, Tag};
use serde::Serialize;

use crate::shape::map_from;

/// Addresses by what they are for.
type Tagged<T> = BTreeMap<&'static str, T>;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Node {
    /// Its name once more: it is what identifies it here.
    #[serde(rename = "ID")]
    pub id: String,
    /// Its name.
    pub node: String,
    /// Its address; empty when none is known.
    pub address: String,
    /// Where it is.
    pub datacenter: String,
    /// Its address by version.
    pub tagged_addresses: Tagged<String>,
    /// Nothing: nodes say nothing of themselves in the catalogue.
    pub meta: BTreeMap<String, String>,
}

/// An instance beside its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Service {
    /// Which one among those of its node.
    #[serde(rename = "ID")]
    pub id: String,
    /// Its service.
    pub service: String,
    /// What its like is told apart by.
    pub tags: Vec<String>,
    /// Where it is reached; its node's address when empty.
    pub address: String,
    /// Its address by version.
    pub tagged_addresses: Tagged<Endpoint>,
    /// Its port; 0 for none.
    pub port: u16,
    /// Whatever its users want to know besides.
    pub meta: BTreeMap<String, String>,
    /// Always equal.
    pub weights: Weights,
    /// Never.
    pub enable_tag_override: bool,
}

/// Where an instance is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Endpoint {
    /// The address.
    pub address: String,
    /// The port.
    pub port: u16,
}

/// How much an instance should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Weights {
    /// While it passes.
    pub passing: u32,
    /// While it warns.
    pub warning: u32,
}

/// An instance with its node in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CatalogService {
    /// Its node's name.
    #[serde(rename = "ID")]
    pub id: String,
    /// Its node's name.
    pub node: String,
    /// Its node's address.
    pub address: String,
    /// Where its node is.
    pub datacenter: String,
    /// Its node's address by version.
    pub tagged_addresses: Tagged<String>,
    /// Nothing.
    pub node_meta: BTreeMap<String, String>,
    /// Which one among those of its node.
    #[serde(rename = "ServiceID")]
    pub service_id: String,
    /// Its service.
    pub service_name: String,
    /// What its like is told apart by.
    pub service_tags: Vec<String>,
    /// Where it is reached.
    pub service_address: String,
    /// Its address by version.
    pub service_tagged_addresses: Tagged<Endpoint>,
    /// Its port; 0 for none.
    pub service_port: u16,
    /// Whatever its users want to know besides.
    pub service_meta: BTreeMap<String, String>,
    /// Always equal.
    pub service_weights: Weights,
    /// Never.
    pub service_enable_tag_override: bool,
}

/// A node with what it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NodeServices {
    /// The node.
    pub node: Node,
    /// What it offers, by id.
    pub services: BTreeMap<String, Service>,
}

/// A catalogue as it is told in a datacentre.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// What the one datacentre there is is called.
    pub datacentre: &'a Datacentre,
}

impl View<'_> {
    /// Every service that somebody offers, with all tags.
    #[must_use]
    pub fn services(&self) -> BTreeMap<String, BTreeSet<String>> {
        let offered = self.catalogue.services().filter(|(_, service)| service.addressable() > 0);
        let tags = |service: &bellwether_core::catalogue::CatalogueService| {
            service.instances().flat_map(|instance| &instance.tags).map(ToString::to_string).collect()
        };
        map_from(offered.map(|(name, service)| (name.to_string(), tags(service))))
    }

    /// The instances of a service that have all of `tags`.
    #[must_use]
    pub fn service(&self, name: &ServiceName, tags: &[Tag]) -> Vec<CatalogService> {
        self.instances(name, tags).map(|instance| self.in_one(name, instance)).collect()
    }

    /// Every node.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        self.catalogue.hosts().map(|(name, _)| self.node(name)).collect()
    }

    /// A node with what it offers; none that is not known.
    #[must_use]
    pub fn node_services(&self, name: &NodeName) -> Option<NodeServices> {
        let offered = self.offered_by(name);
        let services = map_from(
            offered.map(|(service, instance)| (instance.name.to_string(), service_of(service, instance))),
        );
        let known = self.catalogue.host(name).is_some() || !services.is_empty();
        known.then(|| NodeServices { node: self.node(name), services })
    }

    fn instances(&self, name: &ServiceName, tags: &[Tag]) -> impl Iterator<Item = &Instance> {
        let instances = self.catalogue.service(name).into_iter().flat_map(|service| service.instances());
        instances.filter(move |instance| tags.iter().all(|tag| instance.tags.contains(tag)))
    }

    fn offered_by(&self, name: &NodeName) -> impl Iterator<Item = (&ServiceName, &Instance)> {
        let all = self.catalogue.services();
        let all = all.flat_map(|(service, known)| known.instances().map(move |instance| (service, instance)));
        all.filter(move |(_, instance)| instance.node == *name)
    }

    fn node(&self, name: &NodeName) -> Node {
        let addresses = self.catalogue.host(name);
        Node {
            id: name.to_string(),
            node: name.to_string(),
            address: preferred(addresses),
            datacenter: self.datacentre.to_string(),
            tagged_addresses: addresses
                .map(|addresses| tagged(addresses, |at| at.to_string()))
                .unwrap_or_default(),
            meta: BTreeMap::new(),
        }
    }

    fn in_one(&self, name: &ServiceName, instance: &Instance) -> CatalogService {
        let (node, service) = (self.node(&instance.node), service_of(name, instance));
        CatalogService {
            id: node.id,
            node: node.node,
            address: node.address,
            datacenter: node.datacenter,
            tagged_addresses: node.tagged_addresses,
            node_meta: node.meta,
            service_id: service.id,
            service_name: service.service,
            service_tags: service.tags,
            service_address: service.address,
            service_tagged_addresses: service.tagged_addresses,
            service_port: service.port,
            service_meta: service.meta,
            service_weights: service.weights,
            service_enable_tag_override: service.enable_tag_override,
        }
    }
}

fn service_of(name: &ServiceName, instance: &Instance) -> Service {
    let port = instance.port.unwrap_or_default();
    Service {
        id: instance.name.to_string(),
        service: name.to_string(),
        tags: instance.tags.iter().map(ToString::to_string).collect(),
        address: preferred(Some(&instance.addresses)),
        tagged_addresses: tagged(&instance.addresses, |at| Endpoint { address: at.to_string(), port }),
        port,
        meta: instance.meta.clone(),
        weights: Weights { passing: 1, warning: 1 },
        enable_tag_override: false,
    }
}

fn preferred(addresses: Option<&Addresses>) -> String {
    addresses.and_then(Addresses::preferred).map(|address| address.to_string()).unwrap_or_default()
}

fn tagged<T>(addresses: &Addresses, say: impl Fn(IpAddr) -> T) -> Tagged<T> {
    let first = |wanted: fn(&IpAddr) -> bool| addresses.all().find(wanted);
    let by_version = [("lan_ipv4", first(IpAddr::is_ipv4)), ("lan_ipv6", first(IpAddr::is_ipv6))];
    map_from(by_version.into_iter().filter_map(|(name, address)| Some((name, say(address?)))))
}
