//! One probe: asks its data store at its interval, or once more at any time, and keeps what was found together with that of the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::local::delay;
use bellwether_core::records::probes::{DataStore, MAX_PROBES_BYTES, MAX_TEXT_BYTES, StoreState};
use bellwether_core::words::name::{NodeName, ProbeName};
use bellwether_rt::observed::{self, TimeLimit};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::answer::{ProbeError, failing, up};
use super::begun::BegunHandover;
use super::{etcd, exec, postgresql, redis, sentinel, zookeeper};
use crate::apply::CommandFacts;
use crate::config::data_store::{StoreKind, StoreProbe};

/// What asks one data store.
#[derive(Debug)]
pub(super) struct ProbeTask {
    pub(super) name: ProbeName,
    pub(super) probe: StoreProbe,
    pub(super) node: NodeName,
    /// The last answers.
    pub(super) found: watch::Sender<BTreeMap<ProbeName, DataStore>>,
    /// The same, once there is one of every probe: a report has all data stores of the node.
    pub(super) known: watch::Sender<Option<BTreeMap<ProbeName, DataStore>>>,
    pub(super) count: usize,
    pub(super) seed: u64,
    pub(super) begun: BegunHandover,
}

impl ProbeTask {
    pub(super) async fn run(self: Arc<Self>, tasks: Tasks) {
        let token = tasks.token();
        for round in 0_u32.. {
            // Both arms may be dropped anywhere: a probe that is dropped ends what it started.
            tokio::select! {
                () = token.cancelled() => return,
                () = self.look() => {}
            }
            let spread = delay::spread(self.probe.interval, self.seed, round);
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(spread.to_duration()) => {}
            }
        }
    }

    /// Asks, and ends the handover that has begun, if one has.
    async fn look(&self) {
        let store = self.ask_observed().await;
        let is_up = store.state == StoreState::Up;
        self.publish(within_limits(store));
        if is_up {
            self.end_handover().await;
        }
    }

    /// Asks; a failure during a standstill of this machine says nothing, and it asks once more.
    pub(super) async fn ask_observed(&self) -> DataStore {
        let mut limit = TimeLimit::new(self.probe.timeout.to_duration());
        let store = limit.count_during(self.ask()).await;
        if store.state != StoreState::Up && limit.standstills() > 0 { self.ask().await } else { store }
    }

    pub(super) async fn ask(&self) -> DataStore {
        let limit = self.probe.timeout.to_duration();
        let software = self.probe.kind.software();
        let asked = async {
            let answer = match self.answer().await {
                // What broke off since it ended refuses the next connection; something else in between does not.
                Err(ProbeError::Broken(_)) => self.answer().await,
                answer => answer,
            };
            answer.unwrap_or_else(|error| failing(software, &error))
        };
        if let StoreKind::Exec(_) = &self.probe.kind {
            // It has its own deadline, and gives a better reason.
            return asked.await;
        }
        let late = || ProbeError::Unknown(format!("no answer within {}", self.probe.timeout));
        observed::timeout(limit, asked).await.unwrap_or_else(|_| failing(software, &late()))
    }

    async fn answer(&self) -> Result<DataStore, ProbeError> {
        match &self.probe.kind {
            StoreKind::Etcd { authority, tls } => etcd::ask(authority, tls.as_ref()).await.map(etcd::store),
            StoreKind::Redis { address, login } => redis::ask(address, login).await.map(up),
            StoreKind::Sentinel { address, login } => sentinel::ask(address, login).await.map(up),
            StoreKind::Postgresql { address, login } => postgresql::ask(address, login).await.map(up),
            StoreKind::Zookeeper { address } => zookeeper::ask(address).await.map(up),
            StoreKind::Exec(command) => {
                let facts = CommandFacts { node: self.node.to_string(), ..CommandFacts::default() };
                Ok(exec::ask(command, &facts, self.probe.timeout.to_duration()).await)
            }
        }
    }

    pub(super) fn publish(&self, store: DataStore) {
        self.found.send_modify(|found| {
            found.insert(self.name.clone(), store);
        });
        let found = self.found.borrow().clone();
        if found.len() < self.count {
            return;
        }
        let found = within_room(found);
        self.known.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&found);
            *known = Some(found);
            is_new
        });
    }
}

/// A store that says more than a report may have is unknown: a server would refuse the whole report.
pub(super) fn within_limits(store: DataStore) -> DataStore {
    match store.check() {
        Ok(_) => store,
        Err(error) => too_large(&store, &error.to_string()),
    }
}

/// The same for all stores together: the largest are unknown.
fn within_room(mut stores: BTreeMap<ProbeName, DataStore>) -> BTreeMap<ProbeName, DataStore> {
    let sizes = |stores: &BTreeMap<ProbeName, DataStore>| -> Vec<(usize, ProbeName)> {
        stores.iter().map(|(name, store)| (store.check().unwrap_or_default(), name.clone())).collect()
    };
    while sizes(&stores).iter().map(|(size, _)| size).sum::<usize>() > MAX_PROBES_BYTES {
        let Some((_, largest)) = sizes(&stores).into_iter().max() else { break };
        let reason = format!(
            "the data stores of this node say more than {MAX_PROBES_BYTES} bytes together, and this one most of it"
        );
        if let Some(store) = stores.get_mut(&largest) {
            *store = too_large(store, &reason);
        }
    }
    stores
}

fn too_large(store: &DataStore, reason: &str) -> DataStore {
    let software = &store.facts.software;
    let software = if software.len() > MAX_TEXT_BYTES { "" } else { software };
    failing(software, &ProbeError::Unknown(reason.to_owned()))
}

impl StoreKind {
    /// Name of the software, for a store that never answered.
    const fn software(&self) -> &'static str {
        match self {
            Self::Etcd { .. } => etcd::SOFTWARE,
            Self::Redis { .. } => redis::SOFTWARE,
            Self::Sentinel { .. } => sentinel::SOFTWARE,
            Self::Postgresql { .. } => postgresql::SOFTWARE,
            Self::Zookeeper { .. } => zookeeper::SOFTWARE,
            Self::Exec(_) => "",
        }
    }
}

#[cfg(test)]
mod tests;
