//! Why a server stops by itself.

use bellwether_store::{Condition, Store};

use crate::config::OnStoreFailure;

/// What of a server failed so that it stops.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerFault {
    /// A task of it panicked.
    #[error("a task of the server failed")]
    Task,
    /// Its store failed.
    #[error("the store failed: {reason}")]
    Store {
        /// What happened and what to do.
        reason: String,
    },
}

/// Waits until the store failed, and for ever if the server is to stay then.
pub(super) async fn of_store(store: &Store, then: OnStoreFailure) -> ServerFault {
    let mut health = store.health();
    if then == OnStoreFailure::Exit
        && let Ok(health) =
            health.wait_for(|health| matches!(health.condition, Condition::Failed { .. })).await
        && let Condition::Failed { reason, .. } = &health.condition
    {
        return ServerFault::Store { reason: reason.clone() };
    }
    std::future::pending().await
}
