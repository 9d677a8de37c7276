//! Probes of data stores: each asks one store of this node again and again, and says what it is. A probe observes and changes nothing;
//! what may hand over its leadership does so before a change alone.

mod address;
pub(crate) mod answer;
mod begun;
pub(crate) mod etcd;
mod exec;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod handover;
pub(crate) mod http;
mod limits;
mod postgresql;
pub(crate) mod redis;
pub(crate) mod resp;
mod sentinel;
mod task;
mod tls;
mod zookeeper;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::records::probes::DataStore;
use bellwether_core::words::name::ProbeName;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use self::begun::BegunHandover;
use self::handover::Handovers;
use self::task::ProbeTask;
use crate::config::Config;
use crate::ledger::{HandoverEntry, Ledger};

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
    /// plane may know, and absent for ever if there never were. Handovers that an agent before has begun are ended.
    pub(crate) fn start(
        config: &Config,
        seed: u64,
        tasks: &Tasks,
        (ledger, mut begun): (&Ledger, BTreeMap<ProbeName, HandoverEntry>),
    ) -> Self {
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
                begun: BegunHandover::new(name.clone(), ledger.handovers(), begun.remove(name)),
            })
        });
        let each: Vec<Arc<ProbeTask>> = each.collect();
        for task in &each {
            tasks.spawn("probe", task.clone().run(tasks.clone()));
        }
        Self { known: stores, marker, handovers: Handovers::new(each.into_iter()) }
    }
}
