//! The directory of a file, held open: reached from the root down without following a link, so that what is written goes to the
//! directory that was looked at, whatever is moved meanwhile.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::writers::Writers;

/// Flags of a handle that stands for a directory, and for nothing that a link points to.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Longest file that is read, in bytes: what is replaced may have been made endless by somebody else.
const MAX_OLD_BYTES: u64 = 64 << 20;

/// A directory that is held open.
#[derive(Debug)]
pub(super) struct FileDirectory {
    handle: OwnedFd,
    path: PathBuf,
}

/// A regular file that is held open for reading.
#[derive(Debug)]
pub(super) struct OldFile {
    file: File,
    pub(super) mode: u32,
    /// User and group.
    pub(super) owner: (u32, u32),
    length: u64,
}

impl FileDirectory {
    /// The directory of the file at `path`. With `writers`, one that others may write, or move, is refused.
    ///
    /// # Errors
    /// One line with the file or directory and the reason.
    pub(super) fn of(path: &Path, writers: Option<&Writers>) -> Result<Self, String> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let failed = |error: Errno| failure("write to the directory", dir, &error.into());
        let refused = |reason: String| Err(format!("cannot write {}: {reason}", path.display()));
        let mut here = Self {
            handle: openat(CWD, "/", HANDLE, Mode::empty()).map_err(failed)?,
            path: PathBuf::from("/"),
        };
        let mut about = fstat(&here.handle).map_err(failed)?;
        for part in dir.components() {
            let Component::Normal(name) = part else { continue };
            let handle = match openat(&here.handle, name, HANDLE, Mode::empty()) {
                Ok(handle) => handle,
                Err(error) => {
                    let link = here.link(Path::new(name));
                    let Some(to) = link else { return Err(failed(error)) };
                    let (at, to) = (here.path.join(name), to.display());
                    return refused(format!("{} is a link to {to}; name the directory itself", at.display()));
                }
            };
            let below = fstat(&handle).map_err(failed)?;
            if let Some(writers) = writers
                && let Err(reason) = writers.trusts_on_the_way(&here.path, &about, &below)
            {
                return refused(reason);
            }
            here = Self { handle, path: here.path.join(name) };
            about = below;
        }
        match writers.map_or(Ok(()), |writers| writers.trusts(&here.path, &about)) {
            Ok(()) => Ok(here),
            Err(reason) => refused(reason),
        }
    }

    /// Where a link of this name points to; `None` if it is no link.
    pub(super) fn link(&self, name: &Path) -> Option<PathBuf> {
        let to = readlinkat(&self.handle, name, Vec::new()).ok()?;
        Some(PathBuf::from(to.to_string_lossy().into_owned()))
    }

    /// Opens the regular file of this name; `None` if there is nothing of this name.
    ///
    /// # Errors
    /// The reason, also for what is a link or no regular file.
    pub(super) fn read(&self, name: &Path) -> io::Result<Option<OldFile>> {
        // What is no file, such as a pipe, is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it exists and is not a regular file"));
        }
        let owner = (about.uid(), about.gid());
        Ok(Some(OldFile { file, mode: about.mode() & 0o7777, owner, length: about.len() }))
    }

    /// Whether something of this name is no regular file.
    pub(super) fn is_other(&self, name: &Path) -> bool {
        let about = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW);
        about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) != FileType::RegularFile)
    }

    /// Creates a file that nobody else may read yet.
    pub(super) fn create(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Removes a file; one that is gone already counts as removed.
    pub(super) fn remove(&self, name: &Path) -> io::Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves a file within the directory, so that the move survives a power failure.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        renameat(&self.handle, from, &self.handle, to)?;
        self.sync()
    }

    /// Writes what the directory lists to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(openat(&self.handle, ".", flags, Mode::empty())?).sync_all()
    }
}

impl OldFile {
    /// The content.
    ///
    /// # Errors
    /// The reason; a file of more than 64 MiB is not read.
    pub(super) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let most = MAX_OLD_BYTES.saturating_add(1);
        Read::by_ref(&mut self.file).take(most).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_OLD_BYTES) {
            return Ok(bytes);
        }
        Err(io::Error::other(format!("what it replaces has more than {MAX_OLD_BYTES} bytes")))
    }

    /// Whether the content is this text.
    pub(super) fn is(&mut self, text: &str) -> io::Result<bool> {
        let same = u64::try_from(text.len()).is_ok_and(|wanted| wanted == self.length);
        Ok(same && self.bytes()? == text.as_bytes())
    }
}

/// What failed, in one line.
pub(super) fn failure(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
