//! Needs: the dynamic part does not begin before every service it needs is there, by this node's copy of the catalogue.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::catalogue::need::{OnTimeout, UnmetNeed};
use bellwether_core::local::account::{AgentActivity, EntityAccount};
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::time::Span;
use bellwether_rt::observed::TimeLimit;

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
            self.need_limits = None;
        }
        unmet
    }

    /// Reports what is waited for, and waits for a change; after a need's timeout, in observed time, the step fails, or waits on, as
    /// configured.
    pub(super) async fn wait_for(&mut self, unmet: &[UnmetNeed]) -> NextStep {
        let limits = self.need_limits.get_or_insert_default();
        let mut late: Vec<(&UnmetNeed, Span)> = Vec::new();
        let mut next: Option<Duration> = None;
        for unmet in unmet {
            let Some(timeout) = unmet.need.timeout else { continue };
            let limit = limits.entry(unmet.need.clone());
            let limit = limit.or_insert_with(|| TimeLimit::new(timeout.to_duration()));
            let step = limit.next_step();
            if step.is_zero() {
                late.push((unmet, timeout));
            } else {
                next = Some(next.map_or(step, |next| next.min(step)));
            }
        }
        let lost = late.iter().find(|(unmet, _)| unmet.need.on_timeout == OnTimeout::Fail);
        let now = self.now();
        if let Some((unmet, timeout)) = lost {
            let summary = format!("dynamic: waited {timeout} for {unmet}");
            let outcome = StepOutcome::Failed(Evidence { summary, ..Evidence::default() });
            self.need_limits = None;
            let version = self.entry.memory.touched.clone();
            if let Some(version) = version {
                self.log_outcome(&version, ApplyProgress::Dynamic, &outcome);
            }
            let seed = self.seed();
            self.entry.memory.ended(ApplyProgress::Dynamic, outcome, now, seed);
            return NextStep::Observe;
        }
        let ends =
            next.map(|next| now.plus(Span::from_millis(u64::try_from(next.as_millis()).unwrap_or(u64::MAX))));
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
        self.need_limits.is_some()
    }
}
