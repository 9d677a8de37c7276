//! What a run said: remembered while it runs, kept if it fails, and pointed at by the status as long as that matters.

use bellwether_core::local::memory::{Outcome, Progress};
use bellwether_core::words::name::Category;
use bellwether_core::words::version::Version;

use super::Entity;
use crate::apply::kept;
use crate::apply::log::Log;
use crate::board::{CONFIGURE, VALIDATE};

impl Entity {
    /// The entity's log, open for what a run has to say.
    pub(super) fn log(&self) -> Log {
        Log::open(&self.ground.logs.join(format!("{}.log", self.name)), self.recent.clone())
    }

    /// Keeps what a run said if it failed, and has it sent.
    pub(super) async fn keep_log(
        &mut self,
        aim: Progress,
        version: &Version,
        (run, outcome): (&str, &Outcome),
    ) {
        let (word, slot) = match aim {
            Progress::Begun | Progress::Static | Progress::Dynamic => (CONFIGURE, &mut self.failed.configure),
            Progress::Validated => (VALIDATE, &mut self.failed.validate),
        };
        *slot = None;
        let Outcome::Failed(evidence) = outcome else { return };
        let Ok(category) = Category::parse(word) else { return };
        // The last part of a run's name tells it from every other of this node.
        let run = run.rsplit('/').next().unwrap_or(run).to_owned();
        *slot = Some(run.clone());
        let headline = format!("{} {version}: {}", self.name, evidence.summary);
        let log = kept::log(&run, &headline, &self.recent.since(0));
        let (logs, entity, copy) = (self.ground.logs.clone(), self.name.clone(), log.clone());
        let of = category.clone();
        let kept = self.ground.tasks.spawn_blocking(move || kept::keep(&logs, &of, &entity, &copy)).await;
        if let Err(error) = kept.map_err(std::io::Error::other).flatten() {
            tracing::warn!(entity = %self.name, %error, "could not keep the log of a failed run");
        }
        self.ground.failed.send_modify(|waiting| {
            waiting.insert((category, self.name.clone()), log);
        });
    }
}
