//! Members of clusters that are listed outside: while this server leads, each such cluster has a task that reads its list at an interval.
//! Core decides what follows from a list; this room reads lists, and commits that.
//!
//! A list that is the same, or cannot be read as before, costs a read and nothing else.

pub(crate) mod context;
pub mod settings;
mod source;
mod worker;

use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{ClusterName, Namespace};
use bellwether_core::world::World;
use tokio_util::sync::CancellationToken;

use self::context::DiscoveryContext;
use self::worker::ListReader;
use crate::leader_tasks::TaskPerObject;
use crate::leadership::Leadership;
use crate::transactor::Transactor;

impl TaskPerObject for DiscoveryContext {
    type Name = ClusterName;

    const TASK: &'static str = "discovery";

    fn transactor(&self) -> &Transactor {
        &self.transactor
    }

    fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// The clusters whose members are listed outside.
    fn objects(world: &World) -> impl Iterator<Item = (Namespace, ClusterName)> + '_ {
        world.fleets.iter().flat_map(|(namespace, fleet)| {
            let clusters = fleet.clusters.iter().filter(|(_, kept)| kept.value.discovery.is_some());
            clusters.map(|(name, _)| (namespace.clone(), name.clone()))
        })
    }

    async fn work(self, term: Term, cluster: (Namespace, ClusterName), stop: CancellationToken) {
        ListReader::new(self, term, cluster).run(stop).await;
    }
}
