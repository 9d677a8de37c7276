//! An entity whose versions are runs of an action: each is begun at most once, and is in the ledger before it begins.

use bellwether_core::local::account::Busy;
use bellwether_core::local::action::{Step, next};
use bellwether_core::local::memory::{Outcome, Progress};
use bellwether_core::local::plan::Rest;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::ActionName;
use bellwether_core::words::version::Version;

use super::{Entity, Next};
use crate::apply::exec::{Exit, run};
use crate::config::recipe::Action;

impl Entity {
    /// Looks once at what was told of an action, and does the one thing that follows.
    pub(super) async fn act(&mut self, name: &ActionName, action: &Action) -> Next {
        match next(&self.entry.memory, self.paused.is_some()) {
            Step::Run(version) => self.run_once(name, action, &version).await,
            Step::Acknowledge(version) => {
                tracing::info!(entity = %self.name, %version, "is taken as run; nothing is run");
                self.entry.memory.acknowledges(&version);
                Next::Look
            }
            Step::Rest(Rest::Paused) => self.rest_paused(None).await,
            Step::Rest(Rest::Right | Rest::ToldNothing | Rest::BackingOff | Rest::Spent) => {
                self.say(&Busy::No);
                self.rest(None).await
            }
        }
    }

    async fn run_once(&mut self, name: &ActionName, action: &Action, version: &Version) -> Next {
        self.entry.memory.runs(version);
        let run_name = self.next_run();
        self.entry.run = Some(run_name.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        tracing::info!(entity = %self.name, %version, action = %name, "runs");
        self.say(&Busy::Step(Progress::Dynamic));
        self.recent.clear();
        let (facts, mut log) = (self.facts(version, run_name.clone()), self.log());
        let token = self.ground.tasks.token();
        // An agent that ends here leaves the run in its ledger: the next one says that it was cut short.
        let ended = tokio::select! {
            ended = run(&action.command, &facts, action.timeout.to_duration(), Some(&mut log)) => ended,
            () = token.cancelled() => return Next::Stop,
        };
        let outcome = match ended.exit {
            Exit::Done => Outcome::Done,
            exit @ (Exit::NotYet
            | Exit::Code(_)
            | Exit::Signal(_)
            | Exit::TimedOut(_)
            | Exit::NotStarted(_)) => {
                let summary = format!("action {name}: {exit}");
                let (exit_code, tail) = (exit.code(), ended.tail);
                let evidence = Evidence { summary, exit_code, tail, failing_checks: Vec::new() };
                Outcome::Failed(evidence)
            }
        };
        self.entry.run = None;
        self.log_outcome(version, Progress::Dynamic, &outcome);
        self.keep_log(Progress::Dynamic, version, (&run_name, &outcome)).await;
        let (now, seed) = (self.now(), self.seed());
        self.entry.memory.finished(outcome, now, seed);
        Next::Look
    }
}
