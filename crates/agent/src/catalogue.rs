//! This node's copy of the catalogue: updated by the order poll and kept on disk, so that an agent that starts while no
//! server can be reached still answers names.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::v1::service::CatalogueUpdate;
use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::log::CatalogueChange;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::disk;

/// The file in the data directory.
const FILE: &str = "catalogue.json";

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// The longest part of the time that is spent writing the file, as its inverse: a large catalogue that changes all the time
/// is written less often, and a restarted agent begins with an older one.
const SHARE: u32 = 50;

/// Shortest time between two writes.
const REST: Duration = Duration::from_millis(100);

/// The catalogue as this node knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CatalogueSnapshot {
    pub(crate) catalogue: Catalogue,
    /// The catalogue's index at the server; zero before the first update.
    pub(crate) index: u64,
    /// When an agent before this one stored it, by its clock; `None` once it is this agent's own.
    pub(crate) stored_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CatalogueFileForm {
    schema: u32,
    at_ms: u64,
    update: CatalogueUpdate,
}

impl CatalogueSnapshot {
    /// The snapshot with an update applied.
    ///
    /// # Errors
    /// What in the update cannot be understood; nothing of it is applied then.
    pub(crate) fn with(&self, update: CatalogueUpdate) -> Result<Self, String> {
        let mut catalogue = if update.whole { Catalogue::default() } else { self.catalogue.clone() };
        for change in update.changes {
            let change = CatalogueChange::try_from(change).map_err(|error| error.to_string())?;
            catalogue.take(&change);
        }
        Ok(Self { catalogue, index: update.index, stored_at: None })
    }

    /// The whole catalogue, in its wire form.
    pub(crate) fn whole(&self) -> CatalogueUpdate {
        let changes = self.catalogue.whole().map(|change| (&change).into()).collect();
        CatalogueUpdate { index: self.index, whole: true, changes }
    }
}

/// The snapshot on disk. An unreadable file counts as none: the next server sends the whole catalogue.
pub(crate) fn load(data_dir: &std::path::Path) -> CatalogueSnapshot {
    let path = data_dir.join(FILE);
    let read = || -> Result<Option<CatalogueSnapshot>, String> {
        let Some(text) = disk::read(&path).map_err(|error| error.to_string())? else { return Ok(None) };
        let file: CatalogueFileForm = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if file.schema != SCHEMA {
            return Err(format!("schema {} is not {SCHEMA}", file.schema));
        }
        let snapshot = CatalogueSnapshot::default().with(file.update)?;
        Ok(Some(CatalogueSnapshot { stored_at: Some(Timestamp::from_millis(file.at_ms)), ..snapshot }))
    };
    match read() {
        Ok(found) => found.unwrap_or_default(),
        Err(reason) => {
            tracing::warn!(path = %path.display(), reason, "cannot read the stored catalogue; requesting the whole catalogue");
            CatalogueSnapshot::default()
        }
    }
}

/// Writes the snapshot to disk after it changed, until the tasks are stopped; what changed until then is written.
pub(crate) async fn keep(
    mut snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    data_dir: PathBuf,
    clock: Clock,
    tasks: Tasks,
) {
    let token = tasks.token();
    let path = data_dir.join(FILE);
    loop {
        // Both arms only wait; the value is read below.
        tokio::select! {
            () = token.cancelled() => if !snapshot.has_changed().unwrap_or_default() { return },
            changed = snapshot.changed() => if changed.is_err() { return },
        }
        let (now, target) = (snapshot.borrow_and_update().clone(), path.clone());
        let (begun, at) = (Instant::now(), clock.now());
        let written = tasks.spawn_blocking(move || {
            let file = CatalogueFileForm { schema: SCHEMA, at_ms: at.as_millis(), update: now.whole() };
            let text = serde_json::to_string(&file).map_err(std::io::Error::other)?;
            disk::replace(&target, &text)
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!(path = %path.display(), %error, "cannot store the catalogue");
        }
        tokio::select! {
            () = token.cancelled() => {}
            () = tokio::time::sleep(REST.max(begun.elapsed() * SHARE)) => {}
        }
    }
}
