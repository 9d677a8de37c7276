//! Validation: its commands, then every check past its hysteresis, while the process keeps running.

use std::time::Duration;

use bellwether_core::local::health_tracker::{CheckSummary, vital};
use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_rt::observed;

use super::rest::ended;
use crate::apply::part::{PartContext, run_all};
use crate::apply::process::SupervisedProcess;
use crate::check::EntityChecks;
use crate::config::recipe::Recipe;

/// A process without checks passes if it runs for this observed time after its start: most that cannot start end sooner.
const SETTLE: Duration = Duration::from_secs(1);

/// Waits for the verdict on what was just applied. The caller sets the deadline.
pub(super) async fn validate(
    recipe: &Recipe,
    mut process: Option<&mut SupervisedProcess>,
    checks: &mut EntityChecks,
    job: &mut PartContext<'_>,
) -> StepOutcome {
    let verdict = async {
        match run_all("validate", &recipe.validation, job).await {
            StepOutcome::Done => {}
            other @ (StepOutcome::NotYet(_) | StepOutcome::Failed(_)) => return other,
        }
        let bare = recipe.checks.is_empty();
        if bare && recipe.process.is_some() {
            observed::sleep(SETTLE).await;
        }
        loop {
            match vital(&checks.now()) {
                CheckSummary::NoChecks | CheckSummary::Healthy => return StepOutcome::Done,
                CheckSummary::Unhealthy(evidence) => return StepOutcome::Failed(evidence),
                CheckSummary::Unknown => checks.changed().await,
            }
        }
    };
    // The end of the process decides; dropping the rest kills the running command.
    tokio::select! {
        biased;
        () = ended(process.as_deref_mut()) => {}
        outcome = verdict => return outcome,
    }
    let evidence = process.and_then(|process| process.ended()).unwrap_or_default();
    StepOutcome::Failed(Evidence { summary: format!("validate: {}", evidence.summary), ..evidence })
}
