//! Before a change: the data store that the policy names hands over its leadership, if its probe is configured for it. Until it has, nothing
//! begins, and the wait says why.

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::delay;
use bellwether_core::local::handover::OwnHealth;
use bellwether_core::local::health_tracker::CheckSummary;
use bellwether_core::words::name::ProbeName;
use bellwether_core::words::version::Version;

use super::handover_wait::HandoverWait;
use super::rest::NextStep;
use super::task::EntityTask;
use crate::config::recipe::RecipeKind;

impl EntityTask {
    /// Asks the data store of the entity, which hands over its leadership if it leads. Answers what follows if the change must not begin now.
    pub(super) async fn held_by_store(&mut self, version: &Version) -> Option<NextStep> {
        let wanted = self.entry.memory.wanted.as_ref()?;
        let (probe, number) = (wanted.store.clone(), wanted.number);
        let Some(probe) = probe.filter(|probe| self.context.handovers.has(probe)) else {
            self.handover = None;
            return None;
        };
        if let Some(wait) =
            self.handover.as_ref().filter(|wait| wait.number == number && wait.at > self.now())
        {
            let (reason, at) = (wait.reason.clone(), wait.at);
            self.report(&AgentActivity::Held(reason));
            return Some(self.rest(Some(at)).await);
        }
        let asked = match self.ask_store(&probe, version).await {
            Ok(asked) => asked,
            Err(next) => return Some(next),
        };
        let Err(reason) = asked else {
            self.handover = None;
            return None;
        };
        let before = self.handover.take().filter(|wait| wait.number == number);
        if before.as_ref().is_none_or(|before| before.reason != reason) {
            tracing::warn!(entity = %self.name, %version, reason, "the change waits for its data store");
        }
        let failed = before.map_or(0, |before| before.failed).saturating_add(1);
        let at = self.now().plus(delay::after(failed, self.seed()));
        self.report(&AgentActivity::Held(reason.clone()));
        self.handover = Some(HandoverWait { number, reason, failed, at });
        Some(self.rest(Some(at)).await)
    }

    /// Asks the store; an error is what follows if that was interrupted.
    async fn ask_store(
        &mut self,
        probe: &ProbeName,
        version: &Version,
    ) -> Result<Result<(), String>, NextStep> {
        let Some(_running) = self.context.steps.begin() else { return Err(self.rest(None).await) };
        let health = self.own_health();
        let token = self.context.tasks.token();
        // Dropping it changes nothing that is remembered: what was begun at the store ends within its own limit, and is asked for again.
        tokio::select! {
            // Boxed, as are its own parts: it is asked deep within the task of an entity, and asks through HTTP and TLS.
            asked = Box::pin(self.context.handovers.before_change(probe, health)) => Ok(asked),
            () = self.superseded(version.as_str()) => Err(NextStep::Observe),
            () = token.cancelled() => Err(NextStep::Stop),
        }
    }

    fn own_health(&self) -> OwnHealth {
        let is_action =
            self.recipe.as_ref().is_some_and(|recipe| matches!(recipe.kind, RecipeKind::Action(..)));
        match &self.check_summary {
            CheckSummary::Unhealthy(_) => OwnHealth::Failing,
            // An action changes what others look after.
            CheckSummary::NoChecks | CheckSummary::Unknown | CheckSummary::Healthy
                if is_action || self.entry.memory.settled().is_some() =>
            {
                OwnHealth::Healthy
            }
            CheckSummary::NoChecks | CheckSummary::Unknown | CheckSummary::Healthy => OwnHealth::Unfinished,
        }
    }
}
