//! A store that was set back under its servers: a snapshot of etcd, or a copy of the data directory. What they know is not in it, and
//! numbers that were issued would be issued again. They end, and start again only in a new epoch.

use std::io;
use std::path::{Path, PathBuf};

use bellwether_core::words::counter::Revision;
use tokio::sync::watch;

use crate::installation::{Installation, InstallationError};

/// Tells that the store was set back: the revision that it had, and the one that it has. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SetBackNotice(watch::Sender<Option<(Revision, Revision)>>);

impl Default for SetBackNotice {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl SetBackNotice {
    pub(crate) fn tell(&self, was: Revision, is: Revision) {
        self.0.send_replace(Some((was, is)));
    }

    /// Waits until it is told.
    pub(crate) async fn told(&self) -> (Revision, Revision) {
        let mut told = self.0.subscribe();
        let told = told.wait_for(Option::is_some).await.ok().and_then(|told| *told);
        match told {
            Some(told) => told,
            None => std::future::pending().await,
        }
    }
}

/// Remembers in the data directory, over restarts of this server, that the store was set back in this epoch.
#[derive(Debug, Clone)]
pub(crate) struct SetBackMark(PathBuf);

impl SetBackMark {
    pub(crate) fn in_dir(data_dir: &Path) -> Self {
        Self(data_dir.join("set-back"))
    }

    pub(crate) fn write(&self, epoch: u64) -> io::Result<()> {
        std::fs::write(&self.0, format!("{epoch}\n"))
    }

    /// Refuses a store that was set back since its epoch began; forgets the mark once there is a new one.
    pub(crate) fn check(&self, installation: &Installation) -> Result<(), InstallationError> {
        let Ok(text) = std::fs::read_to_string(&self.0) else { return Ok(()) };
        if text.trim().parse::<u64>().is_ok_and(|epoch| installation.epoch <= epoch) {
            return Err(InstallationError::SetBack);
        }
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "cannot remove a mark that is over");
        }
        Ok(())
    }
}
