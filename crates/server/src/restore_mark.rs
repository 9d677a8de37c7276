//! The mark of a restore that has begun, in the directory of an embedded store, until the store itself has one: a store that was made for
//! the restore and is empty must not be taken for one in which nothing ever was.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::config::Config;
use crate::installation::{InstallationError, TransferKind};

/// Where the mark is; nowhere if the store is shared, which nobody makes.
#[derive(Debug)]
pub(crate) struct RestoreMark(Option<PathBuf>);

impl RestoreMark {
    /// The mark of the store that the configuration names.
    pub(crate) fn of(config: &Config) -> Self {
        Self(config.etcd.is_none().then(|| config.data_dir.join("store/restoring")))
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone().unwrap_or_default()
    }

    /// Sets it for the restore of this installation.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn set(&self, installation: &str) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        if let Some(dir) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        std::fs::write(path, TransferKind::Restore.mark(installation))?;
        std::fs::File::open(path)?.sync_all()
    }

    /// Takes it away: the store is marked itself, or nothing was restored.
    pub(crate) fn remove(&self) {
        if let Some(path) = &self.0
            && let Err(error) = std::fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "cannot remove the mark of a restore; remove it by hand");
        }
    }

    /// Refuses a store into which a restore has begun and nothing more is known.
    ///
    /// # Errors
    /// [`InstallationError::Unfinished`].
    pub(crate) fn check(&self) -> Result<(), InstallationError> {
        match self.0.as_ref().and_then(|path| std::fs::read(path).ok()) {
            Some(mark) => Err(TransferKind::unfinished(&mark)),
            None => Ok(()),
        }
    }
}
