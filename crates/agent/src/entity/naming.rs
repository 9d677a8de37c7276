//! Whether orders name a run. One that is withdrawn ends and is forgotten; one that a restored control plane does not know is kept.

use std::sync::Arc;

use bellwether_core::local::memory::RunOutcome;
use bellwether_core::records::order::Order;

use super::rest::NextStep;
use super::task::EntityTask;
use crate::apply::log_store;

impl EntityTask {
    /// Whether the order has this run. It goes on knowing one that the order does not have, until it is withdrawn.
    pub(super) fn is_named(&self) -> bool {
        let order = self.context.orders.borrow();
        order.as_ref().is_none_or(|order| order.content.entities.contains_key(&self.name))
    }

    /// Waits until the run is named again, or withdrawn. It is no state of the node meanwhile: nobody may ever name it.
    pub(super) async fn rest_unnamed(&mut self) -> NextStep {
        self.remove_account();
        self.rest(None).await
    }

    /// Waits until an order withdraws this run, which is so once it was aborted.
    pub(super) fn withdrawn(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut orders, run) = (self.context.orders.clone(), self.name.clone());
        let mut memory = self.entry.memory.clone();
        async move {
            let is_gone = |order: &Option<Arc<Order>>| {
                let Some(order) = order else { return false };
                let is_named = order.content.entities.contains_key(&run);
                if is_named {
                    memory.named_in = order.epoch;
                }
                !is_named && memory.is_withdrawn_in(order.epoch)
            };
            if orders.wait_for(is_gone).await.is_err() {
                // The agent stops.
                std::future::pending().await
            }
        }
    }

    /// Removes a run that is not assigned any more, and ends its task.
    pub(super) async fn forget(&mut self) -> NextStep {
        // Of one that began in the life of another agent it is not known how far it came.
        let had_job = self.stored_work.as_ref().is_none_or(|stored| stored.has_begun());
        let had_begun =
            self.entry.memory.ran.as_ref().is_some_and(|ran| ran.outcome != RunOutcome::Begun || had_job);
        if let Err(error) = self.context.ledger.runs().forget(&self.name, had_begun).await {
            return self.hold(error.to_string()).await;
        }
        self.context.unsent_logs.send_modify(|waiting| waiting.retain(|(_, of), _| *of != self.name));
        let (logs, name) = (self.context.logs.clone(), self.name.clone());
        let removed = self.context.tasks.spawn_blocking(move || log_store::forget(&logs, &name)).await;
        if let Err(error) = removed.map_err(std::io::Error::other).flatten() {
            tracing::warn!(run = %self.name, %error, "cannot remove the logs of a run");
        }
        self.forgotten_here();
        self.remove_account();
        tracing::info!(run = %self.name, "forgotten");
        NextStep::Stop
    }
}
