//! The bytes of the store's file. Owns two promises the library's own file access does not make: room is
//! taken when the file grows, not when pages are written; and a failed sync is never taken for a full disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use redb::StorageBackend;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::fault::is_full;

/// An open file. Its directory is locked, so the file itself is not.
#[derive(Debug)]
pub(super) struct Disk(File);

impl Disk {
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }

    /// Takes room for `more` bytes behind `length`, so that no later write finds the disk full.
    fn grow(&self, length: u64, more: u64) -> io::Result<()> {
        match fallocate(&self.0, FallocateFlags::empty(), length, more) {
            Ok(()) => Ok(()),
            // Some file systems cannot take room ahead; there a full disk is met while writing.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.0.set_len(length.saturating_add(more)),
            Err(refused) => {
                // Gives back what was taken before the room ended.
                self.0.set_len(length)?;
                Err(refused.into())
            }
        }
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
        let now = self.len()?;
        match length.checked_sub(now) {
            Some(0) => Ok(()),
            Some(more) => self.grow(now, more),
            None => self.0.set_len(length),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        // The kernel forgets which pages a failed sync lost, so trying again proves nothing.
        self.0.sync_data().map_err(|error| {
            if is_full(&error) { io::Error::other(format!("could not sync: {error}")) } else { error }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}
