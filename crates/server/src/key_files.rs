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

/// The files with keys that a server needs besides its store, from the directory of its data. The authority's certificate is last: a
/// server starts only with it.
pub(crate) const KEY_FILES: [&str; 3] = [KEYRING_FILE, CA_KEY_FILE, CA_FILE];

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

/// A file with keys, and what is in it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyText {
    /// One of [`KEY_FILES`].
    pub(crate) file: &'static str,
    pub(crate) text: String,
}

/// What was written of a backup: of no use if its records cannot be restored.
#[derive(Debug, Default)]
pub(crate) struct WrittenKeys {
    files: NewFiles,
    dirs: NewDirs,
}

impl WrittenKeys {
    /// Removes it.
    pub(crate) fn remove(&self) {
        self.files.remove();
        self.dirs.remove();
    }
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

    /// The data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.0
    }

    /// All that there are of the files with keys, as they are now.
    pub(crate) fn texts(&self) -> Result<Vec<KeyText>, KeyFileError> {
        let mut texts = Vec::new();
        for file in KEY_FILES {
            let path = self.0.join(file);
            match std::fs::read_to_string(&path) {
                Ok(text) => texts.push(KeyText { file, text }),
                // Without a key for secrets there are no secrets.
                Err(error) if file == KEYRING_FILE && error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(KeyFileError { action: "read", path, source }),
            }
        }
        Ok(texts)
    }

    /// The first of these files that is there with something else in it.
    pub(crate) fn other(&self, texts: &[KeyText]) -> Result<Option<PathBuf>, KeyFileError> {
        for KeyText { file, text } in texts {
            let path = self.0.join(file);
            match std::fs::read(&path) {
                Ok(there) if there == text.as_bytes() => {}
                Ok(_) => return Ok(Some(path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(KeyFileError { action: "read", path, source }),
            }
        }
        Ok(None)
    }

    /// Writes those of these files that are missing, and the directories above them; the others are as they are.
    pub(crate) fn complete(&self, texts: &[KeyText]) -> Result<WrittenKeys, KeyFileError> {
        let mut written = WrittenKeys { dirs: self.make()?, files: NewFiles::default() };
        let missing = texts.iter().filter(|text| !self.0.join(text.file).exists());
        match self.write_files(missing.map(|text| (text.file, text.text.as_str())), &mut written.files) {
            Ok(()) => Ok(written),
            Err(error) => {
                written.remove();
                Err(error)
            }
        }
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
            (KEYRING_FILE, joined.secret_keys.as_deref()),
            (CA_KEY_FILE, Some(joined.ca_key.as_str())),
            (CA_FILE, Some(joined.ca.as_str())),
        ];
        self.write_files(files.into_iter().filter_map(|(file, text)| Some((file, text?))), made)
    }

    fn write_files<'a>(
        &self,
        files: impl Iterator<Item = (&'static str, &'a str)>,
        made: &mut NewFiles,
    ) -> Result<(), KeyFileError> {
        for (file, text) in files {
            let path = self.0.join(file);
            made.write(&path, text).map_err(|source| KeyFileError { action: "write", path, source })?;
        }
        let path = self.0.join("pki");
        let synced = std::fs::File::open(&path).and_then(|dir| dir.sync_all());
        synced.map_err(|source| KeyFileError { action: "sync", path, source })
    }
}
