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

use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{Namespace, SinkName};
use bellwether_core::world::World;
use tokio_util::sync::CancellationToken;

use self::context::SinkContext;
use self::worker::SinkWorker;
use crate::leader_tasks::TaskPerObject;
use crate::leadership::Leadership;
use crate::transactor::Transactor;

impl TaskPerObject for SinkContext {
    type Name = SinkName;

    const TASK: &'static str = "sink";

    fn transactor(&self) -> &Transactor {
        &self.transactor
    }

    fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    fn objects(world: &World) -> impl Iterator<Item = (Namespace, SinkName)> + '_ {
        world
            .fleets
            .iter()
            .flat_map(|(namespace, fleet)| fleet.sinks.keys().map(|name| (namespace.clone(), name.clone())))
    }

    async fn work(self, term: Term, sink: (Namespace, SinkName), stop: CancellationToken) {
        SinkWorker::new(self, term, sink).run(stop).await;
    }
}
