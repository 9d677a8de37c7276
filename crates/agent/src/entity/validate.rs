//! Validation: its commands, then every check past its hysteresis, while the process keeps running.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::local::health::{CheckHistory, CheckVerdict};
use bellwether_core::local::health_tracker::{CheckSummary, vital};
use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::CheckName;
use bellwether_core::words::time::Span;
use bellwether_rt::observed;

use super::rest::ended;
use crate::apply::part::{PartContext, run_all};
use crate::apply::process::SupervisedProcess;
use crate::check::EntityChecks;
use crate::config::recipe::Recipe;

/// A process without checks passes if it runs for this observed time after its start: most that cannot start end sooner.
const SETTLE: Duration = Duration::from_secs(1);

/// Interval at which what is waited for is shown again: a check may fail for another reason than before.
const SHOWN: Duration = Duration::from_secs(5);

/// Waits for the verdict on what was just applied. The caller sets the deadline. `show` gets what is waited for, whenever that
/// changes.
pub(super) async fn validate(
    recipe: &Recipe,
    mut process: Option<&mut SupervisedProcess>,
    checks: &mut EntityChecks,
    job: &mut PartContext<'_>,
    show: impl Fn(&str, Option<String>),
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
                CheckSummary::Unhealthy(evidence) => return StepOutcome::Failed(checks.with_said(evidence)),
                CheckSummary::Unknown => show(&awaited(&checks.now()), complaint(&checks.now())),
            }
            // Both arms only wait.
            tokio::select! {
                () = checks.changed() => {}
                () = tokio::time::sleep(SHOWN) => {}
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

/// The checks without a verdict, with the reasons of those that fail.
fn awaited(checks: &BTreeMap<CheckName, CheckHistory>) -> String {
    let waits = checks.iter().filter(|(_, check)| *check.verdict() == CheckVerdict::Unknown);
    let line = |(name, check): (&CheckName, &CheckHistory)| match check.uncounted() {
        Some(message) => format!("check {name}: {message}"),
        None => format!("check {name}"),
    };
    waits.map(line).collect::<Vec<_>>().join(", and ")
}

/// The first check that fails while it starts, with its reason.
fn complaint(checks: &BTreeMap<CheckName, CheckHistory>) -> Option<String> {
    let (name, message) = checks.iter().find_map(|(name, check)| Some((name, check.uncounted()?)))?;
    Some(format!("check {name} has not passed yet: {message}"))
}

/// The evidence of a validation without a verdict within its limit.
pub(super) fn no_verdict(limit: Span, checks: &BTreeMap<CheckName, CheckHistory>) -> Evidence {
    let failing = checks.iter().filter_map(|(name, check)| Some((name, check.uncounted()?)));
    let summary = match failing.clone().next() {
        Some((name, message)) => format!("check {name} did not pass within {limit}: {message}"),
        None => format!("validate: no verdict within {limit}"),
    };
    let failing_checks = failing.map(|(name, _)| name.to_string()).collect();
    Evidence { summary, failing_checks, ..Evidence::default() }
}

#[cfg(test)]
mod tests {
    use bellwether_core::local::health::Hysteresis;
    use bellwether_core::words::time::Timestamp;

    use super::*;

    #[test]
    fn a_check_that_never_passed_is_named_with_its_last_message() {
        let name = |text: &str| CheckName::parse(text).unwrap();
        let at = Timestamp::from_millis;
        let mut checks = BTreeMap::new();
        checks.insert(name("a"), CheckHistory::new());
        assert_eq!(no_verdict(Span::from_secs(3), &checks).summary, "validate: no verdict within 3s");
        let starting =
            CheckHistory::starting(at(9)).fold(Err("status 503".into()), Hysteresis::default(), at(1));
        checks.insert(name("b"), starting);
        assert_eq!(awaited(&checks), "check a, and check b: status 503");
        let evidence = no_verdict(Span::from_secs(3), &checks);
        assert_eq!(evidence.summary, "check b did not pass within 3s: status 503");
        assert_eq!(evidence.failing_checks, ["b"]);
    }
}
