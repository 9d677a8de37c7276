//! The hold of a node whose machine is to reboot or to be powered off: no job and no action begins, in this life of the agent and in the
//! next ones, until it has.

use bellwether_core::local::memory::RunOutcome;
use bellwether_core::local::work::BootEnd;
use tokio::sync::OwnedSemaphorePermit;

use super::boot_turn::BootTurn;
use super::task::EntityTask;
use crate::apply::process::boot_id;

impl EntityTask {
    /// Keeps the turn of a job that asked for the end of this boot.
    pub(super) fn hold_boot(&mut self, turn: OwnedSemaphorePermit, how: BootEnd) {
        let (run, reason) = (&self.name, &self.context.boot_reason);
        let what = match how {
            BootEnd::Reboot => "reboot",
            BootEnd::PowerOff => "be powered off",
        };
        reason.send_replace(Some(format!(
            "run {run} has asked for the machine to {what}, and nothing begins before it has; if it does not, restart \
             it by hand, or abort the run"
        )));
        self.boot_hold = Some(BootTurn::new(turn, reason.clone()));
    }

    /// Takes the turn before any other, if its run waits for the end of this boot: called when the agent starts, before anything
    /// has begun.
    pub(crate) async fn recall_boot(&mut self) {
        let Some(how) = self.boot_to_end().await else { return };
        if let Ok(turn) = self.context.lane.clone().try_acquire_owned() {
            tracing::info!(run = %self.name, ?how, "this boot has not ended since a task asked for that");
            self.hold_boot(turn, how);
        }
    }

    async fn boot_to_end(&self) -> Option<BootEnd> {
        let ran = self.entry.memory.ran.as_ref().filter(|ran| ran.outcome == RunOutcome::Begun)?;
        // What cannot be read is told by the run itself, which does nothing until it can be.
        let stored = self.context.ledger.runs().work(&self.name).await.ok().flatten()?;
        let memory = stored;
        boot_id().ok().filter(|_| memory.version == ran.version).and_then(|boot| memory.boot_to_end(&boot))
    }
}
