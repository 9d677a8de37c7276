//! The instances of this machine with their health, as the rest of the agent reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::words::name::{InstanceName, ServiceName};
use tokio::sync::watch;

use crate::config::service::Service;

/// The service and the instance.
pub(crate) type InstanceKey = (ServiceName, InstanceName);

/// One instance with its health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishedInstance {
    pub(crate) service: Arc<Service>,
    pub(crate) serving: CheckStatus,
    /// Whether each of its checks has a verdict or a result. Before, `serving` is no more than a guess.
    pub(crate) has_results: bool,
    /// The services it waits for.
    pub(crate) waits_for: BTreeSet<ServiceName>,
}

/// All instances of this node.
pub(crate) type PublishedInstances = watch::Sender<BTreeMap<InstanceKey, PublishedInstance>>;

impl Service {
    /// The key of this instance.
    pub(crate) fn key(&self) -> InstanceKey {
        (self.name.clone(), self.id.clone())
    }
}
