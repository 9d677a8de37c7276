//! Creating and opening the store's file. Refuses what it does not know; never overwrites it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_rt::fail::{self, FailPoint};
use redb::{Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, StorageError};

use super::directory::{Directory, io_at, private};
use super::disk::{Disk, ReservedSpace};
use super::fault::FileFault;
use super::journal::Journal;
use super::redo;
use super::schema::{BOUND, LEASES, LOG, META, META_FORMAT, META_JOURNAL, STATE};
use super::tables::Tables;
use crate::entry::LeaseId;
use crate::error::OpenError;
use crate::lease::Leases;

/// The newest format that this release reads, and the one it writes.
pub(super) const FORMAT: u64 = 1;

/// Cache for pages of the file, in bytes. Twice as much made no measurable difference on 100,000 keys: the
/// system caches the file's pages too.
const CACHE_BYTES: usize = 16 << 20;

/// A store's files, open.
#[derive(Debug)]
pub(super) struct OpenFiles {
    pub(super) database: Database,
    pub(super) journal: Journal,
    pub(super) room: ReservedSpace,
}

/// Opens the file in `directory` with its journal, making both first if there is none. Afterwards the
/// database shows all that was ever acknowledged.
pub(super) fn open(directory: &Directory) -> Result<OpenFiles, OpenError> {
    let file = directory.file();
    if !fs::exists(&file).map_err(io_at(&file))? {
        make(directory)?;
    }
    let corrupt = |reason: String| OpenError::Corrupt { file: file.clone(), reason };
    if fs::metadata(&file).map_err(io_at(&file))?.len() == 0 {
        return Err(corrupt("it is empty".to_owned()));
    }
    let found = calmly(|| {
        let database = database(&file)?;
        let format = number(&database, META_FORMAT)?;
        Ok((database, format))
    });
    match found.map_err(|refused| refusal(&file, refused))? {
        (database, Some(FORMAT)) => Ok(catch_up(database, directory)?),
        (_, Some(found)) if found > FORMAT => Err(OpenError::Newer { file, found, known: FORMAT }),
        (_, format) => Err(corrupt(format!("its format is {format:?}"))),
    }
}

/// Brings the database up to what its journal holds.
fn catch_up(database: Database, directory: &Directory) -> Result<OpenFiles, OpenError> {
    let file = directory.file();
    let refuse = |refused| refusal(&file, refused);
    let generation = calmly(|| Ok(number(&database, META_JOURNAL)?)).map_err(refuse)?.unwrap_or(0);
    let (mut journal, payloads) = Journal::open(directory.journal(), generation)?;
    let mut room = ReservedSpace::new(private().open(&file).map_err(io_at(&file))?);
    if !payloads.is_empty() {
        tracing::info!(groups = payloads.len(), "reading the journal of a store that was not closed");
        let caught_up = calmly(|| {
            payloads.iter().try_for_each(|payload| again(&database, payload))?;
            Ok(make_durable(&database, &mut journal, &mut room)?)
        });
        match caught_up {
            // A full disk: the journal keeps holding what it holds.
            Ok(()) | Err(OpenRefusal::Fault(FileFault::NoRoom)) => {}
            Err(refused) => return Err(refuse(refused)),
        }
    }
    Ok(OpenFiles { database, journal, room })
}

/// Replays a group: shown to readers, durable in the journal.
fn again(database: &Database, payload: &[u8]) -> Result<(), FileFault> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::None)?;
    redo::again(payload, &mut Tables::open(&txn, &Leases::default())?)?;
    Ok(txn.commit()?)
}

/// Makes the file hold all that the database shows, and restarts the journal.
pub(super) fn make_durable(
    database: &Database,
    journal: &mut Journal,
    room: &mut ReservedSpace,
) -> Result<(), FileFault> {
    room.take()?;
    let txn = database.begin_write()?;
    txn.open_table(META)?.insert(META_JOURNAL, journal.next_generation())?;
    txn.commit()?;
    fail::pass(FailPoint::CaughtUp);
    journal.restart()
}

/// Runs work on the database; its panics over a damaged file become faults.
fn calmly<T>(work: impl FnOnce() -> Result<T, OpenRefusal>) -> Result<T, OpenRefusal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(FileFault::panicked(&*panic).into()))
}

/// The leases that were granted and have not ended.
pub(super) fn leases(database: &Database) -> Result<Vec<(LeaseId, Duration)>, FileFault> {
    let table = database.begin_read()?.open_table(LEASES)?;
    let mut leases = Vec::new();
    for row in table.iter()? {
        let (lease, ttl) = row?;
        leases.push((LeaseId(lease.value()), Duration::from_millis(ttl.value())));
    }
    Ok(leases)
}

/// Creates an empty store. Killed at any moment, it leaves none or a complete one.
fn make(directory: &Directory) -> Result<(), OpenError> {
    let (unfinished, file) = (directory.unfinished(), directory.file());
    Journal::make(&directory.journal())?;
    if fs::exists(&unfinished).map_err(io_at(&unfinished))? {
        fs::remove_file(&unfinished).map_err(io_at(&unfinished))?;
    }
    fill(&unfinished).map_err(|error| refusal(&unfinished, error))?;
    fs::rename(&unfinished, &file).map_err(io_at(&file))?;
    directory.sync()
}

fn fill(file: &Path) -> Result<(), OpenRefusal> {
    let database = database(file)?;
    let txn = database.begin_write().map_err(FileFault::from)?;
    {
        txn.open_table(STATE).map_err(FileFault::from)?;
        txn.open_table(LOG).map_err(FileFault::from)?;
        txn.open_table(LEASES).map_err(FileFault::from)?;
        txn.open_table(BOUND).map_err(FileFault::from)?;
        let mut meta = txn.open_table(META).map_err(FileFault::from)?;
        meta.insert(META_FORMAT, FORMAT).map_err(FileFault::from)?;
    }
    txn.commit().map_err(FileFault::from)?;
    Ok(())
}

fn database(path: &Path) -> Result<Database, OpenRefusal> {
    let disk = Disk::new(private().open(path).map_err(DatabaseError::from)?);
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder.set_repair_callback(|repair| {
        tracing::info!(done = repair.progress(), "checking the store, which was not closed");
    });
    Ok(builder.create_with_backend(disk)?)
}

/// A number of the file; `None` if it has no such number, or no numbers at all.
fn number(database: &Database, name: &str) -> Result<Option<u64>, FileFault> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get(name)?.map(|row| row.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

enum OpenRefusal {
    Database(DatabaseError),
    Fault(FileFault),
}

impl From<DatabaseError> for OpenRefusal {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<FileFault> for OpenRefusal {
    fn from(fault: FileFault) -> Self {
        Self::Fault(fault)
    }
}

/// Distinguishes a bad file from a bad disk.
fn refusal(file: &Path, refused: OpenRefusal) -> OpenError {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let path: PathBuf = file.to_owned();
    match refused {
        OpenRefusal::Database(DatabaseError::Storage(StorageError::Io(source)))
            if !matches!(source.kind(), InvalidData | UnexpectedEof) =>
        {
            OpenError::Io { path, source }
        }
        OpenRefusal::Database(error) => OpenError::Corrupt { file: path, reason: error.to_string() },
        OpenRefusal::Fault(FileFault::NoRoom | FileFault::Full) => {
            OpenError::Io { path, source: std::io::ErrorKind::StorageFull.into() }
        }
        OpenRefusal::Fault(FileFault::Panicked(reason) | FileFault::Broken(reason)) => {
            OpenError::Corrupt { file: path, reason }
        }
    }
}
