//! The files with the keys of an installation, in the data directory of each of its servers: what a server needs to be one of them,
//! besides the store. Owns reading them to be sent, and writing them as received.

use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::server_join::JoinedServer;
use bellwether_rt::own_files::OwnFiles;

use crate::new_dirs::NewDirs;
use crate::pki::write_private;
use crate::secrets::keyring::KEYRING_FILE;

const CA_FILE: &str = "pki/ca.pem";
const CA_KEY_FILE: &str = "pki/ca.key";

/// The file of the first admin token.
pub(crate) const ADMIN_TOKEN_FILE: &str = "admin-token";

/// What nobody but the user of a server may write in its data directory, and what nobody else may read.
#[must_use]
pub fn own_files(data_dir: &Path) -> OwnFiles {
    let path = |name: &str| data_dir.join(name);
    OwnFiles {
        data_dir: data_dir.to_owned(),
        unwritable: vec![path("pki")],
        secret: [CA_KEY_FILE, KEYRING_FILE, ADMIN_TOKEN_FILE].map(path).into(),
    }
}

/// Where the keys of the installation are.
#[derive(Debug, Clone)]
pub struct KeyDir(PathBuf);

/// The keys, as they are in the files.
pub(crate) struct KeyFiles {
    pub(crate) ca_key: String,
    pub(crate) secret_keys: Option<String>,
}

/// Why the keys cannot be read or written. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
#[error("{action} {path}: {source}")]
pub struct KeyFileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Files that were made by one attempt, and are of no use if it fails.
#[derive(Debug, Default)]
pub(crate) struct NewFiles(Vec<PathBuf>);

impl NewFiles {
    /// Makes a file that only its owner may read.
    pub(crate) fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let written = write_private(path, text);
        // One that was there before is not ours.
        if !written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            self.0.push(path.to_owned());
        }
        written
    }

    /// Removes them.
    pub(crate) fn remove(&self) {
        for path in &self.0 {
            if let Err(error) = std::fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "cannot remove what is left of an attempt that failed");
            }
        }
    }
}

impl KeyDir {
    /// The keys in this data directory.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(data_dir.to_owned())
    }

    /// Reads the keys as they are now: one for secrets may have been added since the server started.
    pub(crate) fn read(&self) -> Result<KeyFiles, KeyFileError> {
        let text = |file: &str| {
            let path = self.0.join(file);
            std::fs::read_to_string(&path).map_err(|source| KeyFileError { action: "read", path, source })
        };
        let secret_keys = match text(KEYRING_FILE) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => None,
            read => Some(read?),
        };
        Ok(KeyFiles { ca_key: text(CA_KEY_FILE)?, secret_keys })
    }

    /// Whether there is an authority already.
    pub(crate) fn has_authority(&self) -> bool {
        self.0.join(CA_FILE).exists() || self.0.join(CA_KEY_FILE).exists()
    }

    /// Makes the directories, for their owner alone.
    pub(crate) fn make(&self) -> Result<NewDirs, KeyFileError> {
        let path = self.0.join("pki");
        NewDirs::make(&path).map_err(|source| KeyFileError { action: "create", path, source })
    }

    /// Writes the keys as received, the authority's certificate last: a server starts only with it. Answers the files that it made; if
    /// one cannot be written, none of them is left, and those that were there before are as they were.
    pub(crate) fn write(&self, joined: &JoinedServer) -> Result<NewFiles, KeyFileError> {
        let mut made = NewFiles::default();
        match self.write_each(joined, &mut made) {
            Ok(()) => Ok(made),
            Err(error) => {
                made.remove();
                Err(error)
            }
        }
    }

    fn write_each(&self, joined: &JoinedServer, made: &mut NewFiles) -> Result<(), KeyFileError> {
        let files = [
            (KEYRING_FILE, joined.secret_keys.as_ref()),
            (CA_KEY_FILE, Some(&joined.ca_key)),
            (CA_FILE, Some(&joined.ca)),
        ];
        for (file, text) in files {
            let path = self.0.join(file);
            if let Some(text) = text {
                made.write(&path, text).map_err(|source| KeyFileError { action: "write", path, source })?;
            }
        }
        let path = self.0.join("pki");
        let synced = std::fs::File::open(&path).and_then(|dir| dir.sync_all());
        synced.map_err(|source| KeyFileError { action: "sync", path, source })
    }
}
