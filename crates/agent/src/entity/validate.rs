//! Validating: the validation's commands, then every check past its hysteresis, with the process alive throughout.

use std::time::Duration;

use bellwether_core::local::memory::Outcome;
use bellwether_core::local::wellness::{Vital, vital};
use bellwether_core::records::evidence::Evidence;
use bellwether_rt::tasks::Tasks;

use super::ended;
use crate::apply::Facts;
use crate::apply::log::Log;
use crate::apply::part::{Job, run_all};
use crate::apply::process::Process;
use crate::check::Checks;
use crate::config::recipe::Recipe;

/// A process without checks passes when it is alive this long after its start: most that cannot start end sooner.
const SETTLE: Duration = Duration::from_secs(1);

/// Waits for the verdict on what was just applied. The caller holds the deadline.
pub(super) async fn validate(
    recipe: &Recipe,
    facts: &Facts,
    (mut process, checks): (Option<&mut Process>, &mut Checks),
    tasks: &Tasks,
    log: &mut Log,
) -> Outcome {
    let verdict = async {
        match commands(recipe, facts, tasks, log).await {
            Outcome::Done => {}
            other @ (Outcome::NotYet(_) | Outcome::Failed(_)) => return other,
        }
        let bare = recipe.checks.is_empty();
        if bare && recipe.process.is_some() {
            tokio::time::sleep(SETTLE).await;
        }
        loop {
            match vital(&checks.now()) {
                Vital::NoChecks | Vital::Well => return Outcome::Done,
                Vital::Unwell(evidence) => return Outcome::Failed(evidence),
                Vital::Unknown => checks.turned().await,
            }
        }
    };
    // A process that ends decides it; dropping the rest kills the command that runs.
    tokio::select! {
        biased;
        () = ended(process.as_deref_mut()) => {}
        outcome = verdict => return outcome,
    }
    let evidence = process.and_then(|process| process.ended()).unwrap_or_default();
    Outcome::Failed(Evidence { summary: format!("validate: {}", evidence.summary), ..evidence })
}

/// Runs the validation's own steps.
pub(super) async fn commands(recipe: &Recipe, facts: &Facts, tasks: &Tasks, log: &mut Log) -> Outcome {
    let mut job = Job::new(facts, recipe.timeout.to_duration(), log, tasks);
    run_all("validate", &recipe.validation, &mut job).await
}
