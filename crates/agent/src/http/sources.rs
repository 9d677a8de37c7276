//! What discovery over HTTP answers from.

use std::sync::Arc;

use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use crate::catalogue::CatalogueSnapshot;
use crate::link::contact::ServerContact;
use crate::metrics::MetricSources;

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
