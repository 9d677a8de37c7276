//! The instances of this machine with their health, as the rest of the agent reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::words::name::{InstanceName, ServiceName};
use tokio::sync::watch;

use crate::config::service::Service;

/// Which instance of which service.
pub(crate) type InstanceKey = (ServiceName, InstanceName);

/// One instance and whether it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishedInstance {
    pub(crate) service: Arc<Service>,
    pub(crate) serving: CheckStatus,
    /// What it waits for before it serves.
    pub(crate) lacks: BTreeSet<ServiceName>,
}

/// Every instance there is now.
pub(crate) type PublishedInstances = watch::Sender<BTreeMap<InstanceKey, PublishedInstance>>;

impl Service {
    /// Which one it is.
    pub(crate) fn key(&self) -> InstanceKey {
        (self.name.clone(), self.id.clone())
    }
}
