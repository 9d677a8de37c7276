//! Gives the space of deleted records back to the file system, when a store is opened. Owns when that is worth its time.
//!
//! Each step of it is a commit of its own in two phases: killed at any moment, the file holds all that it held.

use redb::{Database, Durability};

use super::directory::Directory;
use super::fault::FileFault;
use super::file::OpenFiles;
use crate::error::OpenError;

/// Length below which a file stays as it is, in bytes: 16 MiB, what a few thousand nodes with their history take.
const SMALL: u64 = 16 << 20;

/// A file is shrunk when its records take less than one in so many of its bytes: below that, it would soon grow again.
const SHARE: u64 = 2;

/// Shrinks the file if most of it is free. If that fails, the file is opened again as it is.
pub(super) fn shrink(files: OpenFiles, directory: &Directory) -> Result<OpenFiles, OpenError> {
    let OpenFiles { mut database, journal, mut room, replayed, cut } = files;
    let before = length(directory);
    // What only the journal holds is not durable in the file yet; a full disk keeps it so.
    let fits = journal.is_empty() && before >= SMALL && room.take().is_ok();
    let is_due = fits && used(&database).is_ok_and(|used| used.saturating_mul(SHARE) < before);
    if !is_due {
        return Ok(OpenFiles { database, journal, room, replayed, cut });
    }
    match database.compact() {
        Ok(_) => {
            tracing::info!(before, after = length(directory), "the store's file was shrunk");
            Ok(OpenFiles { database, journal, room, replayed, cut })
        }
        Err(error) => {
            tracing::warn!(%error, "cannot shrink the store's file; it is used as it is");
            // The library does not go on after a failed write.
            drop(database);
            // The journal is empty now; what was left out of it is still to be told.
            Ok(OpenFiles { cut, ..super::file::open(directory)? })
        }
    }
}

fn length(directory: &Directory) -> u64 {
    std::fs::metadata(directory.file()).map_or(0, |file| file.len())
}

/// Bytes of the pages in use.
fn used(database: &Database) -> Result<u64, FileFault> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::None)?;
    let stats = txn.stats()?;
    txn.abort()?;
    let page = u64::try_from(stats.page_size()).unwrap_or(u64::MAX);
    Ok(stats.allocated_pages().saturating_mul(page))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use redb::{ReadableDatabase, ReadableTable, StorageBackend};

    use super::super::disk::Disk;
    use super::super::schema::STATE;
    use super::*;

    /// A disk that ends after a number of writes, as seen by a process that is killed.
    #[derive(Debug)]
    struct EndingDisk(Disk, Arc<AtomicU64>);

    impl EndingDisk {
        fn write_one(&self) -> io::Result<()> {
            let left = self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.map(drop).map_err(|_| io::Error::other("killed"))
        }
    }

    impl StorageBackend for EndingDisk {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.0.read(offset, out)
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.write_one()?;
            self.0.set_len(length)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.write_one()?;
            self.0.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.write_one()?;
            self.0.write(offset, data)
        }
    }

    fn open(path: &Path, left: u64) -> Result<Database, redb::DatabaseError> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let disk = EndingDisk(Disk::new(Arc::new(file)), Arc::new(AtomicU64::new(left)));
        Database::builder().create_with_backend(disk)
    }

    fn rows(database: &Database) -> Vec<(Vec<u8>, usize)> {
        let table = database.begin_read().unwrap().open_table(STATE).unwrap();
        let rows = table.iter().unwrap().map(Result::unwrap);
        rows.map(|(key, value)| (key.value().to_vec(), value.value().len())).collect()
    }

    /// A file of which one row in ten is left.
    fn grown(path: &Path) -> Vec<(Vec<u8>, usize)> {
        let database = open(path, u64::MAX).unwrap();
        for keep in [false, true] {
            let txn = database.begin_write().unwrap();
            let mut table = txn.open_table(STATE).unwrap();
            for number in 0..400_u32 {
                let key = number.to_be_bytes();
                if keep && number % 10 != 0 {
                    drop(table.remove(&key[..]).unwrap());
                } else {
                    drop(table.insert(&key[..], &*vec![7; 4_000]).unwrap());
                }
            }
            drop(table);
            txn.commit().unwrap();
        }
        rows(&database)
    }

    #[test]
    fn killed_at_any_write_the_file_holds_all_that_it_held() {
        let dir = tempfile::tempdir().unwrap();
        let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
        let held = grown(&whole);
        let before = std::fs::metadata(&whole).unwrap().len();
        let mut left = 0;
        loop {
            std::fs::copy(&whole, &cut).unwrap();
            let ended = match open(&cut, left) {
                Ok(mut database) => database.compact().map(drop).is_ok(),
                Err(_) => false,
            };
            let database = open(&cut, u64::MAX).unwrap();
            assert_eq!(rows(&database), held, "after {left} writes");
            if ended {
                break;
            }
            left += 1 + left / 8;
        }
        assert!(left > 10, "it ends after {left} writes");
        assert!(std::fs::metadata(&cut).unwrap().len() * 2 < before);
    }
}
