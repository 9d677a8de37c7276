//! Facts of this machine: delivered when they changed, when a rescan was done, when the server requests a report, and on a new
//! connection.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::facts::NodeFacts;
use bellwether_core::words::name::{Namespace, NodeName};
use tokio::sync::watch;

use super::connection::Connection;
use super::deliver::Delivery;
use crate::facts::KnownFacts;

/// The facts of this machine.
#[derive(Debug)]
pub(super) struct FactSender {
    pub(super) connection: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) facts: watch::Receiver<Option<KnownFacts>>,
    /// How many reports were requested: a server that requests one has forgotten the facts as well.
    pub(super) requested: watch::Receiver<u64>,
}

impl Delivery for FactSender {
    type Value = (u64, NodeFacts);
    const WHAT: &'static str = "the facts of this machine";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let KnownFacts { rescan, facts } = self.facts.borrow_and_update().clone()?;
        let facts = NodeFacts { node: self.node.to_string(), rescan: rescan.get(), received_at_ms: 0, facts };
        Some((requested, facts))
    }

    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.facts.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
        }
    }

    async fn send(&self, (_, facts): &Self::Value) -> Result<(), CallError> {
        self.connection.client()?.facts(self.namespace.as_str(), facts).await
    }

    /// A server that refuses the facts, or is of a release that does not know them, would do so again.
    fn is_final(error: &CallError) -> bool {
        matches!(error, CallError::Problem(problem) if matches!(problem.code, Code::Invalid | Code::NotFound))
    }

    fn delivered(&mut self, _: &Self::Value) {}
}
