//! Sinks of events: while this server leads, each sink has a task that sends it the events, in order and one at a time, from where the
//! record says that it is. Core decides what an answer means; this room calls receivers, and records how far each sink is.
//!
//! A sink that has nothing to send costs nothing: no record is written, and nobody is asked.

pub mod addresses;
mod checked_secrets;
pub(crate) mod context;
mod file;
pub(crate) mod receiver;
pub mod settings;
pub(crate) mod signature;
mod webhook;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{Namespace, SinkName};
use bellwether_core::world::World;
use bellwether_rt::tasks::Tasks;
use tokio_util::sync::CancellationToken;

use self::context::SinkContext;
use self::worker::SinkWorker;
use crate::world::RelistHandle;

/// Starts the tasks of sinks while this server leads.
#[derive(Debug)]
pub(crate) struct SinkSender {
    /// What the tasks work with.
    pub(crate) context: SinkContext,
    /// Brings the world up to date with the store.
    pub(crate) relist: RelistHandle,
    /// Parent of the tasks.
    pub(crate) tasks: Tasks,
}

impl SinkSender {
    /// Runs until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.context.leadership.won(&stop).await {
            // An older world would have it send again what an earlier leader sent.
            if self.relist.bring_up_to_date(&stop).await {
                let level = self.tasks.child();
                self.lead(term, &level, &stop).await;
                level.cancel();
            }
            self.context.leadership.lost(term, &stop).await;
        }
    }

    async fn lead(&mut self, term: Term, level: &Tasks, stop: &CancellationToken) {
        let mut worlds = self.context.transactor.follow();
        let mut running: BTreeMap<(Namespace, SinkName), tokio::task::JoinHandle<Option<()>>> =
            BTreeMap::new();
        while self.context.leadership.is_in(term) {
            let world = Arc::clone(&worlds.borrow_and_update());
            // A task ends when its sink is deleted.
            running.retain(|_, task| !task.is_finished());
            for key in sinks(&world) {
                running.entry(key).or_insert_with_key(|key| {
                    let worker = SinkWorker::new(self.context.clone(), term, key.clone());
                    level.spawn("sink", worker.run(level.token()))
                });
            }
            // All arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                () = self.context.leadership.changed() => {}
            }
        }
    }
}

/// The sinks of all namespaces.
fn sinks(world: &World) -> impl Iterator<Item = (Namespace, SinkName)> + '_ {
    world
        .fleets
        .iter()
        .flat_map(|(namespace, fleet)| fleet.sinks.keys().map(|name| (namespace.clone(), name.clone())))
}
