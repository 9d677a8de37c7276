//! The bytes of the store's file, and the disk space they need.
//!
//! The library grows the file as a hole and cannot go on after a write that found the disk full. So its pages
//! are written only when there is space for all of them; until then the journal holds what they hold.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bellwether_rt::fail::{self, FailPoint};
use redb::StorageBackend;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::{Errno, retry_on_intr};

use super::fault::{FileFault, is_full};

/// An open file. Its directory is locked, so the file itself is not.
#[derive(Debug)]
pub(super) struct Disk(File);

impl Disk {
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        fail::pass(FailPoint::PagesWritten);
        // The kernel forgets which pages a failed sync lost, so trying again proves nothing.
        self.0.sync_data().map_err(|error| {
            if is_full(&error) { io::Error::other(format!("could not sync: {error}")) } else { error }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

/// Free bytes that suffice without being reserved: more than the library holds back of pages (half of its
/// cache) before it writes them out. So a file that just doubled in length needs no free half.
const AMPLE: u64 = 96 << 20;

/// Disk space reserved for the store's file.
#[derive(Debug)]
pub(super) struct ReservedSpace {
    file: File,
    taken: u64,
}

impl ReservedSpace {
    pub(super) fn new(file: File) -> Self {
        Self { file, taken: 0 }
    }

    /// Ensures that every page of the file can be written. After [`FileFault::NoRoom`] nothing has changed.
    pub(super) fn take(&mut self) -> Result<(), FileFault> {
        let disk = fstatvfs(&self.file).map_err(|errno| FileFault::from_write(&errno.into()))?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) >= AMPLE {
            return Ok(());
        }
        let length = self.file.metadata().map_err(|error| FileFault::from_write(&error))?.len();
        self.taken = self.taken.min(length);
        let more = length.saturating_sub(self.taken);
        if more > 0 {
            match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), self.taken, more)) {
                // Some file systems cannot reserve space; there a full disk is met while writing.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.taken = length,
                Err(refused) => return Err(FileFault::from_write(&refused.into())),
            }
        }
        Ok(())
    }
}
