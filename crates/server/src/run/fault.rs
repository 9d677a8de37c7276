//! Why a server stops by itself.

use bellwether_store::{Condition, Store};

use crate::config::OnStoreFailure;
use crate::http::AppState;
use crate::set_back::SetBackMark;

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
    /// Its store was set back.
    #[error(
        "the store was set back, from revision {was} to {is}; stop every server, then run `bellwether server restore --in-place`"
    )]
    SetBack {
        /// The revision that it had.
        was: u64,
        /// The revision that it has.
        is: u64,
    },
}

/// Waits until the store was set back, and remembers it for the next start.
pub(super) async fn of_world(app: &AppState, mark: &SetBackMark) -> ServerFault {
    let (was, is) = app.records.set_back.told().await;
    if let Err(error) = mark.write(app.identity.installation.epoch) {
        tracing::error!(%error, "cannot remember that the store was set back");
    }
    ServerFault::SetBack { was: was.get(), is: is.get() }
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
