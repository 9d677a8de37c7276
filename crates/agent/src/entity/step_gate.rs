//! Lets no new step of any entity begin before the configuration is replaced, so that a reload interrupts none.

use tokio::sync::watch;

/// Counts running steps. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepGate(watch::Sender<StepGateState>);

#[derive(Debug, Default)]
struct StepGateState {
    is_closed: bool,
    running: usize,
}

/// A step that runs; dropping it ends the step.
#[derive(Debug)]
pub(crate) struct RunningStep(StepGate);

impl StepGate {
    /// Begins a step; `None` if none may begin any more.
    pub(crate) fn begin(&self) -> Option<RunningStep> {
        let begun = self.0.send_if_modified(|state| {
            state.running = state.running.saturating_add(usize::from(!state.is_closed));
            !state.is_closed
        });
        begun.then(|| RunningStep(self.clone()))
    }

    /// Lets no step begin from now on, and waits until none runs. Cancel safe.
    pub(crate) async fn close(&self) {
        self.0.send_modify(|state| state.is_closed = true);
        let mut state = self.0.subscribe();
        // The sender is here.
        drop(state.wait_for(|state| state.running == 0).await);
    }

    /// Whether the agent continues with another configuration: it leaves processes running then.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.borrow().is_closed
    }
}

impl Drop for RunningStep {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.running = state.running.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_closed_gate_waits_for_the_steps_that_run_and_lets_none_begin() {
        let gate = StepGate::default();
        let (first, second) = (gate.begin().unwrap(), gate.begin().unwrap());
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(60), gate.close()).await.is_err());
        assert!(gate.begin().is_none());
        drop(second);
        gate.close().await;
    }
}
