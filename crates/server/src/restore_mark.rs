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
        let Some(dir) = path.parent() else { return Ok(()) };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // It is there whole or not at all, also after a power cut.
        let new = path.with_extension("new");
        std::fs::write(&new, TransferKind::Restore.mark(installation))?;
        std::fs::File::open(&new)?.sync_all()?;
        std::fs::rename(&new, path)?;
        std::fs::File::open(dir)?.sync_all()
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
    /// [`InstallationError::Unfinished`], and [`InstallationError::Mark`] if it cannot be read: that is no evidence that there is none.
    pub(crate) fn check(&self) -> Result<(), InstallationError> {
        let Some(path) = &self.0 else { return Ok(()) };
        match std::fs::read(path) {
            Ok(mark) => Err(TransferKind::unfinished(&mark)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(InstallationError::Mark { path: path.clone(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_there_until_it_is_removed_and_one_that_cannot_be_read_is_none_that_is_absent() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::load(None).unwrap();
        config.data_dir = dir.path().to_owned();
        let mark = RestoreMark::of(&config);
        mark.check().unwrap();
        mark.set("i-1").unwrap();
        let refused = mark.check().unwrap_err();
        assert!(
            matches!(&refused, InstallationError::Unfinished { transfer: TransferKind::Restore, id } if id == "i-1")
        );
        mark.remove();
        mark.check().unwrap();
        std::fs::create_dir(mark.path()).unwrap();
        assert!(matches!(mark.check(), Err(InstallationError::Mark { .. })));
    }
}
