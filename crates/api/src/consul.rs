//! The catalogue in the JSON shapes of Consul's API. Only fields that have a counterpart are written;
//! Consul's clients read an absent field as zero or empty. These shapes are only written, and Consul defines
//! them.

pub mod health;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance::Instance;
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{Datacentre, NodeName, ServiceName, Tag};
use serde::Serialize;

use crate::shape::map_from;

/// Addresses by purpose.
type Tagged<T> = BTreeMap<&'static str, T>;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Node {
    /// Node ID: the node name.
    #[serde(rename = "ID")]
    pub id: String,
    /// Node name.
    pub node: String,
    /// Preferred address; empty if none is known.
    pub address: String,
    /// Datacentre name.
    pub datacenter: String,
    /// Addresses by IP version.
    pub tagged_addresses: Tagged<String>,
    /// Always empty.
    pub meta: BTreeMap<String, String>,
}

/// A service instance, within the answer about its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Service {
    /// Instance name.
    #[serde(rename = "ID")]
    pub id: String,
    /// Service name.
    pub service: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Address; empty if it is that of its node.
    pub address: String,
    /// Addresses by IP version.
    pub tagged_addresses: Tagged<Endpoint>,
    /// Port; 0 if there is none.
    pub port: u16,
    /// Metadata.
    pub meta: BTreeMap<String, String>,
    /// Always equal.
    pub weights: Weights,
    /// Always `false`.
    pub enable_tag_override: bool,
}

/// The address of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Endpoint {
    /// The address.
    pub address: String,
    /// The port.
    pub port: u16,
}

/// Weights of an instance for load balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Weights {
    /// Weight while its checks pass.
    pub passing: u32,
    /// Weight while a check warns.
    pub warning: u32,
}

/// A service instance and its node in one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CatalogService {
    /// Node ID: the node name.
    #[serde(rename = "ID")]
    pub id: String,
    /// Node name.
    pub node: String,
    /// Preferred address of the node.
    pub address: String,
    /// Datacentre name.
    pub datacenter: String,
    /// Addresses of the node by IP version.
    pub tagged_addresses: Tagged<String>,
    /// Always empty.
    pub node_meta: BTreeMap<String, String>,
    /// Instance name.
    #[serde(rename = "ServiceID")]
    pub service_id: String,
    /// Service name.
    pub service_name: String,
    /// Tags.
    pub service_tags: Vec<String>,
    /// Address of the instance.
    pub service_address: String,
    /// Addresses of the instance by IP version.
    pub service_tagged_addresses: Tagged<Endpoint>,
    /// Port; 0 if there is none.
    pub service_port: u16,
    /// Metadata.
    pub service_meta: BTreeMap<String, String>,
    /// Always equal.
    pub service_weights: Weights,
    /// Always `false`.
    pub service_enable_tag_override: bool,
}

/// A node with its service instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NodeServices {
    /// The node.
    pub node: Node,
    /// Its service instances, by ID.
    pub services: BTreeMap<String, Service>,
}

/// The catalogue as one Consul datacentre.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The catalogue.
    pub catalogue: &'a Catalogue,
    /// Name of the datacentre.
    pub datacentre: &'a Datacentre,
}

impl View<'_> {
    /// Every registered service with the tags of its instances.
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

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        self.catalogue.hosts().map(|(name, _)| self.node(name)).collect()
    }

    /// A node with its service instances; `None` if it is not known.
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
