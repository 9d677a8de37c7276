//! The configuration of discovery over HTTP, and what it answers from.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::words::name::{Datacentre, Namespace, NodeName};
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use crate::catalogue::CatalogueSnapshot;
use crate::link::contact::ServerContact;
use crate::metrics::MetricSources;

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

/// What the answers are made from.
#[derive(Debug)]
pub(crate) struct HttpSources {
    /// The catalogue.
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    /// The contact with the servers.
    pub(crate) contact: watch::Receiver<ServerContact>,
    /// The agent's metrics.
    pub(crate) metrics: MetricSources,
    pub(crate) clock: Clock,
    /// Spreads the waits of blocking queries.
    pub(crate) seed: u64,
}
