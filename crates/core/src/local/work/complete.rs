//! The tasks of a run that are complete: their jobs, with the outputs that they wrote.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::WorkMemory;
use crate::records::job::{Job, MAX_OUTPUT_BYTES, MAX_RUN_OUTPUT_BYTES, NodeJobs, OutputsTooLarge};

impl WorkMemory {
    /// Takes over what another ledger had of the tasks that are complete, unless this one has it.
    pub fn recalls(&mut self, jobs: Vec<Job>) {
        if self.jobs.is_empty() {
            self.jobs = jobs.into_iter().filter(|job| job.index < self.complete).collect();
        }
    }

    /// Called when the script of the task that is next ended so that the task is complete, with the outputs that it wrote: a JSON object
    /// as text.
    ///
    /// # Errors
    /// [`OutputsTooLarge`]; nothing is remembered then.
    pub fn writes(&mut self, outputs: Arc<str>) -> Result<(), OutputsTooLarge> {
        if outputs.len() > MAX_OUTPUT_BYTES {
            return Err(OutputsTooLarge::OfTask);
        }
        if NodeJobs::output_bytes(&self.jobs).saturating_add(outputs.len()) > MAX_RUN_OUTPUT_BYTES {
            return Err(OutputsTooLarge::OfRun);
        }
        if let Some(job) = self.present() {
            job.outputs = Some(outputs);
        }
        Ok(())
    }

    /// The jobs of the tasks that are complete, in their order. They do not change any more.
    pub fn complete_jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.index < self.complete)
    }
}
