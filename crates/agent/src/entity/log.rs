//! Output of runs: remembered while a run lasts, stored if it fails, and referenced by the status as long as that matters.

use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::Category;
use bellwether_core::words::version::Version;

use super::task::EntityTask;
use crate::apply::job_log::JobLogFile;
use crate::apply::log::EntityLog;
use crate::apply::log_store;
use crate::report_board::{CONFIGURE, VALIDATE};

impl EntityTask {
    /// The entity's log, open for a run.
    pub(super) fn log(&self) -> EntityLog {
        EntityLog::open(&self.context.logs.join(format!("{}.log", self.name)), self.recent.clone())
    }

    /// The log of the job that the run is at, open for its script.
    pub(super) fn job_log(&self) -> EntityLog {
        let index = self.stored_work.as_ref().map_or(0, |stored| stored.complete);
        match JobLogFile::open(&self.context.logs, &self.name, index) {
            Ok(file) => EntityLog::of_job(file, self.recent.clone()),
            Err(error) => {
                tracing::warn!(run = %self.name, %error, "cannot open the log of a job; its output goes to the log of the run");
                self.log()
            }
        }
    }

    /// Stores and sends the output of a run if it failed.
    pub(super) async fn keep_log(
        &mut self,
        aim: ApplyProgress,
        version: &Version,
        run: &str,
        outcome: &StepOutcome,
    ) {
        let (word, slot) = match aim {
            ApplyProgress::Begun | ApplyProgress::Static | ApplyProgress::Dynamic => {
                (CONFIGURE, &mut self.failed.configure)
            }
            ApplyProgress::Validated => (VALIDATE, &mut self.failed.validate),
        };
        *slot = None;
        let StepOutcome::Failed(evidence) = outcome else { return };
        let Ok(category) = Category::parse(word) else { return };
        // The last part of a run's name is unique on this node.
        let run = run.rsplit('/').next().unwrap_or(run).to_owned();
        *slot = Some(run.clone());
        let headline = format!("{} {version}: {}", self.name, evidence.summary);
        let log = log_store::log(&run, &headline, &self.output(evidence));
        let (logs, entity, copy) = (self.context.logs.clone(), self.name.clone(), log.clone());
        let of = category.clone();
        let kept =
            self.context.tasks.spawn_blocking(move || log_store::keep(&logs, &of, &entity, &copy)).await;
        if let Err(error) = kept.map_err(std::io::Error::other).flatten() {
            tracing::warn!(entity = %self.name, %error, "cannot store the log of a failed run");
        }
        self.context.unsent_logs.send_modify(|waiting| {
            waiting.insert((category, self.name.clone()), log);
        });
    }

    /// The output of a failed run, and the end of that of the process, if its end is the failure: it writes a log of its own.
    fn output(&self, evidence: &Evidence) -> String {
        let output = self.recent.since(0);
        let tail = evidence.tail.trim();
        if tail.is_empty() || output.contains(tail) {
            return output;
        }
        let end = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        format!("{output}{end}{}", evidence.tail)
    }

    /// Stores and sends the end of the output of a process that ended after its version was validated.
    pub(super) async fn log_end(&mut self) {
        let ended = self.ended.take().zip(self.entry.memory.settled().cloned());
        let Some((evidence, version)) = ended else { return };
        self.recent.clear();
        let (run, outcome) = (self.next_run(), StepOutcome::Failed(evidence));
        self.keep_log(ApplyProgress::Validated, &version, &run, &outcome).await;
    }
}
