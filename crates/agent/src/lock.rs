//! One agent per data directory: a lock the kernel gives back when the process ends, however it ends.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

const FILE: &str = "agent.lock";

/// Holds the data directory until dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

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

impl Lock {
    /// Takes the lock and leaves this process's number in it.
    pub(crate) fn take(dir: &Path) -> Result<Self, LockError> {
        let path = dir.join(FILE);
        let failed = |source: io::Error| LockError::File { path: path.clone(), source };
        let options =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
        let mut file = options.open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut said = String::new();
                let read = file.read_to_string(&mut said).map_err(failed)?;
                let pid = if read == 0 { String::new() } else { format!(" (process {})", said.trim()) };
                return Err(LockError::Taken { dir: dir.to_owned(), pid });
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self(file))
    }

    /// Whether an agent holds `dir`.
    pub(crate) fn is_held(dir: &Path) -> io::Result<bool> {
        let file = match File::open(dir.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Lock::is_held(dir.path()).unwrap());
        let first = Lock::take(dir.path()).unwrap();
        assert!(Lock::is_held(dir.path()).unwrap());
        let error = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("another agent (process {}) works on it", std::process::id())),
            "{error}"
        );
        drop(first);
        Lock::take(dir.path()).unwrap();
    }
}
