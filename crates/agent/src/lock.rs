//! One agent per data directory: a lock the kernel gives back when the process ends, however it ends.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

const FILE: &str = "agent.lock";

/// Whoever looks whether the lock is held holds it for a moment, so it is tried for as long as that may take.
const TRIES: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(20);

/// Holds the data directory until dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock(File);

/// Why the data directory is not ours. Fits after "could not ".
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent works on it.
    #[error(
        "use {dir}: another agent{pid} works on it; stop that one, or give this one a data_dir of its own"
    )]
    Taken {
        /// The data directory.
        dir: PathBuf,
        /// ` (process N)`, if it said.
        pid: String,
    },
    /// The lock's file cannot be used.
    #[error("lock {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

impl DirectoryLock {
    /// Takes the lock and leaves this process's number in it.
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
        let mut said = String::new();
        let read = file.read_to_string(&mut said).map_err(failed)?;
        let pid = if read == 0 { String::new() } else { format!(" (process {})", said.trim()) };
        Err(LockError::Taken { dir: dir.to_owned(), pid })
    }

    /// Whether an agent holds `dir`.
    pub(crate) fn is_held(dir: &Path) -> io::Result<bool> {
        let file = match File::open(dir.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                unlock(&file);
                Ok(false)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Said out loud: a program that is being started at this moment has a copy of the open file until it is itself, and closing
/// ours alone would leave the lock with it.
fn unlock(file: &File) {
    if let Err(error) = flock(file, FlockOperation::Unlock) {
        tracing::warn!(%error, "could not give the lock back");
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
        let error = DirectoryLock::take(dir.path()).await.unwrap_err().to_string();
        assert!(
            error.contains(&format!("another agent (process {}) works on it", std::process::id())),
            "{error}"
        );
        drop(first);
        DirectoryLock::take(dir.path()).await.unwrap();
    }
}
