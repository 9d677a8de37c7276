//! Reports: the whole board, delivered when it changed, when the server requests one, and on a new connection.

use bellwether_api::client::CallError;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use super::connection::Connection;
use super::deliver::Delivery;
use super::start_gate::StartGate;
use crate::report_board::ReportBoard;
pub(super) use crate::report_board::ToldJobs;

/// The reports of this node.
#[derive(Debug)]
pub(super) struct ReportSender {
    pub(super) connection: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) board: watch::Receiver<ReportBoard>,
    /// How many reports were requested.
    pub(super) requested: watch::Receiver<u64>,
    /// The last of these requests that a delivered report answers.
    pub(super) delivered: watch::Sender<u64>,
    pub(super) clock: Clock,
    /// The jobs in the last report that was delivered.
    pub(super) told: ToldJobs,
    /// Closed until every entity of the ledger has an account.
    pub(super) gate: StartGate,
}

impl Delivery for ReportSender {
    type Value = (u64, ReportBoard);
    const WHAT: &'static str = "the report";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let board = self.board.borrow_and_update().clone();
        self.gate.opens(board.awaited.is_empty()).then(|| (requested, board.reported()))
    }

    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.board.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
            () = self.gate.due() => true,
        }
    }

    async fn send(&self, (requested, board): &Self::Value) -> Result<(), CallError> {
        // Whoever requests a report may have lost what was told.
        let all = ToldJobs::new();
        let told = if *requested == *self.delivered.borrow() { &self.told } else { &all };
        let report = board.report(&self.node, self.clock.now(), told);
        self.connection.client()?.report(self.namespace.as_str(), &report).await
    }

    fn delivered(&mut self, (requested, board): &Self::Value) {
        self.told = board.jobs();
        self.delivered.send_replace(*requested);
    }
}
