//! What logical nodes are hosted with.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;

use crate::link::connection::Connection;

/// What logical nodes are hosted with.
#[derive(Debug, Clone)]
pub(crate) struct HostContext {
    /// The connection of the host: its identity is that of its logical nodes.
    pub(crate) connection: Connection,
    pub(crate) servers: Vec<String>,
    /// The host's data directory; theirs are below it.
    pub(crate) data_dir: PathBuf,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    /// The tasks of the host's agent.
    pub(crate) tasks: Tasks,
    /// Set once a server says that the host was decommissioned, with what it says.
    pub(crate) decommissioned: Arc<OnceLock<String>>,
}
