//! What the store asks of a file on a disk. Owns when the system may forget what it holds of it.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fstatvfs};
use rustix::io::{Errno, retry_on_intr};

/// A file on a disk, which may fail and may lose its power.
pub(super) trait Medium: Debug + Send + Sync {
    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `out` with what is at `offset`.
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes `data` at `offset`. It is durable after the next successful sync.
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts or lengthens it; what is new is zeros.
    fn resize(&self, length: u64) -> io::Result<()>;

    /// Makes what was written durable. After a failure nobody knows what is, and a second try proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// Has the next reads come from the disk. What was not synced may stay in memory.
    fn forget(&self) -> io::Result<()>;

    /// Free bytes of its file system.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Reserves space; on a file system that cannot, a full disk is met while writing.
    fn reserve(&self, offset: u64, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn resize(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn forget(&self) -> io::Result<()> {
        match fadvise(self, 0, None, Advice::DontNeed) {
            // A file system without a cache has nothing to forget.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(refused) => Err(refused.into()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let disk = fstatvfs(self)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        match retry_on_intr(|| fallocate(self, FallocateFlags::empty(), offset, length)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(refused) => Err(refused.into()),
        }
    }
}

/// Makes what is read from now on what the disk has. After a failed sync the system may show pages that the disk
/// has lost: whoever trusted them would take a checkpoint for done, and write over the journal that holds it.
pub(super) fn settle(medium: &dyn Medium) -> io::Result<()> {
    medium.sync()?;
    medium.forget()
}

/// All of it.
pub(super) fn read_all(medium: &dyn Medium) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(medium.length()?).unwrap_or(usize::MAX)];
    medium.read(&mut bytes, 0)?;
    Ok(bytes)
}
