//! Conditions of jobs, and the variables that they and the templates of a task have: whether a job begins, is skipped or fails without a
//! beginning. Runs nothing.

use bellwether_api::v1::run::JobInputs;
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::local::work::WorkMemory;
use bellwether_core::records::evidence::Evidence;
use serde_json::{Map, Value, json};

use super::job_outputs;
use super::rest::NextStep;
use super::task::EntityTask;
use crate::disk;
use crate::facts::MachineFacts;
use crate::ledger::FrozenInputs;
use crate::renderer::holds;

impl EntityTask {
    /// The facts of this machine, as soon as they were read; none on a logical node. `None` when the agent stops.
    pub(super) async fn facts_of_machine(&self) -> Option<MachineFacts> {
        let Some(mut facts) = self.context.facts.clone() else { return Some(MachineFacts::new()) };
        let token = self.context.tasks.token();
        // Both arms only wait.
        tokio::select! {
            () = token.cancelled() => None,
            known = facts.wait_for(Option::is_some) => known.ok()?.as_ref().map(|known| known.facts.clone()),
        }
    }

    /// How far the run is, if the condition of its job lets that begin; what follows instead if not.
    pub(super) async fn unless_skipped(
        &mut self,
        frozen: &FrozenInputs,
        stored: WorkMemory,
    ) -> Result<WorkMemory, NextStep> {
        match self.condition(frozen, &stored).await {
            Ok(true) => Ok(stored),
            Ok(false) => Err(self.skip_job(stored, &frozen.inputs)),
            Err(reason) => Err(self.fail_job(stored, reason).await),
        }
    }

    /// Whether the condition of a job holds; one that was begun before goes on, whatever it says.
    ///
    /// # Errors
    /// Why that cannot be said, with the task.
    async fn condition(&self, frozen: &FrozenInputs, stored: &WorkMemory) -> Result<bool, String> {
        let FrozenInputs { inputs, .. } = frozen;
        let was_begun = stored.job.as_ref().is_some_and(|job| job.attempts > 0);
        let Some(condition) = inputs.spec.condition.as_ref().filter(|_| !was_begun) else { return Ok(true) };
        let number = inputs.index.saturating_add(1);
        let (text, variables) = (condition.clone(), self.variables(frozen));
        let held = disk::off_runtime(&self.context.tasks, move || holds(&text, variables)).await;
        held.map_err(|reason| {
            format!("task {} ({number} of {}), if: {reason}", inputs.task.task, inputs.tasks)
        })
    }

    /// Remembers that a job is skipped.
    fn skip_job(&mut self, mut stored: WorkMemory, inputs: &JobInputs) -> NextStep {
        tracing::info!(run = %self.name, task = inputs.task.task, "skipped: its condition does not hold");
        stored.skips(self.now());
        // Until it is written, it may be asked again: its inputs say the same.
        (self.stored_work, self.work_is_unkept) = (Some(stored), true);
        NextStep::Observe
    }

    /// Remembers that a job failed before it began, and the run with it.
    async fn fail_job(&mut self, stored: WorkMemory, summary: String) -> NextStep {
        let (run_name, version) = (self.next_run(), stored.version.clone());
        self.recent.clear();
        let now = self.now();
        self.note_work(stored, |memory| memory.fails(None, now)).await;
        let outcome = StepOutcome::Failed(Evidence { summary, ..Evidence::default() });
        self.keep_log(ApplyProgress::Dynamic, &version, &run_name, &outcome).await;
        self.end_run(outcome);
        NextStep::Observe
    }

    /// The variables of the condition and the templates of a task. They are the same however often the job begins.
    pub(super) fn variables(&self, frozen: &FrozenInputs) -> Map<String, Value> {
        let FrozenInputs { inputs, facts } = frozen;
        let outputs = self.stored_work.as_ref().map(job_outputs::variable);
        let variables = [
            ("params", json!(inputs.params)),
            (
                "node",
                json!({"name": self.context.node.as_str(), "namespace": self.context.namespace.as_str()}),
            ),
            ("facts", json!(facts)),
            ("outputs", json!(outputs.unwrap_or_default())),
            ("run", json!(inputs.run)),
            ("workflow", json!(inputs.workflow)),
            ("stage", json!(inputs.task.stage)),
            ("task", json!(inputs.task.task)),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
