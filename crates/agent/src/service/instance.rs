//! One instance: runs its checks, receives its TTL updates, and publishes its health whenever it changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::catalogue::need::UnmetNeed;
use bellwether_core::local::ttl::{TtlCheck, down, serving, waiting};
use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::words::name::CheckName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::sleep_or_never;
use tokio::sync::{oneshot, watch};

use super::process_phase::{ProcessPhase, ProcessPhases};
use super::published::{PublishedInstance, PublishedInstances};
use super::request::{RegistryRequest, RegistryRequests};
use crate::apply::CommandFacts;
use crate::apply::process::ProcessMark;
use crate::catalogue::CatalogueSnapshot;
use crate::check::{CheckContext, EntityChecks};
use crate::check_store::{CheckOwner, CheckStore, StoredCheck, StoredChecks};
use crate::config::service::Service;

/// The TTL checks of an instance with their last updates.
pub(crate) type TtlChecks = watch::Receiver<BTreeMap<CheckName, TtlCheck>>;

/// The task of one instance.
pub(super) struct InstanceTask {
    pub(super) service: Arc<Service>,
    pub(super) ttl_checks: TtlChecks,
    /// The supervised processes of entities.
    pub(super) processes: watch::Receiver<ProcessPhases>,
    /// The process that this agent started for its entity, and since when results are about that one.
    pub(super) process: Option<(ProcessMark, Timestamp)>,
    /// The services of other nodes, for its needs.
    pub(super) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    /// Whether its needs were met before.
    pub(super) met: bool,
    pub(super) registry: RegistryRequests,
    pub(super) published: PublishedInstances,
    /// The states of its checks over a restart.
    pub(super) check_store: CheckStore,
    pub(super) clock: Clock,
    pub(super) node: String,
    pub(super) seed: u64,
}

impl InstanceTask {
    /// Runs until the instance is removed or the agent stops.
    pub(super) async fn run(mut self, tasks: Tasks) {
        let token = tasks.token();
        let owner = CheckOwner::Service(self.service.key());
        let stored = self.check_store.get(&owner);
        let mut checks = self.start_checks(&stored.checks, &tasks);
        drop(stored);
        // A need that was met once and is lost again does not make the instance wait again.
        let mut waits = !self.service.needs.is_empty() && !self.met;
        loop {
            let now = self.clock.now();
            let phase = self.phase();
            if let Some(ProcessPhase::Up { mark, .. }) = &phase
                && self.process.as_ref().is_none_or(|(known, _)| known != mark)
            {
                // What was found of the process before says nothing about this one.
                self.process = Some((mark.clone(), now));
                checks = self.start_checks(&BTreeMap::new(), &tasks);
            }
            let ttl_checks = self.ttl_updates();
            let unmet = if waits { self.unmet() } else { Vec::new() };
            if waits && unmet.is_empty() {
                waits = false;
                // On disk before it is published; an interrupted write is repeated by the next agent.
                tokio::select! {
                    () = token.cancelled() => return,
                    () = self.keep_met() => {}
                }
            }
            let held = self.held(phase.as_ref());
            self.show(&unmet, held, checks.have_results(), || serving(&checks.now(), &ttl_checks, now));
            self.check_store.put(&owner, self.stored(&checks, &ttl_checks));
            let ends = ttl_checks.values().filter_map(|check| check.ends(now)).min();
            let wait = ends.map(|at| at.since(now).to_duration() + Duration::from_millis(1));
            // All arms only wait; everything is read again above.
            tokio::select! {
                () = token.cancelled() => return,
                () = checks.changed() => {}
                ttl_checks = self.ttl_checks.changed() => if ttl_checks.is_err() { return },
                process = self.processes.changed() => if process.is_err() { return },
                news = self.snapshot.changed(), if waits => if news.is_err() { return },
                () = sleep_or_never(wait) => {}
            }
        }
    }

    fn start_checks(&self, stored: &BTreeMap<CheckName, StoredCheck>, tasks: &Tasks) -> EntityChecks {
        let facts = CommandFacts { node: self.node.clone(), ..CommandFacts::default() };
        let (clock, seed) = (&self.clock, self.seed);
        let context = CheckContext { facts: &facts, clock, tasks, seed, starting_until: None };
        EntityChecks::start(&self.service.checks, stored, context)
    }

    /// The phase of its entity's process; `None` if there is none, or an agent before had started it.
    fn phase(&mut self) -> Option<ProcessPhase> {
        let phases = self.processes.borrow_and_update();
        phases.get(self.service.entity.as_ref()?).cloned()
    }

    /// Its TTL checks, without updates from before its process was started.
    fn ttl_updates(&mut self) -> BTreeMap<CheckName, TtlCheck> {
        let mut all = self.ttl_checks.borrow_and_update().clone();
        if let Some((_, since)) = &self.process {
            for check in all.values_mut() {
                check.last.take_if(|(at, _, _)| *at < *since);
            }
        }
        all
    }

    /// Its state by its process, whatever its checks find; `None` if its checks decide.
    fn held(&self, phase: Option<&ProcessPhase>) -> Option<CheckStatus> {
        let has_checks = !self.service.checks.is_empty() || !self.service.ttl_checks.is_empty();
        match phase? {
            ProcessPhase::Down(reason) => Some(down(reason)),
            ProcessPhase::Up { is_validated: false, .. } if !has_checks => {
                Some(down("its process was started, and is not validated yet"))
            }
            ProcessPhase::Up { .. } => None,
        }
    }

    /// What of it must survive a restart of the agent.
    fn stored(&self, checks: &EntityChecks, ttl_checks: &BTreeMap<CheckName, TtlCheck>) -> StoredChecks {
        let said = |(name, check): (&CheckName, &TtlCheck)| Some((name.clone(), check.last.clone()?));
        StoredChecks {
            checks: checks.stored(&self.service.checks),
            ttl_updates: ttl_checks.iter().filter_map(said).collect(),
            ..StoredChecks::default()
        }
    }

    /// Its unmet needs.
    fn unmet(&mut self) -> Vec<UnmetNeed> {
        let snapshot = self.snapshot.borrow_and_update().clone();
        self.service.needs.iter().filter_map(|need| need.unmet(&snapshot.catalogue)).collect()
    }

    /// Stores that its needs were met.
    async fn keep_met(&self) {
        let (answer, answered) = oneshot::channel();
        let sent = self.registry.send((RegistryRequest::Met(self.service.clone()), answer)).await;
        let kept = if sent.is_ok() { answered.await } else { return };
        if let Ok(Err((_, reason))) = kept {
            tracing::warn!("cannot {reason}; after a restart {} may wait again", self.service.name);
        }
    }

    /// Publishes its health: that of its checks, once no need is unmet, and unless its process decides.
    fn show(
        &self,
        unmet: &[UnmetNeed],
        held: Option<CheckStatus>,
        have_results: bool,
        checked: impl FnOnce() -> CheckStatus,
    ) {
        let has_results = have_results || !unmet.is_empty() || held.is_some();
        let waits_for = unmet.iter().map(|unmet| unmet.need.service.clone()).collect();
        let reasons: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        let serving = match held {
            _ if !reasons.is_empty() => waiting(&reasons.join(", and ")),
            Some(held) => held,
            None => checked(),
        };
        let (key, service) = (self.service.key(), self.service.clone());
        let shown = PublishedInstance { service, serving, has_results, waits_for };
        self.published.send_if_modified(|all| {
            let same = all.get(&key) == Some(&shown);
            if !same {
                all.insert(key.clone(), shown.clone());
            }
            !same
        });
    }
}
