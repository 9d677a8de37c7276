//! What the tasks of sinks work with.

use std::sync::Arc;

use bellwether_store::Store;

use super::settings::SinkSettings;
use crate::leadership::Leadership;
use crate::secrets::provider::Providers;
use crate::transactor::Transactor;

/// What the tasks of sinks work with. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SinkContext {
    /// Commits how far each sink is.
    pub(crate) transactor: Transactor,
    /// Has the events that are not in the world.
    pub(crate) store: Store,
    /// When to send, and under which term to commit.
    pub(crate) leadership: Leadership,
    /// Addresses and directories.
    pub(crate) settings: Arc<SinkSettings>,
    /// The programs that have other secrets.
    pub(crate) providers: Providers,
    /// Identifier of the installation.
    pub(crate) installation: String,
}
