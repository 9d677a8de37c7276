//! The memory store with etcd's misbehaviours, as switches. Owns what each one does to an answer; the store below
//! keeps its contract.
//!
//! A switch is off until it is armed: for the next calls, or for a share of them by a seed. The same calls in the same
//! order meet the same faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::faulty::Faulty;
use crate::health::Condition;
use crate::{Health, Store};

/// A misbehaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A watch leaves the deletes out of a batch (etcd 3.4, around a snapshot).
    LoseDeletes,
    /// A watch tells the batch before once more (etcd 3.4, after a reconnect).
    ReplayOld,
    /// A watch tells nothing from a batch on, until somebody lists (etcd 3.4, around a snapshot).
    SkipUntilListed,
    /// A watch finds the store at an earlier revision and ends (etcd put back from a backup).
    GoBack,
    /// A read of the present shows the state of a few commits before (etcd 3.4, after a pause).
    StaleRead,
    /// Renewing a lease that has ended succeeds (etcd 3.4).
    RenewEnded,
    /// A lease lasts three times as long as asked for (etcd loses its leader in the meantime).
    LeaseOutlives,
    /// A commit is made and its answer lost: [`crate::StoreError::Unknown`].
    LoseAnswer,
    /// A commit does not reach the store: [`crate::StoreError::Unreachable`].
    LoseCommit,
    /// Puts and grants meet a full store: [`crate::StoreError::DiskFull`].
    NoSpace,
    /// A call hangs until the fault is ended. Closing does not.
    Freeze,
}

/// When a fault happens.
#[derive(Debug, Clone, Copy)]
enum Armed {
    Next(u32),
    Share { percent: u32 },
}

/// The switches of one store. Clones are the same switches.
#[derive(Debug, Clone)]
pub struct Faults {
    armed: Arc<Mutex<State>>,
    /// Whether calls hang, for those that do.
    pub(super) frozen: watch::Sender<bool>,
    pub(super) health: watch::Sender<Health>,
}

#[derive(Debug)]
struct State {
    switches: BTreeMap<Fault, Armed>,
    random: u64,
}

impl Faults {
    /// All off; `seed` decides which calls a share hits.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero for ever.
        let state = State { switches: BTreeMap::new(), random: seed.wrapping_mul(2).wrapping_add(1) };
        Self {
            armed: Arc::new(Mutex::new(state)),
            frozen: watch::Sender::new(false),
            health: watch::Sender::new(Health::writable("memory")),
        }
    }

    /// The next `calls` that can meet `fault` do.
    pub fn next(&self, fault: Fault, calls: u32) {
        self.arm(fault, Armed::Next(calls));
    }

    /// Of 100 calls that can meet `fault`, `percent` do, from now on.
    pub fn share(&self, fault: Fault, percent: u32) {
        self.arm(fault, Armed::Share { percent });
    }

    /// Every call that can meet `fault` does, from now on.
    pub fn always(&self, fault: Fault) {
        self.share(fault, 100);
    }

    /// Ends a fault.
    pub fn end(&self, fault: Fault) {
        self.state().switches.remove(&fault);
        self.show();
    }

    fn arm(&self, fault: Fault, armed: Armed) {
        self.state().switches.insert(fault, armed);
        self.show();
    }

    /// Whether this call meets `fault`.
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        let mut state = self.state();
        let strikes = match state.switches.get(&fault).copied() {
            None => false,
            Some(Armed::Next(calls)) => {
                match calls.checked_sub(1) {
                    Some(0) | None => drop(state.switches.remove(&fault)),
                    Some(left) => drop(state.switches.insert(fault, Armed::Next(left))),
                }
                calls > 0
            }
            Some(Armed::Share { percent }) => state.roll() < u64::from(percent),
        };
        drop(state);
        // Whoever hangs does so until the fault is ended by name, also the last of a number of calls.
        if fault != Fault::Freeze {
            self.show();
        }
        strikes
    }

    /// Tells the health, and those that hang, what is armed.
    fn show(&self) {
        let state = self.state();
        let is_frozen = state.switches.contains_key(&Fault::Freeze);
        let is_full = state.switches.contains_key(&Fault::NoSpace);
        drop(state);
        self.frozen.send_replace(is_frozen);
        self.health.send_modify(|health| {
            health.condition = match (is_frozen, is_full) {
                (true, _) => health.condition.unreachable("it is frozen, for a test".to_owned()),
                (false, true) => health.condition.read_only("it has no space, for a test".to_owned()),
                (false, false) => Condition::Writable,
            };
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A number below 100: xorshift.
    fn roll(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32).checked_rem(100).unwrap_or_default()
    }
}

impl Store {
    /// A store in memory, as [`Store::memory`], whose answers meet `faults`.
    #[must_use]
    pub fn memory_with(tasks: &Tasks, faults: Faults) -> Self {
        Self::of(Faulty::start(tasks, faults))
    }
}
