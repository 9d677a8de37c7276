//! One agent per data directory: a file lock, which the kernel releases when the process ends for any reason.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

const FILE: &str = "agent.lock";

/// A reader of the lock's state holds the lock briefly, so taking it is tried for longer than that.
const TRIES: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(20);

/// Holds the lock until dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock(File);

/// Why the data directory cannot be locked. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent uses it.
    #[error("use {dir}: another agent{pid} is using it; stop that one, or set another data_dir")]
    Taken {
        /// The data directory.
        dir: PathBuf,
        /// ` (process N)`, if the lock file names it.
        pid: String,
    },
    /// The lock file cannot be used.
    #[error("lock {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

impl DirectoryLock {
    /// Takes the lock and writes this process's number to its file.
    pub(crate) async fn take(dir: &Path) -> Result<Self, LockError> {
        let path = dir.join(FILE);
        let failed = |source: io::Error| LockError::File { path: path.clone(), source };
        let mut file = open(&path).map_err(failed)?;
        for _ in 0..TRIES {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    file.set_len(0).map_err(failed)?;
                    writeln!(file, "{}", std::process::id()).map_err(failed)?;
                    return Ok(Self(file));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => tokio::time::sleep(BETWEEN).await,
                Err(error) => return Err(failed(error.into())),
            }
        }
        let mut holder = String::new();
        let read = file.read_to_string(&mut holder).map_err(failed)?;
        let pid = if read == 0 { String::new() } else { format!(" (process {})", holder.trim()) };
        Err(LockError::Taken { dir: dir.to_owned(), pid })
    }

    /// Whether an agent holds the lock of `dir`.
    pub(crate) fn is_held(dir: &Path) -> io::Result<bool> {
        Self::holder(dir).map(|holder| holder.is_some())
    }

    /// The number of the process that holds the lock of `dir`.
    pub(crate) fn holder(dir: &Path) -> io::Result<Option<String>> {
        let mut file = match File::open(dir.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                unlock(&file);
                Ok(None)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder)?;
                Ok(Some(holder.trim().to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Unlocks explicitly: a child process that is just being started has a copy of the open file until its exec, so closing
/// this one would not release the lock.
fn unlock(file: &File) {
    if let Err(error) = flock(file, FlockOperation::Unlock) {
        tracing::warn!(%error, "cannot release the lock");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_lock_is_refused_and_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!DirectoryLock::is_held(dir.path()).unwrap());
        let first = DirectoryLock::take(dir.path()).await.unwrap();
        assert!(DirectoryLock::is_held(dir.path()).unwrap());
        assert_eq!(DirectoryLock::holder(dir.path()).unwrap(), Some(std::process::id().to_string()));
        let error = DirectoryLock::take(dir.path()).await.unwrap_err().to_string();
        assert!(
            error.contains(&format!("another agent (process {}) is using it", std::process::id())),
            "{error}"
        );
        drop(first);
        DirectoryLock::take(dir.path()).await.unwrap();
    }
}
