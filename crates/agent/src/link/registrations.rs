//! Service registrations: everything this node registers, delivered when it changed, when the server requests a report, and
//! on a new connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::client::CallError;
use bellwether_api::v1::registrations::ServiceRegistrations;
use bellwether_core::words::name::{Namespace, NodeName};
use tokio::sync::watch;

use super::connection::Connection;
use super::deliver::Delivery;
use super::registered::RegisteredAt;
use super::start_gate::StartGate;
use crate::report_board::ReportBoard;
use crate::service::process_phase::AcknowledgedRegistrations;
use crate::service::registry::KnownDefinition;
use crate::service::{InstanceKey, LocalAddresses, PublishedInstance, registered};

/// The registrations of this node.
#[derive(Debug)]
pub(super) struct RegistrationSender {
    pub(super) connection: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    /// Where the acknowledged ones are put.
    pub(super) acknowledgements: watch::Sender<AcknowledgedRegistrations>,
    /// Every service that exists on this node, whether or not its health is known.
    pub(super) known: watch::Receiver<BTreeMap<InstanceKey, KnownDefinition>>,
    pub(super) addresses: LocalAddresses,
    pub(super) board: watch::Receiver<ReportBoard>,
    /// How many reports were requested: a server that requests one has forgotten the registrations as well.
    pub(super) requested: watch::Receiver<u64>,
    /// Where they are recorded.
    pub(super) registered: Arc<RegisteredAt>,
    /// Closed until the health of every service is known, and every entity of the ledger has an account.
    pub(super) gate: StartGate,
}

impl Delivery for RegistrationSender {
    type Value = (u64, ServiceRegistrations);
    const WHAT: &'static str = "the service registrations";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let services = self.services.borrow_and_update().clone();
        let board = self.board.borrow_and_update().clone();
        let has_results = |key: &InstanceKey| services.get(key).is_some_and(|shown| shown.has_results);
        let is_known = board.awaited.is_empty()
            && self.known.borrow().keys().all(has_results)
            && services.values().all(|shown| shown.has_results);
        if !self.gate.opens(is_known) {
            return None;
        }
        let registrations = registered::registrations(&self.node, &services, &self.addresses.now(), &board);
        Some((requested, registrations))
    }

    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.services.changed() => changed.is_ok(),
            changed = self.board.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
            () = self.addresses.changed() => true,
            () = self.gate.due() => true,
        }
    }

    async fn send(&self, (_, registrations): &Self::Value) -> Result<(), CallError> {
        self.registered.sending();
        let registered =
            self.connection.client()?.registration(self.namespace.as_str(), registrations).await?;
        self.registered.arrived(registered.revision);
        Ok(())
    }

    fn delivered(&mut self, (_, registrations): &Self::Value) {
        self.acknowledgements.send_replace(Some(Arc::new(registrations.clone())));
    }
}
