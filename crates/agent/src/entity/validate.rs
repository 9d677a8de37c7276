//! Validating: the validation's commands, then every check past its hysteresis, with the process alive throughout.

use std::time::Duration;

use bellwether_core::local::health_tracker::{CheckSummary, vital};
use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_rt::tasks::Tasks;

use super::rest::ended;
use crate::apply::CommandFacts;
use crate::apply::log::EntityLog;
use crate::apply::part::{PartContext, run_all};
use crate::apply::process::SupervisedProcess;
use crate::check::EntityChecks;
use crate::config::recipe::Recipe;

/// A process without checks passes when it is alive this long after its start: most that cannot start end sooner.
const SETTLE: Duration = Duration::from_secs(1);

/// Waits for the verdict on what was just applied. The caller holds the deadline.
pub(super) async fn validate(
    recipe: &Recipe,
    facts: &CommandFacts,
    (mut process, checks): (Option<&mut SupervisedProcess>, &mut EntityChecks),
    tasks: &Tasks,
    log: &mut EntityLog,
) -> StepOutcome {
    let verdict = async {
        match commands(recipe, facts, tasks, log).await {
            StepOutcome::Done => {}
            other @ (StepOutcome::NotYet(_) | StepOutcome::Failed(_)) => return other,
        }
        let bare = recipe.checks.is_empty();
        if bare && recipe.process.is_some() {
            tokio::time::sleep(SETTLE).await;
        }
        loop {
            match vital(&checks.now()) {
                CheckSummary::NoChecks | CheckSummary::Healthy => return StepOutcome::Done,
                CheckSummary::Unhealthy(evidence) => return StepOutcome::Failed(evidence),
                CheckSummary::Unknown => checks.turned().await,
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
    StepOutcome::Failed(Evidence { summary: format!("validate: {}", evidence.summary), ..evidence })
}

/// Runs the validation's own steps.
pub(super) async fn commands(
    recipe: &Recipe,
    facts: &CommandFacts,
    tasks: &Tasks,
    log: &mut EntityLog,
) -> StepOutcome {
    let mut job = PartContext::new(facts, recipe.timeout.to_duration(), log, tasks);
    run_all("validate", &recipe.validation, &mut job).await
}
