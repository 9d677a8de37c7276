//! The bytes of the store's file, and the disk space they need.
//!
//! The library grows the file as a hole and cannot go on after a write that found the disk full. So its pages
//! are written only when there is space for all of them; until then the journal holds what they hold.

use std::io;
use std::sync::Arc;

use bellwether_rt::fail::{self, FailPoint};
use redb::StorageBackend;

use super::fault::{FileFault, is_full};
use super::medium::Medium;
use super::overlay::Overlay;

/// An open file. Its directory is locked, so the file itself is not.
#[derive(Debug)]
pub(super) struct Disk {
    medium: Arc<dyn Medium>,
    /// Where a test may kill the process, if what is synced reaches a disk.
    on_sync: Option<FailPoint>,
}

impl Disk {
    pub(super) fn new(medium: Arc<dyn Medium>) -> Self {
        Self { medium, on_sync: Some(FailPoint::PagesWritten) }
    }

    /// A file under changes that stay in memory.
    pub(super) fn over(overlay: Overlay) -> Self {
        Self { medium: Arc::new(overlay), on_sync: None }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.medium.length()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.medium.read(out, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.medium.resize(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(point) = self.on_sync {
            fail::pass(point);
        }
        // The kernel forgets which pages a failed sync lost, so trying again proves nothing.
        self.medium.sync().map_err(|error| {
            if is_full(&error) { io::Error::other(format!("cannot sync: {error}")) } else { error }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.medium.write(data, offset)
    }
}

/// Free bytes that suffice without being reserved: more than the library holds back of pages (half of its
/// cache) before it writes them out. So a file that just doubled in length needs no free half.
const AMPLE: u64 = 96 << 20;

/// Disk space reserved for the store's file.
#[derive(Debug)]
pub(super) struct ReservedSpace {
    medium: Arc<dyn Medium>,
    taken: u64,
}

impl ReservedSpace {
    pub(super) fn new(medium: Arc<dyn Medium>) -> Self {
        Self { medium, taken: 0 }
    }

    /// Ensures that every page of the file can be written. After [`FileFault::NoRoom`] nothing has changed.
    pub(super) fn take(&mut self) -> Result<(), FileFault> {
        let refused = |error: io::Error| FileFault::from_write(&error);
        if self.medium.free_bytes().map_err(refused)? >= AMPLE {
            return Ok(());
        }
        let length = self.medium.length().map_err(refused)?;
        self.taken = self.taken.min(length);
        let more = length.saturating_sub(self.taken);
        if more > 0 {
            self.medium.reserve(self.taken, more).map_err(refused)?;
            self.taken = length;
        }
        Ok(())
    }
}
