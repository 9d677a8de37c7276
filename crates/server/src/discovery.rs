//! Members of clusters that are listed outside: while this server leads, each such cluster has a task that reads its list at an interval.
//! Core decides what follows from a list; this room reads lists, and commits that.
//!
//! A list that is the same, or cannot be read as before, costs a read and nothing else.

pub(crate) mod context;
pub mod settings;
mod source;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{ClusterName, Namespace};
use bellwether_core::world::World;
use bellwether_rt::tasks::Tasks;
use tokio_util::sync::CancellationToken;

use self::context::DiscoveryContext;
use self::worker::ListReader;
use crate::world::RelistHandle;

/// Starts the tasks while this server leads.
#[derive(Debug)]
pub(crate) struct MemberDiscovery {
    /// What the tasks work with.
    pub(crate) context: DiscoveryContext,
    /// Brings the world up to date with the store.
    pub(crate) relist: RelistHandle,
    /// Parent of the tasks.
    pub(crate) tasks: Tasks,
}

impl MemberDiscovery {
    /// Runs until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.context.leadership.won(&stop).await {
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
        let mut running: BTreeMap<(Namespace, ClusterName), tokio::task::JoinHandle<Option<()>>> =
            BTreeMap::new();
        while self.context.leadership.is_in(term) {
            let world = Arc::clone(&worlds.borrow_and_update());
            // A task ends when its cluster has no list any more.
            running.retain(|_, task| !task.is_finished());
            for key in listed(&world) {
                running.entry(key).or_insert_with_key(|key| {
                    let reader = ListReader::new(self.context.clone(), term, key.clone());
                    level.spawn("discovery", reader.run(level.token()))
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

/// The clusters of all namespaces whose members are listed outside.
fn listed(world: &World) -> impl Iterator<Item = (Namespace, ClusterName)> + '_ {
    world.fleets.iter().flat_map(|(namespace, fleet)| {
        let clusters = fleet.clusters.iter().filter(|(_, kept)| kept.value.discovery.is_some());
        clusters.map(|(name, _)| (namespace.clone(), name.clone()))
    })
}
