//! Probes of data stores: each asks one store of this node again and again, and says what it is. A probe observes and changes nothing;
//! what may hand over its leadership does so before a change alone.

mod address;
mod answer;
mod etcd;
mod exec;
pub(crate) mod handover;
mod http;
mod postgresql;
mod redis;
mod resp;
mod sentinel;
mod zookeeper;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::local::delay;
use bellwether_core::records::probes::{DataStore, MAX_PROBES_BYTES, MAX_TEXT_BYTES, StoreState};
use bellwether_core::words::name::{NodeName, ProbeName};
use bellwether_rt::observed::{self, TimeLimit};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use self::answer::{ProbeError, failing, up};
use self::handover::Handovers;
use crate::apply::CommandFacts;
use crate::config::Config;
use crate::config::data_store::{StoreKind, StoreProbe};

/// The data stores of this node by probe; absent until each was asked once.
pub(crate) type KnownStores = watch::Receiver<Option<BTreeMap<ProbeName, DataStore>>>;

/// The data stores of this node, and the file that says that it has, or had, some.
#[derive(Debug)]
pub(crate) struct StoreProbes {
    pub(crate) known: KnownStores,
    pub(crate) marker: PathBuf,
    pub(crate) handovers: Handovers,
}

impl StoreProbes {
    /// Starts the probes of a configuration. Without any, the known stores are none at once if there were some before, which the control
    /// plane may know, and absent for ever if there never were.
    pub(crate) fn start(config: &Config, seed: u64, tasks: &Tasks) -> Self {
        let marker = config.data_dir.join("probes");
        let first = (config.probes.is_empty() && marker.exists()).then(BTreeMap::new);
        if !config.probes.is_empty()
            && let Err(error) = std::fs::write(&marker, "")
        {
            tracing::warn!(path = %marker.display(), %error, "cannot note that this node has probes");
        }
        let (known, stores) = watch::channel(first);
        let (found, _) = watch::channel(BTreeMap::new());
        let each = config.probes.iter().map(|(name, probe)| {
            Arc::new(ProbeTask {
                name: name.clone(),
                probe: probe.clone(),
                node: config.name.clone(),
                found: found.clone(),
                known: known.clone(),
                count: config.probes.len(),
                seed,
            })
        });
        let each: Vec<Arc<ProbeTask>> = each.collect();
        for task in &each {
            tasks.spawn("probe", task.clone().run(tasks.clone()));
        }
        Self { known: stores, marker, handovers: Handovers::new(each.into_iter()) }
    }
}

#[derive(Debug)]
struct ProbeTask {
    name: ProbeName,
    probe: StoreProbe,
    node: NodeName,
    /// The last answers.
    found: watch::Sender<BTreeMap<ProbeName, DataStore>>,
    /// The same, once there is one of every probe: a report has all data stores of the node.
    known: watch::Sender<Option<BTreeMap<ProbeName, DataStore>>>,
    count: usize,
    seed: u64,
}

impl ProbeTask {
    async fn run(self: Arc<Self>, tasks: Tasks) {
        let token = tasks.token();
        for round in 0_u32.. {
            // Both arms may be dropped anywhere: a probe that is dropped ends what it started.
            tokio::select! {
                () = token.cancelled() => return,
                store = self.ask_observed() => self.publish(within_limits(store)),
            }
            let spread = delay::spread(self.probe.interval, self.seed, round);
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(spread.to_duration()) => {}
            }
        }
    }

    /// Asks; a failure during a standstill of this machine says nothing, and it asks once more.
    async fn ask_observed(&self) -> DataStore {
        let mut limit = TimeLimit::new(self.probe.timeout.to_duration());
        let store = limit.count_during(self.ask()).await;
        if store.state != StoreState::Up && limit.standstills() > 0 { self.ask().await } else { store }
    }

    async fn ask(&self) -> DataStore {
        let limit = self.probe.timeout.to_duration();
        let software = self.probe.kind.software();
        let asked = async {
            let answer = match &self.probe.kind {
                StoreKind::Etcd { authority, tls } => etcd::ask(authority, tls.as_ref()).await,
                StoreKind::Redis { address, login } => redis::ask(address, login).await,
                StoreKind::Sentinel { address, login } => sentinel::ask(address, login).await,
                StoreKind::Postgresql { address, login } => postgresql::ask(address, login).await,
                StoreKind::Zookeeper { address } => zookeeper::ask(address).await,
                StoreKind::Exec(command) => {
                    let facts = CommandFacts { node: self.node.to_string(), ..CommandFacts::default() };
                    return exec::ask(command, &facts, limit).await;
                }
            };
            answer.map_or_else(|error| failing(software, &error), up)
        };
        if let StoreKind::Exec(_) = &self.probe.kind {
            // It has its own deadline, and gives a better reason.
            return asked.await;
        }
        let late = || ProbeError::Unknown(format!("no answer within {}", self.probe.timeout));
        observed::timeout(limit, asked).await.unwrap_or_else(|_| failing(software, &late()))
    }

    fn publish(&self, store: DataStore) {
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
fn within_limits(store: DataStore) -> DataStore {
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
