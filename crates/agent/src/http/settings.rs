//! What discovery over HTTP is made of: its configuration, and what it answers from.

use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::words::name::{Datacentre, Namespace, NodeName};
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use crate::catalogue::CatalogueSnapshot;
use crate::link::contact::ServerContact;

/// What discovery over HTTP is made of.
#[derive(Debug, Clone)]
pub struct CatalogueHttp {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// What the one datacentre there is is called.
    pub datacentre: Datacentre,
    /// The namespace whose catalogue it is.
    pub namespace: Namespace,
    /// This node.
    pub node: NodeName,
}

/// What it is told of.
#[derive(Debug)]
pub(crate) struct HttpSources {
    /// The catalogue as it is known here.
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    /// Whether a server answers.
    pub(crate) contact: watch::Receiver<ServerContact>,
    pub(crate) clock: Clock,
    /// What waiting is spread by.
    pub(crate) seed: u64,
}
