//! The moving parts of a history, who can reach whom, and what has not converged yet.

use std::sync::PoisonError;

use bellwether_core::records::node::PresenceState;
use bellwether_core::records::rollout::RolloutState;
use bellwether_store::Store;
use tokio::time::Instant;

use crate::agent::Agent;
use crate::chaos::Disruption;
use crate::executions::Executions;
use crate::law::{LawSummary, Reachability};
use crate::machine::Machine;
use crate::network::Network;
use crate::run_law;
use crate::stores::TrueStores;
use crate::trace::Trace;
use crate::view_law;

/// The moving parts of a history.
pub(crate) struct Stage {
    pub(crate) store: Store,
    pub(crate) network: Network,
    pub(crate) trace: Trace,
    pub(crate) machines: Vec<Machine>,
    pub(crate) agents: Vec<Agent>,
    /// What really runs on them.
    pub(crate) executions: Executions,
    /// The data stores of the machines, if they have some.
    pub(crate) stores: Option<TrueStores>,
    pub(crate) able: Reachability,
    /// Pending repairs, by time.
    pub(crate) mends: Vec<(Instant, Disruption)>,
}

impl Stage {
    /// Records who can reach some server at each moment.
    pub(crate) fn look(&mut self) {
        let reaches = |agent: &Agent| {
            agent.moves()
                && self
                    .machines
                    .iter()
                    .all(|machine| machine.moves() && !self.network.is_cut(&agent.name, machine.number))
        };
        let mut able = self.able.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = self
            .mends
            .iter()
            .all(|(_, blow)| !matches!(blow, Disruption::Cut(_) | Disruption::StoreFaults(..)));
        for agent in &self.agents {
            let since = able.entry(agent.name.clone()).or_default();
            match (reaches(agent) && quiet, *since) {
                (true, None) => *since = Some(Instant::now()),
                (true, Some(_)) => {}
                (false, _) => *since = None,
            }
        }
    }

    /// What has not converged once faults are over; empty when everything has.
    pub(crate) fn restless(&self, seen: &LawSummary) -> String {
        let Some(fleet) = seen.world.fleets.values().next() else { return "there is no fleet".to_owned() };
        if seen.world.leader.is_none() {
            return "nobody leads".to_owned();
        }
        if seen.world.servers.size() != self.machines.len() {
            return format!("{} servers have their place", seen.world.servers.size());
        }
        for agent in &self.agents {
            let Ok(node) = agent.name.parse() else { continue };
            let contact = fleet.presences.get(&node).map(|kept| kept.value.contact);
            if contact != Some(PresenceState::Up) {
                return format!("{node} is {contact:?}");
            }
        }
        for (entity, kept) in &fleet.progresses {
            // An interrupted run has failed for good: such a rollout waits for a person, and none is left here.
            let waits = |number| {
                let rollout = fleet.rollouts.get(&(entity.clone(), number));
                rollout.is_some_and(|kept| matches!(kept.value.state, RolloutState::Paused(_)))
            };
            // Somebody aborts the runs that wait.
            let is_run = fleet.runs.contains_key(entity);
            if kept.value.active().is_some_and(|number| is_run || !waits(number)) {
                return format!("{entity} is still under way: {:?}", kept.value.activity);
            }
        }
        let unrecorded =
            self.stores.as_ref().map(|stores| view_law::restless(fleet, stores)).unwrap_or_default();
        if !unrecorded.is_empty() {
            return unrecorded;
        }
        let unrecorded = run_law::restless(fleet);
        if !unrecorded.is_empty() {
            return unrecorded;
        }
        for agent in &self.agents {
            let (Ok(node), (running, _)) = (agent.name.parse(), agent.runs()) else { continue };
            let Some(order) = fleet.orders.get(&node) else { continue };
            for (entity, assigned) in &order.value.content.entities {
                let bad = assigned.version.to_string().starts_with("bad");
                if !bad && entity.as_str() == "web" && running.get(entity) != Some(&assigned.version) {
                    return format!(
                        "{node} was assigned {} and runs {:?}",
                        assigned.version,
                        running.get(entity)
                    );
                }
            }
        }
        String::new()
    }
}
