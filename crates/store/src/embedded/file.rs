//! Making and opening the store's file. Refuses what it does not know; never overwrites it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError};

use super::directory::{Directory, io_at, private};
use super::disk::Disk;
use super::fault::Fault;
use super::schema::{BOUND, LEASES, LOG, META, META_FORMAT, STATE};
use crate::entry::LeaseId;
use crate::error::OpenError;

/// The newest form of the tables and rows that this release reads, and the one it writes.
pub(super) const FORMAT: u64 = 1;

/// Memory for pages of the file: 128 MiB, within the control plane's bar of 512 MiB and above the working
/// set of a fleet of ten thousand.
const CACHE_BYTES: usize = 128 << 20;

/// Opens the file in `directory`, making an empty one first if there is none.
pub(super) fn open(directory: &Directory) -> Result<Database, OpenError> {
    let file = directory.file();
    if !fs::exists(&file).map_err(io_at(&file))? {
        make(directory)?;
    }
    let corrupt = |reason: String| OpenError::Corrupt { file: file.clone(), reason };
    let length = fs::metadata(&file).map_err(io_at(&file))?.len();
    if length == 0 {
        return Err(corrupt("it is empty".to_owned()));
    }
    let found = catch_unwind(AssertUnwindSafe(|| {
        let database = database(&file)?;
        let format = format(&database)?;
        Ok((database, format))
    }));
    match found {
        Ok(Ok((database, Some(FORMAT)))) => Ok(database),
        Ok(Ok((_, Some(found)))) if found > FORMAT => {
            Err(OpenError::Newer { file: file.clone(), found, known: FORMAT })
        }
        Ok(Ok((_, format))) => Err(corrupt(format!("its format is {format:?}"))),
        Ok(Err(error)) => Err(refusal(&file, error)),
        Err(panic) => Err(refusal(&file, Refused::Fault(Fault::panicked(&*panic)))),
    }
}

/// The leases that were granted and have not ended.
pub(super) fn leases(database: &Database) -> Result<Vec<(LeaseId, Duration)>, Fault> {
    let table = database.begin_read()?.open_table(LEASES)?;
    let mut leases = Vec::new();
    for row in table.iter()? {
        let (lease, ttl) = row?;
        leases.push((LeaseId(lease.value()), Duration::from_millis(ttl.value())));
    }
    Ok(leases)
}

/// Makes an empty store. Killed at any moment, it leaves none or a whole one.
fn make(directory: &Directory) -> Result<(), OpenError> {
    let (unfinished, file) = (directory.unfinished(), directory.file());
    if fs::exists(&unfinished).map_err(io_at(&unfinished))? {
        fs::remove_file(&unfinished).map_err(io_at(&unfinished))?;
    }
    fill(&unfinished).map_err(|error| refusal(&unfinished, error))?;
    fs::rename(&unfinished, &file).map_err(io_at(&file))?;
    directory.sync()
}

fn fill(file: &Path) -> Result<(), Refused> {
    let database = database(file)?;
    let txn = database.begin_write().map_err(Fault::from)?;
    {
        txn.open_table(STATE).map_err(Fault::from)?;
        txn.open_table(LOG).map_err(Fault::from)?;
        txn.open_table(LEASES).map_err(Fault::from)?;
        txn.open_table(BOUND).map_err(Fault::from)?;
        let mut meta = txn.open_table(META).map_err(Fault::from)?;
        meta.insert(META_FORMAT, FORMAT).map_err(Fault::from)?;
    }
    txn.commit().map_err(Fault::from)?;
    Ok(())
}

fn database(path: &Path) -> Result<Database, Refused> {
    let disk = Disk::new(private().open(path).map_err(DatabaseError::from)?);
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder.set_repair_callback(|repair| {
        tracing::info!(done = repair.progress(), "checking the store, which was not closed");
    });
    Ok(builder.create_with_backend(disk)?)
}

fn format(database: &Database) -> Result<Option<u64>, Fault> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get(META_FORMAT)?.map(|row| row.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

enum Refused {
    Database(DatabaseError),
    Fault(Fault),
}

impl From<DatabaseError> for Refused {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Tells a bad file from a bad disk.
fn refusal(file: &Path, refused: Refused) -> OpenError {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let path: PathBuf = file.to_owned();
    match refused {
        Refused::Database(DatabaseError::Storage(StorageError::Io(source)))
            if !matches!(source.kind(), InvalidData | UnexpectedEof) =>
        {
            OpenError::Io { path, source }
        }
        Refused::Database(error) => OpenError::Corrupt { file: path, reason: error.to_string() },
        Refused::Fault(Fault::Full) => OpenError::Io { path, source: std::io::ErrorKind::StorageFull.into() },
        Refused::Fault(Fault::Panicked(reason) | Fault::Broken(reason)) => {
            OpenError::Corrupt { file: path, reason }
        }
    }
}
