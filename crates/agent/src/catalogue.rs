//! This machine's copy of the catalogue: what the hanging request brings, kept on disk so that names are answered also by
//! an agent that starts while no server can be reached.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::v1::service::CatalogueUpdate;
use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::log::CatalogueChange;
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::disk;

/// The file in the data directory.
const FILE: &str = "catalogue.json";

/// The schema written, and the newest read.
const SCHEMA: u32 = 1;

/// The file is written at most this often: it is a convenience for the next start, not the truth.
const REST: Duration = Duration::from_secs(5);

/// The catalogue as it is known here.
#[derive(Debug, Clone, Default)]
pub(crate) struct CatalogueSnapshot {
    pub(crate) catalogue: Catalogue,
    /// How far it is; zero for nothing yet.
    pub(crate) index: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct CatalogueFileForm {
    schema: u32,
    update: CatalogueUpdate,
}

impl CatalogueSnapshot {
    /// The picture with an update taken in.
    ///
    /// # Errors
    /// What of it cannot be understood; nothing is taken in then.
    pub(crate) fn with(&self, update: CatalogueUpdate) -> Result<Self, String> {
        let mut catalogue = if update.whole { Catalogue::default() } else { self.catalogue.clone() };
        for change in update.changes {
            let change = CatalogueChange::try_from(change).map_err(|error| error.to_string())?;
            catalogue.take(&change);
        }
        Ok(Self { catalogue, index: update.index })
    }

    /// Everything in it, as it travels.
    pub(crate) fn whole(&self) -> CatalogueUpdate {
        let changes = self.catalogue.whole().map(|change| (&change).into()).collect();
        CatalogueUpdate { index: self.index, whole: true, changes }
    }
}

/// The picture that was kept; none is as good as one that cannot be read, because the next server has it whole.
pub(crate) fn load(data_dir: &std::path::Path) -> CatalogueSnapshot {
    let path = data_dir.join(FILE);
    let read = || -> Result<Option<CatalogueSnapshot>, String> {
        let Some(text) = disk::read(&path).map_err(|error| error.to_string())? else { return Ok(None) };
        let file: CatalogueFileForm = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if file.schema != SCHEMA {
            return Err(format!("schema {} is not {SCHEMA}", file.schema));
        }
        CatalogueSnapshot::default().with(file.update).map(Some)
    };
    match read() {
        Ok(found) => found.unwrap_or_default(),
        Err(reason) => {
            tracing::warn!(path = %path.display(), reason, "could not read the kept catalogue; asking for all of it");
            CatalogueSnapshot::default()
        }
    }
}

/// Keeps the picture on disk, a while after it changed, until the level stops.
pub(crate) async fn keep(
    mut snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    data_dir: PathBuf,
    level: Tasks,
) {
    let token = level.token();
    let path = data_dir.join(FILE);
    loop {
        // Both only wait; the value is looked at below.
        tokio::select! {
            () = token.cancelled() => return,
            changed = snapshot.changed() => if changed.is_err() { return },
        }
        let (now, target) = (snapshot.borrow_and_update().clone(), path.clone());
        let written = level.spawn_blocking(move || {
            let file = CatalogueFileForm { schema: SCHEMA, update: now.whole() };
            let text = serde_json::to_string(&file).map_err(std::io::Error::other)?;
            disk::replace(&target, &text)
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!(path = %path.display(), %error, "could not keep the catalogue");
        }
        tokio::select! {
            () = token.cancelled() => return,
            () = tokio::time::sleep(REST) => {}
        }
    }
}
