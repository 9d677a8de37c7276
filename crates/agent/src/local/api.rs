//! What handlers of the local socket share.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use super::status_sink::StatusSink;
use crate::catalogue::CatalogueSnapshot;
use crate::report_board::ReportBoard;
use crate::service::registry::Registry;
use crate::service::{InstanceKey, PublishedInstance};
use crate::status::StatusSources;

/// What handlers need. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LocalApi {
    /// What the local status is made of.
    pub(crate) sources: StatusSources,
    /// Takes in statuses.
    pub(crate) statuses: StatusSink,
    /// Takes in services.
    pub(crate) registry: Registry,
    /// Whether each of them serves.
    pub(crate) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    /// How far entities are.
    pub(crate) board: watch::Receiver<ReportBoard>,
    /// The copy of the catalogue, and whether the agent keeps one up to date.
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) wants_catalogue: Arc<watch::Sender<bool>>,
    pub(crate) clock: Clock,
}

/// Nothing: the answer to what was done.
#[derive(Debug, serde::Serialize)]
pub(super) struct Empty {}
