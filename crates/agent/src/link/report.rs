//! Reports: the whole board when it changed, when the server asks, and after a break; one at a time, the latest wins.

use std::time::Duration;

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::connection::Connection;
use super::retry::before_again;
use crate::report_board::ReportBoard;

/// Changes that come within this travel together.
const GATHER: Duration = Duration::from_millis(5);

/// The reports of this node.
#[derive(Debug)]
pub(super) struct ReportSender {
    pub(super) line: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) board: watch::Receiver<ReportBoard>,
    pub(super) asks: watch::Receiver<u64>,
    pub(super) delivered: watch::Sender<u64>,
    pub(super) clock: Clock,
    pub(super) seed: u64,
}

impl ReportSender {
    /// Works until the level stops.
    pub(super) async fn run(mut self, level: Tasks) {
        let token = level.token();
        let mut last: Option<ReportBoard> = None;
        let mut failed = 0_u32;
        loop {
            let asked = *self.asks.borrow_and_update();
            let board = self.board.borrow_and_update().clone().reported();
            let due = asked > *self.delivered.borrow() || last.as_ref() != Some(&board);
            if !due {
                // Both only wait; the values are looked at again above.
                tokio::select! {
                    () = token.cancelled() => return,
                    changed = self.board.changed() => if changed.is_err() { return },
                    changed = self.asks.changed() => if changed.is_err() { return },
                }
                tokio::time::sleep(GATHER).await;
                continue;
            }
            // A report that is dropped halfway is sent whole by the next agent.
            let sent = tokio::select! {
                () = token.cancelled() => return,
                sent = self.send(&board) => sent,
            };
            let error = match sent {
                Ok(()) => {
                    failed = 0;
                    last = Some(board);
                    self.delivered.send_replace(asked);
                    continue;
                }
                Err(error) => error,
            };
            if failed == 0 {
                tracing::warn!("could not {error}; sending the report again later");
            } else {
                tracing::debug!("could not {error}");
            }
            // After a break the server may be another one, or have forgotten: the next report is due in any case.
            last = None;
            failed = failed.saturating_add(1);
            let pause = before_again(&error, failed, self.seed).to_duration();
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn send(&self, board: &ReportBoard) -> Result<(), bellwether_api::client::CallError> {
        let report = board.report(&self.node, self.clock.now());
        self.line.client()?.report(self.namespace.as_str(), &report).await
    }
}
