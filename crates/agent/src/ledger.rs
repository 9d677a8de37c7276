//! The ledger: the order and each entity's memory, on disk before the agent acts on them.
//!
//! One file for the order, one per entity, one for each other kind of data, each with one writer. A file that is not valid
//! keeps the agent from starting: starting afresh would lose track of the services that run here.

mod entry;
mod error;
mod handovers;
mod identity;
mod members;
mod shape;
mod work;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::node_params::LiveParams;
use bellwether_core::local::statuses::LocalStatuses;
use bellwether_core::records::order::Order;
use bellwether_core::words::name::{EnsembleName, EntityName, LedgerId, ProbeName};
use bellwether_rt::tasks::Tasks;

pub(crate) use entry::{EntityEntry, FormerReplicas, HandoverEntry, MetNeeds, RegisteredService};
pub use error::LedgerError;
pub(crate) use handovers::HandoverStore;
pub(crate) use members::{MarkShape, MemberEntry, MemberStore};
pub(crate) use work::{FrozenInputs, RunStore};

use self::error::{damaged, file, read};
use crate::disk;

/// Stores what must survive a restart. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    dir: PathBuf,
    id: LedgerId,
    tasks: Tasks,
}

/// Everything in the ledger.
#[derive(Debug, Default)]
pub(crate) struct LedgerContents {
    pub(crate) order: Option<Order>,
    pub(crate) entities: BTreeMap<EntityName, EntityEntry>,
    pub(crate) statuses: LocalStatuses,
    pub(crate) services: Vec<RegisteredService>,
    pub(crate) met: MetNeeds,
    /// The params that reach this node without a rollout.
    pub(crate) live_params: LiveParams,
    /// Handovers of data stores that have begun and not ended.
    pub(crate) handovers: BTreeMap<ProbeName, HandoverEntry>,
    /// The members of ensembles that this node has, or had.
    pub(crate) members: BTreeMap<EnsembleName, MemberEntry>,
}

impl Ledger {
    /// Opens the ledger of a data directory and reads its contents.
    pub(crate) fn open(data_dir: &Path, tasks: Tasks) -> Result<(Self, LedgerContents), LedgerError> {
        let dir = data_dir.join("ledger");
        let entities = dir.join("entities");
        disk::private_dir(&entities).map_err(|source| file("create", &entities, source))?;
        let mut kept = LedgerContents::default();
        let order = dir.join("order.json");
        if let Some(text) = read(&order)? {
            kept.order = Some(shape::order(&text).map_err(|reason| damaged(&order, reason))?);
        }
        let statuses = dir.join("statuses.json");
        if let Some(text) = read(&statuses)? {
            kept.statuses = shape::statuses(&text).map_err(|reason| damaged(&statuses, reason))?;
        }
        let services = dir.join("services.json");
        if let Some(text) = read(&services)? {
            kept.services = shape::services(&text).map_err(|reason| damaged(&services, reason))?;
        }
        let needs = dir.join("needs.json");
        if let Some(text) = read(&needs)? {
            kept.met = shape::met(&text).map_err(|reason| damaged(&needs, reason))?;
        }
        let params = dir.join("params.json");
        if let Some(text) = read(&params)? {
            kept.live_params = shape::live_params(&text).map_err(|reason| damaged(&params, reason))?;
        }
        let found = std::fs::read_dir(&entities).map_err(|source| file("read", &entities, source))?;
        for entry in found {
            let path = entry.map_err(|source| file("read", &entities, source))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(text) = read(&path)? else { continue };
            let (name, entry) = shape::entity(&text).map_err(|reason| damaged(&path, reason))?;
            if path.file_stem().is_none_or(|stem| stem != name.as_str()) {
                return Err(damaged(&path, format!("it is the entry of {name}")));
            }
            kept.entities.insert(name, entry);
        }
        kept.handovers = HandoverStore::new(&dir, &tasks).read()?;
        kept.members = MemberStore::new(&dir, &tasks).read()?;
        let id = identity::open(&dir, &kept.entities)?;
        Ok((Self { dir, id, tasks }, kept))
    }

    /// The id of this ledger. An agent that lost its ledger has another one.
    pub(crate) const fn id(&self) -> &LedgerId {
        &self.id
    }

    /// The runs of workflows.
    pub(crate) fn runs(&self) -> RunStore {
        RunStore::new(&self.dir, &self.tasks)
    }

    /// The handovers of data stores that have begun.
    pub(crate) fn handovers(&self) -> HandoverStore {
        HandoverStore::new(&self.dir, &self.tasks)
    }

    /// The members of ensembles that this node has, or had.
    pub(crate) fn members(&self) -> MemberStore {
        MemberStore::new(&self.dir, &self.tasks)
    }

    /// Notes that an action has begun of which the entity's entry knows.
    pub(crate) async fn mark_begun(&self, name: &EntityName) -> Result<(), LedgerError> {
        let path = self.dir.join(identity::BEGUN).join(name.as_str());
        if path.exists() { Ok(()) } else { self.write(path, String::new()).await }
    }

    /// The directory of the journals of rendered files.
    pub(crate) fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// The directory of the journals of catalogue files.
    pub(crate) fn catalogue_files(&self) -> PathBuf {
        self.dir.join("catalogue-files")
    }

    /// Stores the order.
    pub(crate) async fn keep_order(&self, order: &Order) -> Result<(), LedgerError> {
        let path = self.dir.join("order.json");
        let text = shape::order_text(order).map_err(|reason| damaged(&path, reason))?;
        self.write(path, text).await
    }

    /// Stores one entity's entry.
    pub(crate) async fn keep_entity(
        &self,
        name: &EntityName,
        entry: &EntityEntry,
    ) -> Result<(), LedgerError> {
        let path = self.dir.join("entities").join(format!("{name}.json"));
        let text = shape::entity_text(name, entry).map_err(|reason| damaged(&path, reason))?;
        self.write(path, text).await
    }

    /// Stores the statuses that programs on this node set.
    pub(crate) async fn keep_statuses(&self, statuses: &LocalStatuses) -> Result<(), LedgerError> {
        let path = self.dir.join("statuses.json");
        let text = shape::statuses_text(statuses).map_err(|reason| damaged(&path, reason))?;
        self.write(path, text).await
    }

    /// Stores the services that programs on this node registered.
    pub(crate) async fn keep_services(&self, services: &[RegisteredService]) -> Result<(), LedgerError> {
        let path = self.dir.join("services.json");
        let text = shape::services_text(services).map_err(|reason| damaged(&path, reason))?;
        self.write(path, text).await
    }

    /// Stores the params that reach this node without a rollout.
    pub(crate) async fn keep_live_params(&self, live: &LiveParams) -> Result<(), LedgerError> {
        let path = self.dir.join("params.json");
        let text = shape::live_params_text(live).map_err(|reason| damaged(&path, reason))?;
        self.write(path, text).await
    }

    /// Stores which needs of services were met.
    pub(crate) async fn keep_met(&self, met: &MetNeeds) -> Result<(), LedgerError> {
        let path = self.dir.join("needs.json");
        let text = shape::met_text(met).map_err(|reason| damaged(&path, reason))?;
        self.write(path, text).await
    }

    async fn write(&self, path: PathBuf, text: String) -> Result<(), LedgerError> {
        let target = path.clone();
        let written = self.tasks.spawn_blocking(move || disk::replace(&target, &text)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|source| file("write", &path, source))
    }
}

#[cfg(test)]
mod tests;
