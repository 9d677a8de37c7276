//! Needs: the dynamic part does not begin before every service it needs is there, by this node's copy of the catalogue.

use std::collections::BTreeSet;

use bellwether_core::catalogue::need::{OnTimeout, UnmetNeed};
use bellwether_core::local::account::{AgentActivity, EntityAccount};
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::time::Span;

use super::rest::NextStep;
use super::task::EntityTask;
use crate::config::recipe::Recipe;

impl EntityTask {
    /// The unmet needs of the recipe, in its order.
    pub(super) fn unmet(&mut self, recipe: &Recipe) -> Vec<UnmetNeed> {
        let snapshot = self.context.snapshot.borrow_and_update().clone();
        let unmet: Vec<UnmetNeed> =
            recipe.needs.iter().filter_map(|need| need.unmet(&snapshot.catalogue)).collect();
        if unmet.is_empty() {
            self.needs_since = None;
        }
        unmet
    }

    /// Reports what is waited for, and waits for a change; after a need's timeout the step fails, or waits on, as configured.
    pub(super) async fn wait_for(&mut self, unmet: &[UnmetNeed]) -> NextStep {
        let now = self.now();
        let since = *self.needs_since.get_or_insert(now);
        let late = unmet.iter().filter_map(|unmet| Some((unmet, unmet.need.timeout?)));
        let late: Vec<(&UnmetNeed, Span)> =
            late.filter(|(_, timeout)| now.since(since) >= *timeout).collect();
        let lost = late.iter().find(|(unmet, _)| unmet.need.on_timeout == OnTimeout::Fail);
        if let Some((unmet, timeout)) = lost {
            let summary = format!("dynamic: waited {timeout} for {unmet}");
            let outcome = StepOutcome::Failed(Evidence { summary, ..Evidence::default() });
            self.needs_since = None;
            let version = self.entry.memory.touched.clone();
            if let Some(version) = version {
                self.log_outcome(&version, ApplyProgress::Dynamic, &outcome);
            }
            let seed = self.seed();
            self.entry.memory.ended(ApplyProgress::Dynamic, outcome, now, seed);
            return NextStep::Observe;
        }
        let ends = unmet.iter().filter_map(|unmet| Some(since.plus(unmet.need.timeout?)));
        let ends = ends.filter(|at| *at > now).min();
        self.report_needs(unmet, late.first().map(|(_, timeout)| *timeout));
        self.rest(ends).await
    }

    fn report_needs(&self, unmet: &[UnmetNeed], late: Option<Span>) {
        let said: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        let late = late.map(|late| format!(" (for longer than {late})")).unwrap_or_default();
        let busy = AgentActivity::Held(format!("needs {}{late}", said.join(", and ")));
        let account = EntityAccount::of(&self.entry.memory, &busy, &self.check_summary, self.health.since());
        let waits_for: BTreeSet<_> = unmet.iter().map(|unmet| unmet.need.service.clone()).collect();
        self.put(account.with_runs(&self.failed).waiting_for(waits_for));
    }

    /// Whether the entity waits for needs, so that changes of the catalogue matter.
    pub(super) const fn waits_for_needs(&self) -> bool {
        self.needs_since.is_some()
    }
}
