//! The states of checks over a restart of the agent: one file per service instance or entity, rewritten when a state
//! changes, not when a check merely confirms it. Nothing of it is believed after a reboot.
//!
//! Files are replaced whole and not synced: what a power failure takes is void after it anyway.

mod shape;
mod state;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::disk;
use state::States;
pub(crate) use state::{CheckOwner, StoredCheck, StoredChecks};

/// Stores states of checks. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CheckStore {
    states: watch::Sender<States>,
    dir: PathBuf,
    clock: Clock,
}

impl CheckStore {
    /// Reads what the agent before stored on this boot, and writes what changes until `tasks` are stopped. A file that cannot
    /// be read counts as none: its checks start without a verdict.
    pub(crate) fn open(data_dir: &Path, clock: &Clock, tasks: &Tasks) -> Self {
        let dir = data_dir.join("ledger/checks");
        let states = match disk::private_dir(&dir) {
            Ok(()) => write::read(&dir, clock),
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "cannot store the states of checks");
                States::new()
            }
        };
        let store =
            Self { states: watch::Sender::new(states.clone()), dir: dir.clone(), clock: clock.clone() };
        let writer = write::CheckWriter { written: states, dir, clock: clock.clone() };
        tasks.spawn("check states", writer.run(store.states.subscribe(), tasks.clone()));
        store
    }

    /// What is stored of an owner.
    pub(crate) fn get(&self, owner: &CheckOwner) -> Arc<StoredChecks> {
        self.states.borrow().get(owner).cloned().unwrap_or_default()
    }

    /// Stores the state of an owner, if it changed.
    pub(crate) fn put(&self, owner: &CheckOwner, stored: StoredChecks) {
        self.states.send_if_modified(|states| {
            let same = states.get(owner).is_some_and(|before| **before == stored);
            if !same {
                states.insert(owner.clone(), Arc::new(stored));
            }
            !same
        });
    }

    /// Forgets all owners but these.
    pub(crate) fn retain(&self, exists: impl Fn(&CheckOwner) -> bool) {
        self.states.send_if_modified(|states| {
            let before = states.len();
            states.retain(|owner, _| exists(owner));
            before != states.len()
        });
    }

    /// Records that the agent ends in order: healthy times go on if the next one starts soon.
    pub(crate) fn close(&self) {
        if let Err(error) = write::close(&self.dir, &self.clock) {
            tracing::debug!(%error, "cannot record the end of the agent");
        }
    }
}

#[cfg(test)]
mod tests;
