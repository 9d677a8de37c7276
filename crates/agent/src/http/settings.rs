//! The configuration of discovery over HTTP.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bellwether_core::words::name::{Datacentre, Namespace, NodeName};

/// The configuration of discovery over HTTP.
#[derive(Debug, Clone)]
pub struct CatalogueHttp {
    /// The listening addresses.
    pub listen: Vec<SocketAddr>,
    /// The name of the only datacentre.
    pub datacentre: Datacentre,
    /// The namespace of the catalogue.
    pub namespace: Namespace,
    /// This node.
    pub node: NodeName,
    /// Names by which clients may call it, in lower case, besides `localhost`, the name of the node, and addresses.
    pub hosts: BTreeSet<String>,
}
