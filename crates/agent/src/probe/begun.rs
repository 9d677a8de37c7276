//! A handover of a data store that has begun and not ended: remembered over a restart of the agent, so that what it began is ended.

use bellwether_core::words::name::ProbeName;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::answer::ProbeError;
use crate::ledger::{FormerReplicas, HandoverStore};

/// The handover of one data store that has begun, if there is one.
#[derive(Debug)]
pub(super) struct BegunHandover {
    probe: ProbeName,
    store: HandoverStore,
    replicas: watch::Sender<Option<FormerReplicas>>,
    /// Held by who hands over, or ends what was begun.
    turn: Semaphore,
}

impl BegunHandover {
    /// What an agent before has left to be done, if it has.
    pub(super) fn new(probe: ProbeName, store: HandoverStore, left: Option<FormerReplicas>) -> Self {
        Self { probe, store, replicas: watch::Sender::new(left), turn: Semaphore::new(1) }
    }

    /// Waits until nobody else changes the roles of this store. `None` never comes: the semaphore stays open.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turn.acquire().await.ok()
    }

    /// The same, unless somebody does that now.
    pub(super) fn try_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turn.try_acquire().ok()
    }

    /// The replicas that are to follow the new primary, once there is one; `None` if no handover has begun.
    pub(super) fn left(&self) -> Option<FormerReplicas> {
        self.replicas.borrow().clone()
    }

    /// Remembers that a handover begins.
    ///
    /// # Errors
    /// If it cannot be remembered: then it must not begin.
    pub(super) async fn begin(&self, replicas: FormerReplicas) -> Result<(), ProbeError> {
        let kept = self.store.keep(&self.probe, &replicas).await;
        kept.map_err(|error| ProbeError::Unknown(format!("cannot {error}")))?;
        self.replicas.send_replace(Some(replicas));
        Ok(())
    }

    /// Remembers which replicas are left; without any the handover has ended. What cannot be written is only done once more.
    pub(super) async fn leave(&self, replicas: FormerReplicas) {
        if self.left().is_none_or(|before| before == replicas && !replicas.is_empty()) {
            return;
        }
        let is_over = replicas.is_empty();
        let kept = match is_over {
            true => self.store.forget(&self.probe).await,
            false => self.store.keep(&self.probe, &replicas).await,
        };
        if let Err(error) = kept {
            tracing::warn!(store = %self.probe, "cannot {error}");
        }
        self.replicas.send_replace((!is_over).then_some(replicas));
    }

    /// Forgets the handover: it has not taken place, or has ended.
    pub(super) async fn end(&self) {
        self.leave(FormerReplicas::new()).await;
    }
}
