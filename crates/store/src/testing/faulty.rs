//! A line to a store: it can be cut, be slow, be full at its end, and lie as etcd 3.4 is known to. For tests and the simulator;
//! each of several servers has a line of its own to the one store, of whatever kind that is. Owns the switches and the chances;
//! what each does to an answer is in `through`.
//!
//! The same seed and the same calls bring the same trouble.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::StoreError;
use crate::health::{Condition, Health};

/// How long a call waits on a line that is cut before it gives up, as a client of etcd does.
const DEADLINE: Duration = Duration::from_secs(5);

/// A share of all.
const ALL: u32 = 1_000_000;

/// A line to a store. Clones are the same line.
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
    /// How many of the next calls that can meet it do, before chance is asked.
    next: BTreeMap<StoreFault, u32>,
    is_full: bool,
}

/// What may happen to one call, or to one batch of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreFault {
    /// A commit is not made: [`StoreError::Unreachable`].
    Refused,
    /// A commit is made and not answered: [`StoreError::Unknown`].
    Unanswered,
    /// A watch leaves the deletes of a commit out (etcd 3.4, around a snapshot).
    LostDeletes,
    /// A watch does not tell of a commit.
    LostCommits,
    /// A watch tells of an earlier commit once more (etcd 3.4, after a reconnect).
    Repeated,
    /// A read shows an older state as the present one (etcd 3.4, after a pause).
    Stale,
    /// Renewing a lease that has ended is said to go well (etcd 3.4).
    RenewsWhatEnded,
    /// A watch tells nothing from a commit on, until somebody lists (etcd 3.4, around a snapshot).
    SkipsUntilListed,
    /// A watch finds the store at an earlier revision and ends (etcd put back from a backup).
    WentBack,
    /// A lease lasts three times as long as asked for (etcd loses its leader in the meantime).
    OutlivingLease,
}

/// What a line does to what goes over it. Shares are in parts of a million; everything is off by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultInjection {
    /// Longest that a call takes, in milliseconds.
    pub slow_ms: u64,
    /// Commits that are not made.
    pub refused: u32,
    /// Commits that are made and not answered.
    pub unanswered: u32,
    /// Deletes that no watch tells of.
    pub lost_deletes: u32,
    /// Commits that no watch tells of.
    pub lost_commits: u32,
    /// Commits that a watch tells of once more.
    pub repeated: u32,
    /// Reads that show an older state as the present one.
    pub stale: u32,
    /// Renewals of leases that have ended and are said to go well.
    pub renews_what_ended: bool,
}

impl FaultyStore {
    /// A line in order.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state =
            FaultyState { seed, trouble: FaultInjection::default(), next: BTreeMap::new(), is_full: false };
        let health = watch::Sender::new(Health::writable("memory"));
        let [cut, holds_lists] = [watch::Sender::new(false), watch::Sender::new(false)];
        Self(Arc::new(FaultyShared { cut, holds_lists, health, state: Mutex::new(state) }))
    }

    /// Reports this health from now on.
    pub(super) fn show_health(&self, health: Health) {
        self.0.health.send_replace(health);
    }

    /// Nothing gets through any more.
    pub fn cut(&self) {
        self.0.cut.send_replace(true);
    }

    /// Everything gets through again.
    pub fn heal(&self) {
        self.0.cut.send_replace(false);
    }

    /// Whether reads of a past revision, of which long lists are made, are held up. All else gets through.
    pub fn hold_lists(&self, are_held: bool) {
        self.0.holds_lists.send_replace(are_held);
    }

    /// Waits until no lists are held up.
    pub(super) async fn lists(&self) {
        let mut holds = self.0.holds_lists.subscribe();
        // It does not end before the line that is asked.
        drop(holds.wait_for(|holds| !holds).await);
    }

    /// Makes trouble from now on.
    pub fn trouble(&self, trouble: FaultInjection) {
        self.state().trouble = trouble;
    }

    /// The next `calls` that can meet `fault` do, whatever chance says.
    pub fn next(&self, fault: StoreFault, calls: u32) {
        self.state().next.insert(fault, calls);
    }

    /// The store at its end is full, or no longer: puts and grants meet [`StoreError::DiskFull`], as its health says.
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

    /// Whether nothing gets through: for waiting.
    pub(super) fn is_cut(&self) -> watch::Receiver<bool> {
        self.0.cut.subscribe()
    }

    /// How the store is, seen through this line.
    pub(super) fn health(&self) -> watch::Receiver<Health> {
        self.0.health.subscribe()
    }

    /// Refuses what takes room if there is none.
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

    /// Waits until a call is through, or gives up.
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
    /// The next number that looks random (`SplitMix64`).
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
