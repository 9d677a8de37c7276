//! The demo's expectations, checked against the fleet itself rather than against the demo's own script.

use bellwether_api::v1::rollout::{RolloutState, RolloutView};
use bellwether_core::words::plural::plural;

use super::fleet::Fleet;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::paint::{Paint, Tone};

/// Expectations with whether they were met.
#[derive(Debug, Default)]
pub(super) struct Expectations(Vec<(String, Result<(), String>)>);

impl Expectations {
    fn check(&mut self, what: String, held: bool, found: impl FnOnce() -> String) {
        self.0.push((what, if held { Ok(()) } else { Err(found()) }));
    }

    /// The version became last known good.
    pub(super) fn good(&mut self, view: &RolloutView, version: &str) {
        let good = view.progress.last_known_good.as_deref();
        self.check(format!("{version} became last known good"), good == Some(version), || reason(view));
    }

    /// The lost node is unreachable, does not count as failed, and the rollout ended without it.
    pub(super) async fn lost(
        &mut self,
        view: &RolloutView,
        fleet: &Fleet,
        lost: &str,
    ) -> Result<(), Failure> {
        let node = fleet.context()?.client.node("default", lost).await?;
        let contact = node.presence.state;
        self.check(format!("{lost} is unreachable"), contact == "unreachable", || format!("it is {contact}"));
        let failed = view.counts.failed;
        self.check(format!("{lost} does not count as failed"), failed == 0, || reason(view));
        Ok(())
    }

    /// The version became known bad after its first batch and rolled back.
    pub(super) fn rolled_back(&mut self, view: &RolloutView, bad: &str, good: &str, batch: u64) {
        let known = view.progress.bad.last().map(|bad| bad.version.as_str());
        self.check(format!("{bad} became last known bad"), known == Some(bad), || reason(view));
        let still = view.progress.last_known_good.as_deref();
        self.check(format!("{good} is still last known good"), still == Some(good), || reason(view));
        let state = view.rollout.as_ref().map(|rollout| rollout.status.state);
        let back = matches!(state, Some(RolloutState::RolledBack));
        self.check(format!("{bad} was rolled back"), back, || reason(view));
        let touched = view.rollout.as_ref().map_or(0, |rollout| rollout.batches.len());
        let only_first = touched == 1 && view.counts.rolled_back <= batch;
        let found = || format!("{touched} batches, {} rolled back", view.counts.rolled_back);
        self.check(format!("only the first batch ever saw {bad}"), only_first, found);
    }

    /// Every service but the lost node's answers with the version, asked over HTTP.
    pub(super) async fn pages(&mut self, fleet: &Fleet, version: &str, lost: &str) {
        let pages = fleet.pages().await;
        let wrong: Vec<String> = pages
            .iter()
            .filter(|(name, page)| *name != lost && page.as_deref() != Some(version))
            .map(|(name, page)| format!("{name} reports {}", page.as_deref().unwrap_or("nothing")))
            .collect();
        self.check(format!("every living service serves {version}"), wrong.is_empty(), || wrong.join(", "));
    }

    /// One line for each expectation.
    pub(super) fn lines(&self, paint: Paint) -> Vec<String> {
        let line = |(what, held): &(String, Result<(), String>)| match held {
            Ok(()) => format!("  {} {what}", paint.text(Tone::Good, "✓")),
            Err(found) => format!("  {} {what}: {found}", paint.text(Tone::Bad, "✗")),
        };
        self.0.iter().map(line).collect()
    }

    /// Yes only if every expectation was met.
    pub(super) fn verdict(&self) -> CommandResult {
        let broken = self.0.iter().filter(|(_, held)| held.is_err()).count();
        if broken == 0 && !self.0.is_empty() {
            return Ok(Exit::Yes);
        }
        Err(Failure::new(Exit::No, format!("verify the demo: {} not met", plural(broken, "expectation"))))
    }
}

/// Why the rollout is in its state, with its first failure.
pub(super) fn reason(view: &RolloutView) -> String {
    let first = view.rollout.as_ref().and_then(|rollout| rollout.failures.first());
    match first {
        Some(first) if !view.reason.contains(&first.evidence.summary) => {
            format!("{}; {} failed first: {}", view.reason, first.target, first.evidence.summary)
        }
        Some(_) | None => view.reason.clone(),
    }
}
