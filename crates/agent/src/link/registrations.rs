//! Offers: what this machine offers, sent when it changed and after a break; one at a time, the latest wins.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::v1::registrations::ServiceRegistrations as Shape;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::connection::Connection;
use super::retry::before_again;
use crate::report_board::ReportBoard;
use crate::service::{InstanceKey, LocalAddresses, PublishedInstance, registered};

/// Changes that come within this travel together.
const GATHER: Duration = Duration::from_millis(5);

/// What this machine offers, on its way.
#[derive(Debug)]
pub(super) struct RegistrationSender {
    pub(super) line: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    pub(super) addresses: LocalAddresses,
    pub(super) board: watch::Receiver<ReportBoard>,
    pub(super) asks: watch::Receiver<u64>,
    pub(super) seed: u64,
}

impl RegistrationSender {
    /// Works until the level stops.
    pub(super) async fn run(mut self, level: Tasks) {
        let token = level.token();
        let (mut last, mut answered): (Option<Shape>, Option<u64>) = (None, None);
        let mut failed = 0_u32;
        loop {
            let asked = *self.asks.borrow_and_update();
            let shape = self.look();
            // A server that asks for a report has forgotten this as well.
            if last.as_ref() == Some(&shape) && answered == Some(asked) {
                // All only wait; the values are looked at again above.
                let open = tokio::select! {
                    () = token.cancelled() => return,
                    changed = self.services.changed() => changed.is_ok(),
                    changed = self.board.changed() => changed.is_ok(),
                    changed = self.asks.changed() => changed.is_ok(),
                    () = self.addresses.changed() => true,
                };
                if !open {
                    return;
                }
                tokio::time::sleep(GATHER).await;
                continue;
            }
            // One that is dropped halfway is sent whole by the next agent.
            let sent = tokio::select! {
                () = token.cancelled() => return,
                sent = self.send(&shape) => sent,
            };
            let error = match sent {
                Ok(()) => {
                    failed = 0;
                    (last, answered) = (Some(shape), Some(asked));
                    continue;
                }
                Err(error) => error,
            };
            if failed == 0 {
                tracing::warn!("could not {error}; saying again later what this machine offers");
            } else {
                tracing::debug!("could not {error}");
            }
            last = None;
            failed = failed.saturating_add(1);
            let pause = before_again(&error, failed, self.seed).to_duration();
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn look(&mut self) -> Shape {
        let services = self.services.borrow_and_update().clone();
        let board = self.board.borrow_and_update().clone();
        registered::registrations(&self.node, &services, &self.addresses.now(), &board)
    }

    async fn send(&self, shape: &Shape) -> Result<(), bellwether_api::client::CallError> {
        self.line.client()?.registration(self.namespace.as_str(), shape).await
    }
}
