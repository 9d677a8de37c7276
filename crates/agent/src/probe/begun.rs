//! A handover of a data store that has begun and not ended: remembered over a restart of the agent, so that what it began is ended.

use bellwether_core::local::delay;
use bellwether_core::words::name::ProbeName;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use super::answer::ProbeError;
use crate::ledger::{FormerReplicas, HandoverEntry, HandoverStore};

/// The handover of one data store that has begun, if there is one.
#[derive(Debug)]
pub(super) struct BegunHandover {
    probe: ProbeName,
    store: HandoverStore,
    entry: watch::Sender<Option<HandoverEntry>>,
    attempts: watch::Sender<EndAttempts>,
    /// Held by who hands over, or ends what was begun.
    turn: Semaphore,
}

/// Attempts to end a handover that failed.
#[derive(Debug, Default)]
struct EndAttempts {
    failed: u32,
    /// When the next one is due.
    next: Option<Instant>,
    /// The reason that was told last.
    told: Option<String>,
}

impl BegunHandover {
    /// What an agent before has left to be done, if it has.
    pub(super) fn new(probe: ProbeName, store: HandoverStore, left: Option<HandoverEntry>) -> Self {
        Self {
            probe,
            store,
            entry: watch::Sender::new(left),
            attempts: watch::Sender::default(),
            turn: Semaphore::new(1),
        }
    }

    /// Waits until nobody else changes the roles of this store. `None` never comes: the semaphore stays open.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turn.acquire().await.ok()
    }

    /// The same, unless somebody does that now.
    pub(super) fn try_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turn.try_acquire().ok()
    }

    /// What is left to be done; `None` if no handover has begun.
    pub(super) fn left(&self) -> Option<HandoverEntry> {
        self.entry.borrow().clone()
    }

    /// Whether to try to end it now: a replica that is away for long is asked ever more rarely, at least twice a minute.
    pub(super) fn is_due(&self) -> bool {
        self.left().is_some() && self.attempts.borrow().next.is_none_or(|at| at <= Instant::now())
    }

    /// It could not be ended, for this reason, which is told when it is another one.
    pub(super) fn failed(&self, reason: String) {
        self.attempts.send_modify(|attempts| {
            attempts.failed = attempts.failed.saturating_add(1);
            attempts.next = Some(Instant::now() + delay::after(attempts.failed, 0).to_duration());
            if attempts.told.as_ref() != Some(&reason) {
                tracing::warn!(store = %self.probe, "the handover has not ended: {reason}; it is tried again");
                attempts.told = Some(reason);
            }
        });
    }

    /// Remembers that a handover begins.
    ///
    /// # Errors
    /// If it cannot be remembered: then it must not begin.
    pub(super) async fn begin(&self, entry: HandoverEntry) -> Result<(), ProbeError> {
        let kept = self.store.keep(&self.probe, &entry).await;
        kept.map_err(|error| ProbeError::Unknown(format!("cannot {error}")))?;
        self.attempts.send_replace(EndAttempts::default());
        self.entry.send_replace(Some(entry));
        Ok(())
    }

    /// Remembers which replicas are left; without any the handover has ended. What cannot be written is only done once more.
    pub(super) async fn leave(&self, replicas: FormerReplicas) {
        let Some(before) = self.left() else { return };
        let is_over = replicas.is_empty();
        if before.replicas == replicas && !is_over {
            return;
        }
        let entry = HandoverEntry { replicas, ..before };
        let kept = match is_over {
            true => self.store.forget(&self.probe).await,
            false => self.store.keep(&self.probe, &entry).await,
        };
        if let Err(error) = kept {
            tracing::warn!(store = %self.probe, "cannot {error}");
        }
        self.entry.send_replace((!is_over).then_some(entry));
    }

    /// Forgets the handover: it has not taken place, or has ended.
    pub(super) async fn end(&self) {
        self.leave(FormerReplicas::new()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellwether_rt::tasks::Tasks;

    use super::*;
    use crate::ledger::Ledger;

    #[tokio::test(start_paused = true)]
    async fn a_replica_that_is_away_is_asked_ever_more_rarely_and_told_of_once() {
        let dir = tempfile::tempdir().unwrap();
        let (ledger, _) = Ledger::open(dir.path(), Tasks::new()).unwrap();
        let replicas = FormerReplicas::from([("10.0.0.3:6379".to_owned(), "10.0.0.1:6379".to_owned())]);
        let entry = HandoverEntry { next: "10.0.0.2:6379".to_owned(), replicas };
        let begun = BegunHandover::new("db".parse().unwrap(), ledger.handovers(), Some(entry.clone()));
        assert!(begun.is_due(), "what an agent before has left is ended at once");
        for failed in 1..=10 {
            begun.failed("it does not answer".to_owned());
            assert!(!begun.is_due());
            tokio::time::advance(delay::after(failed, 0).to_duration() - Duration::from_millis(1)).await;
            assert!(!begun.is_due());
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(begun.is_due());
        }
        assert!(begun.attempts.borrow().told.is_some());
        begun.failed("it does not answer".to_owned());
        // Another handover begins anew.
        begun.begin(entry).await.unwrap();
        assert!(begun.is_due() && begun.attempts.borrow().told.is_none());
        begun.end().await;
        assert!(!begun.is_due(), "nothing is left to be done");
    }
}
