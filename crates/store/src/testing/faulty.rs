//! Fault injection for a store: its connection can be cut, slow, refused for lack of space, or misbehave like etcd
//! 3.4. For tests and the simulator;
//! each of several servers has its own faulty view of one store, of whatever kind. Owns the switches and the probabilities;
//! what each fault does to an answer is in `faulty_backend`.
//!
//! The same seed and the same calls have the same faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::faulty_backend::FaultyBackend;
use crate::error::StoreError;
use crate::health::{Condition, Health};
use crate::store::Store;

/// How long a call waits while the connection is cut before it gives up, as a client of etcd does.
const DEADLINE: Duration = Duration::from_secs(5);

/// The denominator of probabilities.
const ALL: u32 = 1_000_000;

/// A store with fault injection. Clones share the faults.
#[derive(Debug, Clone)]
pub struct FaultyStore(Arc<FaultyShared>);

#[derive(Debug)]
struct FaultyShared {
    cut: watch::Sender<bool>,
    holds_lists: watch::Sender<bool>,
    health: watch::Sender<Health>,
    state: Mutex<FaultyState>,
}

#[derive(Debug)]
struct FaultyState {
    seed: u64,
    trouble: FaultInjection,
    /// How many of the next calls certainly meet a fault.
    next: BTreeMap<StoreFault, u32>,
    is_full: bool,
}

/// A fault of one call, or of one batch of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreFault {
    /// A commit is not made: [`StoreError::Unreachable`].
    Refused,
    /// A commit is made and not answered: [`StoreError::Unknown`].
    Unanswered,
    /// A watch omits the deletes of a commit (etcd 3.4, around a snapshot).
    LostDeletes,
    /// A watch omits a commit.
    LostCommits,
    /// A watch delivers an earlier commit again (etcd 3.4, after a reconnect).
    Repeated,
    /// A read returns an older state as the current one (etcd 3.4, after a pause).
    Stale,
    /// Renewing an ended lease succeeds (etcd 3.4).
    RenewsWhatEnded,
    /// A watch delivers nothing from a commit on, until somebody lists (etcd 3.4, around a snapshot).
    SkipsUntilListed,
    /// A watch finds the store at an earlier revision and ends (etcd restored from a backup).
    WentBack,
    /// A lease lasts three times as long as requested (etcd loses its leader in the meantime).
    OutlivingLease,
}

/// Probabilities of faults, in parts per million; everything is off by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultInjection {
    /// Longest latency of a call, in milliseconds.
    pub slow_ms: u64,
    /// Commits that are not made.
    pub refused: u32,
    /// Commits that are made and not answered.
    pub unanswered: u32,
    /// Deletes that watches omit.
    pub lost_deletes: u32,
    /// Commits that watches omit.
    pub lost_commits: u32,
    /// Commits that watches deliver again.
    pub repeated: u32,
    /// Reads that return an older state as the current one.
    pub stale: u32,
    /// Renewals of ended leases that succeed.
    pub renews_what_ended: bool,
}

impl FaultyStore {
    /// No faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state =
            FaultyState { seed, trouble: FaultInjection::default(), next: BTreeMap::new(), is_full: false };
        let health = watch::Sender::new(Health::writable("memory"));
        let [cut, holds_lists] = [watch::Sender::new(false), watch::Sender::new(false)];
        Self(Arc::new(FaultyShared { cut, holds_lists, health, state: Mutex::new(state) }))
    }

    /// Cuts the connection.
    pub fn cut(&self) {
        self.0.cut.send_replace(true);
    }

    /// Restores the connection.
    pub fn heal(&self) {
        self.0.cut.send_replace(false);
    }

    /// Sets whether reads of a past revision, which long lists consist of, are held. Nothing else is affected.
    pub fn hold_lists(&self, are_held: bool) {
        self.0.holds_lists.send_replace(are_held);
    }

    /// Waits until lists are no longer held.
    pub(super) async fn lists(&self) {
        let mut holds = self.0.holds_lists.subscribe();
        // It does not end before the line that is asked.
        drop(holds.wait_for(|holds| !holds).await);
    }

    /// Sets the probabilities from now on.
    pub fn trouble(&self, trouble: FaultInjection) {
        self.state().trouble = trouble;
    }

    /// Makes the next `calls` that can meet `fault` meet it.
    pub fn next(&self, fault: StoreFault, calls: u32) {
        self.state().next.insert(fault, calls);
    }

    /// Sets whether the store is full: puts and grants fail with [`StoreError::DiskFull`], and its health says so.
    pub fn fill(&self, is_full: bool) {
        self.state().is_full = is_full;
        self.0.health.send_modify(|health| {
            health.condition = if is_full {
                health.condition.read_only("it has no space, for a test".to_owned())
            } else {
                Condition::Writable
            };
        });
    }

    /// Follows whether the connection is cut.
    pub(super) fn is_cut(&self) -> watch::Receiver<bool> {
        self.0.cut.subscribe()
    }

    /// The store's health as seen through these faults.
    pub(super) fn health(&self) -> watch::Receiver<Health> {
        self.0.health.subscribe()
    }

    /// Refuses what needs space if there is none.
    pub(super) fn check_room(&self) -> Result<(), StoreError> {
        if self.state().is_full {
            return Err(StoreError::DiskFull { place: "the end of a line, for a test".to_owned() });
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, FaultyState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this call meets `fault`.
    pub(super) fn meets(&self, fault: StoreFault) -> bool {
        let mut state = self.state();
        if let Some(left) = state.next.get_mut(&fault).filter(|left| **left > 0) {
            *left = left.saturating_sub(1);
            return true;
        }
        let share = state.trouble.share(fault);
        share >= ALL || (share > 0 && state.draw() % u64::from(ALL) < u64::from(share))
    }

    /// Waits until a call gets through, or gives up.
    pub(super) async fn pass(&self) -> Result<(), StoreError> {
        let slow = {
            let mut state = self.state();
            let most = state.trouble.slow_ms;
            if most == 0 { 0 } else { state.draw() % most.saturating_add(1) }
        };
        if slow > 0 {
            tokio::time::sleep(Duration::from_millis(slow)).await;
        }
        let mut cut = self.0.cut.subscribe();
        match tokio::time::timeout(DEADLINE, cut.wait_for(|cut| !cut)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(StoreError::Closed),
            Err(_) => Err(StoreError::Unreachable { reason: "the line is cut".to_owned() }),
        }
    }
}

impl FaultInjection {
    const fn share(&self, fault: StoreFault) -> u32 {
        match fault {
            StoreFault::Refused => self.refused,
            StoreFault::Unanswered => self.unanswered,
            StoreFault::LostDeletes => self.lost_deletes,
            StoreFault::LostCommits => self.lost_commits,
            StoreFault::Repeated => self.repeated,
            StoreFault::Stale => self.stale,
            StoreFault::RenewsWhatEnded => {
                if self.renews_what_ended {
                    ALL
                } else {
                    0
                }
            }
            StoreFault::SkipsUntilListed | StoreFault::WentBack | StoreFault::OutlivingLease => 0,
        }
    }
}

impl FaultyState {
    /// The next pseudo-random number (`SplitMix64`).
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Store {
    /// The same store as seen through these faults. Closing it closes nothing of the other.
    #[must_use]
    pub fn through(&self, line: &FaultyStore) -> Self {
        line.0.health.send_replace(self.health().borrow().clone());
        Self::of(Arc::new(FaultyBackend::new(self.clone(), line.clone())))
    }
}
