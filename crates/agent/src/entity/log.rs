//! What a run said: remembered while it runs, kept if it fails, and pointed at by the status as long as that matters.

use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::words::name::Category;
use bellwether_core::words::version::Version;

use super::task::EntityTask;
use crate::apply::log::EntityLog;
use crate::apply::log_store;
use crate::report_board::{CONFIGURE, VALIDATE};

impl EntityTask {
    /// The entity's log, open for what a run has to say.
    pub(super) fn log(&self) -> EntityLog {
        EntityLog::open(&self.context.logs.join(format!("{}.log", self.name)), self.recent.clone())
    }

    /// Keeps what a run said if it failed, and has it sent.
    pub(super) async fn keep_log(
        &mut self,
        aim: ApplyProgress,
        version: &Version,
        (run, outcome): (&str, &StepOutcome),
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
        // The last part of a run's name tells it from every other of this node.
        let run = run.rsplit('/').next().unwrap_or(run).to_owned();
        *slot = Some(run.clone());
        let headline = format!("{} {version}: {}", self.name, evidence.summary);
        let log = log_store::log(&run, &headline, &self.recent.since(0));
        let (logs, entity, copy) = (self.context.logs.clone(), self.name.clone(), log.clone());
        let of = category.clone();
        let kept =
            self.context.tasks.spawn_blocking(move || log_store::keep(&logs, &of, &entity, &copy)).await;
        if let Err(error) = kept.map_err(std::io::Error::other).flatten() {
            tracing::warn!(entity = %self.name, %error, "could not keep the log of a failed run");
        }
        self.context.failed.send_modify(|waiting| {
            waiting.insert((category, self.name.clone()), log);
        });
    }
}
