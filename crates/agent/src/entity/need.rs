//! Needs: the dynamic part does not begin before every service it needs is there. Watched in this machine's copy of the
//! catalogue, not asked for over and over.

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
    /// What the recipe needs and is not there, first to last.
    pub(super) fn unmet(&mut self, recipe: &Recipe) -> Vec<UnmetNeed> {
        let snapshot = self.context.snapshot.borrow_and_update().clone();
        let unmet: Vec<UnmetNeed> =
            recipe.needs.iter().filter_map(|need| need.unmet(&snapshot.catalogue)).collect();
        if unmet.is_empty() {
            self.needing = None;
        }
        unmet
    }

    /// Says what is waited for, and waits until something changes; when that took too long, the step has failed, unless it
    /// is to wait on.
    pub(super) async fn wait_for(&mut self, unmet: &[UnmetNeed]) -> NextStep {
        let now = self.now();
        let since = *self.needing.get_or_insert(now);
        let late = unmet.iter().filter_map(|unmet| Some((unmet, unmet.need.timeout?)));
        let late: Vec<(&UnmetNeed, Span)> =
            late.filter(|(_, timeout)| now.since(since) >= *timeout).collect();
        let lost = late.iter().find(|(unmet, _)| unmet.need.on_timeout == OnTimeout::Fail);
        if let Some((unmet, timeout)) = lost {
            let summary = format!("dynamic: waited {timeout} for {unmet}");
            let outcome = StepOutcome::Failed(Evidence { summary, ..Evidence::default() });
            self.needing = None;
            let version = self.entry.memory.touched.clone();
            if let Some(version) = version {
                self.log_outcome(&version, ApplyProgress::Dynamic, &outcome);
            }
            let seed = self.seed();
            self.entry.memory.ended(ApplyProgress::Dynamic, outcome, now, seed);
            return NextStep::Look;
        }
        let ends = unmet.iter().filter_map(|unmet| Some(since.plus(unmet.need.timeout?)));
        let ends = ends.filter(|at| *at > now).min();
        self.say_lacking(unmet, late.first().map(|(_, timeout)| *timeout));
        self.rest(ends).await
    }

    fn say_lacking(&self, unmet: &[UnmetNeed], late: Option<Span>) {
        let said: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        let late = late.map(|late| format!(" (for longer than {late})")).unwrap_or_default();
        let busy = AgentActivity::Held(format!("needs {}{late}", said.join(", and ")));
        let account = EntityAccount::of(&self.entry.memory, &busy, &self.vital, self.wellness.since());
        let lacks: BTreeSet<_> = unmet.iter().map(|unmet| unmet.need.service.clone()).collect();
        self.put(account.with_runs(&self.failed).lacking(lacks));
    }

    /// Whether needs are waited for, so that a change of the catalogue is looked at.
    pub(super) const fn is_needing(&self) -> bool {
        self.needing.is_some()
    }
}
