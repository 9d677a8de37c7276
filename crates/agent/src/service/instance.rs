//! One instance: its checks are asked and listened for, and what they say together is shown whenever it turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::catalogue::need::UnmetNeed;
use bellwether_core::local::ttl::{TtlCheck, serving, waiting};
use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::words::name::CheckName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{oneshot, watch};

use super::published::{PublishedInstance, PublishedInstances};
use super::request::{RegistryRequest, RegistryRequests};
use crate::apply::CommandFacts;
use crate::catalogue::CatalogueSnapshot;
use crate::check::EntityChecks;
use crate::config::service::Service;

/// What an instance is told by programs, by check.
pub(crate) type TtlChecks = watch::Receiver<BTreeMap<CheckName, TtlCheck>>;

/// One instance at work.
pub(super) struct InstanceTask {
    pub(super) service: Arc<Service>,
    pub(super) heard: TtlChecks,
    /// What others offer, for what it needs.
    pub(super) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    /// Whether that was there before.
    pub(super) met: bool,
    pub(super) registry: RegistryRequests,
    pub(super) board: PublishedInstances,
    pub(super) clock: Clock,
    pub(super) node: String,
    pub(super) seed: u64,
}

impl InstanceTask {
    /// Works until its level is stopped.
    pub(super) async fn run(mut self, level: Tasks) {
        let token = level.token();
        let facts = CommandFacts { node: self.node.clone(), ..CommandFacts::default() };
        let mut checks = EntityChecks::start(&self.service.checks, &facts, &self.clock, &level, self.seed);
        // A need that was met and is lost again does not undo that it serves.
        let mut waits = !self.service.needs.is_empty() && !self.met;
        loop {
            let now = self.clock.now();
            let listening = self.heard.borrow_and_update().clone();
            let unmet = if waits { self.unmet() } else { Vec::new() };
            if waits && unmet.is_empty() {
                waits = false;
                // On disk before anybody is told; what is dropped halfway is waited for again by the next agent.
                tokio::select! {
                    () = token.cancelled() => return,
                    () = self.keep_met() => {}
                }
            }
            self.show(&unmet, || serving(&checks.now(), &listening, now));
            let ends = listening.values().filter_map(|listening| listening.ends(now)).min();
            // All only wait; everything is looked at again above.
            tokio::select! {
                () = token.cancelled() => return,
                () = checks.turned() => {}
                heard = self.heard.changed() => if heard.is_err() { return },
                news = self.snapshot.changed(), if waits => if news.is_err() { return },
                () = until(ends, now) => {}
            }
        }
    }

    /// What of its needs is not there.
    fn unmet(&mut self) -> Vec<UnmetNeed> {
        let snapshot = self.snapshot.borrow_and_update().clone();
        self.service.needs.iter().filter_map(|need| need.unmet(&snapshot.catalogue)).collect()
    }

    /// Has it kept that what it needs was there.
    async fn keep_met(&self) {
        let (answer, answered) = oneshot::channel();
        let told = self.registry.send((RegistryRequest::Met(self.service.clone()), answer)).await;
        let kept = if told.is_ok() { answered.await } else { return };
        if let Ok(Err((_, reason))) = kept {
            tracing::warn!("could not {reason}; after a restart {} may wait again", self.service.name);
        }
    }

    /// Shows whether it serves: what its checks say, once nothing it needs is missing.
    fn show(&self, unmet: &[UnmetNeed], checked: impl FnOnce() -> CheckStatus) {
        let lacks = unmet.iter().map(|unmet| unmet.need.service.clone()).collect();
        let said: Vec<String> = unmet.iter().map(ToString::to_string).collect();
        let serving = if said.is_empty() { checked() } else { waiting(&said.join(", and ")) };
        let (key, shown) =
            (self.service.key(), PublishedInstance { service: self.service.clone(), serving, lacks });
        self.board.send_if_modified(|all| {
            let same = all.get(&key) == Some(&shown);
            if !same {
                all.insert(key.clone(), shown.clone());
            }
            !same
        });
    }
}

/// Waits until a moment of the agent's clock; for ever when there is none.
async fn until(at: Option<Timestamp>, now: Timestamp) {
    match at {
        Some(at) => {
            tokio::time::sleep(at.since(now).to_duration() + std::time::Duration::from_millis(1)).await
        }
        None => std::future::pending().await,
    }
}
