//! Handovers of data stores that have begun and not ended, in the ledger: one file for each probe, which exists only meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_core::words::name::ProbeName;
use bellwether_rt::tasks::Tasks;

use super::entry::HandoverEntry;
use super::error::{LedgerError, damaged, file, read};
use super::shape;
use crate::disk;

/// Stores handovers that have begun. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct HandoverStore {
    dir: PathBuf,
    tasks: Tasks,
}

impl HandoverStore {
    pub(super) fn new(dir: &Path, tasks: &Tasks) -> Self {
        Self { dir: dir.join("handovers"), tasks: tasks.clone() }
    }

    /// The handovers that an agent before has begun and not ended.
    pub(super) fn read(&self) -> Result<BTreeMap<ProbeName, HandoverEntry>, LedgerError> {
        disk::private_dir(&self.dir).map_err(|source| file("create", &self.dir, source))?;
        let mut begun = BTreeMap::new();
        let found = std::fs::read_dir(&self.dir).map_err(|source| file("read", &self.dir, source))?;
        for entry in found {
            let path = entry.map_err(|source| file("read", &self.dir, source))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(text) = read(&path)? else { continue };
            let (probe, handover) = shape::handover(&text).map_err(|reason| damaged(&path, reason))?;
            begun.insert(probe, handover);
        }
        Ok(begun)
    }

    /// Stores that a handover has begun, to which replica, and which others are left to be told.
    pub(crate) async fn keep(&self, probe: &ProbeName, handover: &HandoverEntry) -> Result<(), LedgerError> {
        let path = self.path(probe);
        let text = shape::handover_text(probe, handover).map_err(|reason| damaged(&path, reason))?;
        self.on_disk(("write", path), move |path| disk::replace(path, &text)).await
    }

    /// Removes a handover that has ended.
    pub(crate) async fn forget(&self, probe: &ProbeName) -> Result<(), LedgerError> {
        self.on_disk(("remove", self.path(probe)), disk::remove).await
    }

    async fn on_disk(
        &self,
        (action, path): (&'static str, PathBuf),
        work: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
    ) -> Result<(), LedgerError> {
        let target = path.clone();
        let done = self.tasks.spawn_blocking(move || work(&target)).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(|source| file(action, &path, source))
    }

    fn path(&self, probe: &ProbeName) -> PathBuf {
        self.dir.join(format!("{probe}.json"))
    }
}
