//! The store's directory: made private, locked against a second process, and the names inside it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// A directory that this process holds exclusively. Dropping it releases it; the kernel releases a killed process's.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// None where nothing can be written and nobody ever locked: nobody can have it open.
    lock: Option<File>,
    /// The directory, locked as well: the file that is locked may be removed, or replaced. None where a directory cannot be locked.
    itself: Option<File>,
    purpose: Purpose,
}

/// What a directory is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To use the store.
    Work,
    /// To look at it: nothing in it is changed.
    Look,
}

impl Directory {
    /// Creates `path` if it is missing, for this user only, and locks it.
    pub(super) fn lock(path: &Path) -> Result<Self, OpenError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_at(path))?;
        Self::hold(path, Purpose::Work)
    }

    /// Locks `path`, which has a store, to look at it.
    pub(super) fn look(path: &Path) -> Result<Self, OpenError> {
        let file = path.join("store.redb");
        fs::metadata(&file).map_err(io_at(&file))?;
        Self::hold(path, Purpose::Look)
    }

    fn hold(path: &Path, purpose: Purpose) -> Result<Self, OpenError> {
        let name = path.join("lock");
        let opened = match purpose {
            Purpose::Work => private().open(&name).map(Some),
            Purpose::Look => open_to_look(&name),
        };
        let lock = opened.map_err(io_at(&name))?;
        match lock.as_ref().map_or(Ok(()), File::try_lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { dir: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(OpenError::Io { path: name, source }),
        }
        let itself = File::open(path).map_err(io_at(path))?;
        let itself = match itself.try_lock() {
            Ok(()) => Some(itself),
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { dir: path.to_owned() }),
            // Some network file systems lock no directories.
            Err(TryLockError::Error(_)) => None,
        };
        Ok(Self { path: path.to_owned(), lock, itself, purpose })
    }

    /// The store's file.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join("store.redb")
    }

    /// The journal that continues the file.
    pub(super) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// A store that is being created. It becomes the store's file by a rename once it is complete.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.path.join("store.redb.unfinished")
    }

    /// Exists after the disk failed, until the file was made durable again.
    fn suspect(&self) -> PathBuf {
        self.path.join("suspect")
    }

    /// Remembers that the disk failed, if the disk still can.
    pub(super) fn distrust(&self, reason: &str) {
        if self.purpose == Purpose::Look {
            return;
        }
        let name = self.suspect();
        let noted = private().open(&name).and_then(|file| {
            file.write_all_at(reason.as_bytes(), 0)?;
            file.sync_all()
        });
        if let Err(error) = noted {
            tracing::warn!(file = %name.display(), "cannot note that the disk failed: {error}");
        }
    }

    /// Whether the disk failed and the file was not made durable since.
    pub(super) fn is_suspect(&self) -> bool {
        self.suspect().exists()
    }

    /// Forgets that the disk failed.
    pub(super) fn trust(&self) {
        if self.purpose == Purpose::Work
            && self.is_suspect()
            && let Err(error) = fs::remove_file(self.suspect())
        {
            tracing::warn!(file = %self.suspect().display(), "cannot remove it: {error}");
        }
    }

    /// A copy of a journal whose last group was left out at a start, kept until a person removes it.
    fn cut(&self) -> PathBuf {
        self.path.join("journal.cut")
    }

    /// That copy, if there is one.
    pub(super) fn cut_copy(&self) -> Option<PathBuf> {
        Some(self.cut()).filter(|copy| copy.exists())
    }

    /// Keeps a copy of a journal with a torn frame, so that a person can look at what is given up.
    pub(super) fn keep_torn(&self, journal: &[u8]) {
        if self.purpose == Purpose::Look {
            return;
        }
        let copy = self.cut();
        let kept = private().open(&copy).and_then(|file| {
            file.set_len(0)?;
            file.write_all_at(journal, 0)
        });
        if let Err(error) = kept {
            tracing::warn!(copy = %copy.display(), "cannot keep a copy of the journal: {error}");
        }
    }

    /// Makes renames inside the directory, and the directory itself, durable.
    pub(super) fn sync(&self) -> Result<(), OpenError> {
        let above = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        for path in [Some(self.path.as_path()), above].into_iter().flatten() {
            File::open(path).and_then(|dir| dir.sync_all()).map_err(io_at(path))?;
        }
        Ok(())
    }
}

impl Drop for Directory {
    /// Releases it at once. Closing alone would not: a child that is being started shares the lock until it runs
    /// its own program.
    fn drop(&mut self) {
        for held in [&self.lock, &self.itself].into_iter().flatten() {
            if let Err(error) = held.unlock() {
                tracing::warn!(dir = %self.path.display(), "cannot unlock the store: {error}");
            }
        }
    }
}

/// Opens the file that a process locks, without a change where there is one already. None if there is none and none can be made, as on a
/// file system that is mounted read-only.
fn open_to_look(name: &Path) -> io::Result<Option<File>> {
    match File::open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened.map(Some),
    }
    match private().open(name) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// Options for a file that only this user may read, as values may be secrets.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options
}

/// The operating system's refusal, with the path it is about.
pub(super) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    |source| OpenError::Io { path: path.to_owned(), source }
}
