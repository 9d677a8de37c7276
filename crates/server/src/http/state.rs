//! State that all handlers share.

use std::sync::Arc;

use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, ServerName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use crate::hooks::settings::HookSettings;
use crate::installation::Installation;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::pki::Pki;
use crate::sessions::Sessions;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// State that all handlers share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState(Arc<AppParts>);

/// The fields of an [`AppState`].
#[derive(Debug)]
pub struct AppParts {
    /// Runs operations.
    pub transactor: Transactor,
    /// Brings the world up to date with the store.
    pub relist: RelistHandle,
    /// Agents' sessions.
    pub sessions: Sessions,
    /// The certificate authority.
    pub pki: Pki,
    /// The clock.
    pub clock: Clock,
    /// The store, for events and logs that are not in the world.
    pub store: Store,
    /// Concurrency limits.
    pub admission: Admission,
    /// Settings of hooks.
    pub hooks: Arc<HookSettings>,
    /// Counters.
    pub metrics: Metrics,
    /// This server's name.
    pub name: ServerName,
    /// The installation of the store.
    pub installation: Installation,
    /// The revision at which this server acquired its membership, while it has it.
    pub membership: watch::Receiver<Option<Revision>>,
    /// Whether this server leads.
    pub leadership: Leadership,
    /// Cancelled when the server stops: blocking requests return at once.
    pub stop: CancellationToken,
}

impl AppState {
    /// The state of these parts.
    #[must_use]
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The newest world.
    pub(crate) fn world(&self) -> Arc<World> {
        self.0.transactor.world()
    }

    /// Whether a namespace exists: `default`, or one with records.
    pub(crate) fn known(&self, namespace: &Namespace) -> bool {
        self.world().has_namespace(namespace)
    }
}

impl std::ops::Deref for AppState {
    type Target = AppParts;
    fn deref(&self) -> &AppParts {
        &self.0
    }
}
