//! What handlers of the local socket share.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use super::status_sink::StatusSink;
use crate::catalogue::CatalogueSnapshot;
use crate::reload::ReloadRequests;
use crate::report_board::ReportBoard;
use crate::service::registry::Registry;
use crate::service::{InstanceKey, PublishedInstance};
use crate::status::StatusSources;

/// The state of the local API. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LocalApi {
    /// The sources of the local status.
    pub(crate) sources: StatusSources,
    /// Takes requests to reload the configuration.
    pub(crate) reload: ReloadRequests,
    /// Takes statuses.
    pub(crate) statuses: StatusSink,
    /// Takes service registrations.
    pub(crate) registry: Registry,
    /// The health of each instance.
    pub(crate) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    /// The progress of entities.
    pub(crate) board: watch::Receiver<ReportBoard>,
    /// The copy of the catalogue, and whether the agent keeps one up to date.
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) wants_catalogue: Arc<watch::Sender<bool>>,
    pub(crate) clock: Clock,
}

/// The empty body of a success.
#[derive(Debug, serde::Serialize)]
pub(super) struct Empty {}
