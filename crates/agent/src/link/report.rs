//! Reports: the whole board, delivered when it changed, when the server requests one, and on a new connection.

use std::borrow::Cow;
use std::sync::Arc;

use bellwether_api::client::CallError;
use bellwether_api::v1;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use super::connection::Connection;
use super::deliver::Delivery;
use super::report_numbers::{MOST_JUMPS, SharedNumbers};
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
    /// Where it is told that another agent reports as this machine; `None` of a logical node, which another one may host meanwhile.
    pub(super) machine: Option<watch::Sender<ReportBoard>>,
    /// How many reports were requested.
    pub(super) requested: watch::Receiver<u64>,
    /// The last of these requests that a delivered report answers.
    pub(super) delivered: watch::Sender<u64>,
    pub(super) clock: Clock,
    /// The jobs in the reports that were delivered.
    pub(super) told: ToldJobs,
    /// How many reports were delivered that did not have all jobs: another follows each.
    pub(super) parts: u64,
    /// Closed until every entity of the ledger has an account.
    pub(super) gate: StartGate,
    /// The numbers of the reports.
    pub(super) numbers: Arc<SharedNumbers<ReportBoard>>,
}

impl Delivery for ReportSender {
    type Value = (u64, u64, ReportBoard);
    const WHAT: &'static str = "the report";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let board = self.board.borrow_and_update().clone();
        self.gate.opens(board.awaited.is_empty()).then(|| (requested, self.parts, board.reported()))
    }

    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.board.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
            () = self.gate.due() => true,
        }
    }

    async fn send(&self, (requested, _, board): &Self::Value) -> Result<(), CallError> {
        let report = board.report(&self.node, self.clock.now(), &board.untold(&self.told_before(*requested)));
        let mut report = v1::report::Report { sequence: self.numbers.next(board), ..report };
        for _ in 0..MOST_JUMPS {
            let sent = self.connection.client()?.report(self.namespace.as_str(), &report).await;
            if !self.numbers.is_overtaken(&sent, self.machine.as_ref()) {
                return sent;
            }
            report.sequence = self.numbers.next(board);
        }
        self.connection.client()?.report(self.namespace.as_str(), &report).await
    }

    fn delivered(&mut self, (requested, _, board): &Self::Value) {
        let mut told = self.told_before(*requested).into_owned();
        told.extend(board.untold(&told));
        let all = board.jobs();
        told.retain(|run, _| all.contains_key(run));
        if told != all {
            self.parts = self.parts.wrapping_add(1);
        }
        self.told = told;
        self.numbers.delivered();
        self.delivered.send_replace(*requested);
    }
}

impl ReportSender {
    /// The jobs that are known where a report goes that answers this request: whoever requests one may have lost what was told.
    fn told_before(&self, requested: u64) -> Cow<'_, ToldJobs> {
        if requested == *self.delivered.borrow() { Cow::Borrowed(&self.told) } else { Cow::default() }
    }
}
