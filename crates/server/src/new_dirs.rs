//! Directories that an attempt makes, for their owner alone, and takes away again if it fails.

use std::io;
use std::path::{Path, PathBuf};

/// The directories that were missing, the innermost first.
#[derive(Debug, Default)]
pub(crate) struct NewDirs(Vec<PathBuf>);

impl NewDirs {
    /// Makes a directory with those above it that are missing.
    ///
    /// # Errors
    /// What the system says; those that were made until then are taken away.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let missing = path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists());
        let new = Self(missing.map(Path::to_owned).collect());
        match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Ok(()) => Ok(new),
            Err(error) => {
                new.remove();
                Err(error)
            }
        }
    }

    /// Removes those that are empty. What was there before stays, and so does one in which anything is.
    pub(crate) fn remove(&self) {
        for dir in &self.0 {
            // It is not empty, or was not made: it stays as it is.
            drop(std::fs::remove_dir(dir));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_and_is_empty_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("data/pki");
        NewDirs::make(&inner).unwrap().remove();
        assert!(place.path().exists() && !place.path().join("data").exists());
        std::fs::create_dir(place.path().join("data")).unwrap();
        NewDirs::make(&inner).unwrap().remove();
        assert!(place.path().join("data").exists() && !inner.exists());
        let new = NewDirs::make(&inner).unwrap();
        std::fs::write(inner.join("ca.pem"), "").unwrap();
        new.remove();
        assert!(inner.join("ca.pem").exists());
    }
}
