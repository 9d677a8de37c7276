//! Creating and opening the store's file. Refuses what it does not know; never overwrites it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError};

use super::checkpoint::{Syncs, make_durable, replay};
use super::directory::{Directory, io_at, private};
use super::disk::{Disk, ReservedSpace};
use super::fault::FileFault;
use super::journal::{Journal, JournalMark, OpenJournal};
use super::medium::{Medium, settle};
use super::meta;
use super::overlay::Overlay;
use super::schema::{BOUND, LEASES, LOG, META, META_FORMAT, META_JOURNAL, META_SUMS, STATE};
use super::upgrade::{self, OLD};
use crate::entry::LeaseId;
use crate::error::OpenError;
use crate::health::JournalCut;

/// The newest format that this release reads, and the one it writes.
pub(super) const FORMAT: u64 = 2;

/// Cache for pages of the file, in bytes. Twice as much made no measurable difference on 100,000 keys: the
/// system caches the file's pages too.
const CACHE_BYTES: usize = 16 << 20;

/// A store's files, open.
#[derive(Debug)]
pub(super) struct OpenFiles {
    pub(super) database: Database,
    pub(super) journal: Journal,
    pub(super) room: ReservedSpace,
    /// Groups that were replayed from the journal.
    pub(super) replayed: usize,
    /// One at its end that is not whole and was left out.
    pub(super) cut: Option<JournalCut>,
}

/// Opens the file in `directory` with its journal, making both first if there is none. Afterwards the
/// database shows all that was ever acknowledged.
pub(super) fn open(directory: &Directory) -> Result<OpenFiles, OpenError> {
    let file = directory.file();
    if !fs::exists(&file).map_err(io_at(&file))? {
        make(directory)?;
    }
    if fs::metadata(&file).map_err(io_at(&file))?.len() == 0 {
        return Err(OpenError::Corrupt { file, reason: "it is empty".to_owned() });
    }
    let store: Arc<dyn Medium> = Arc::new(private().open(&file).map_err(io_at(&file))?);
    open_on(directory, store, || {
        let journal = journal_of(directory)?;
        Ok(Arc::new(private().open(&journal).map_err(io_at(&journal))?))
    })
}

/// Opens the file in `directory` with its journal under changes that stay in memory, as [`open`] would open them.
pub(super) fn open_to_look(directory: &Directory) -> Result<OpenFiles, OpenError> {
    let over = |path: &Path| -> Result<Arc<dyn Medium>, OpenError> {
        let below = fs::File::open(path).map_err(io_at(path))?;
        Ok(Arc::new(Overlay::new(Arc::new(below)).map_err(io_at(path))?))
    };
    open_on(directory, over(&directory.file())?, || over(&journal_of(directory)?))
}

/// The journal's name, if there is one.
pub(super) fn journal_of(directory: &Directory) -> Result<PathBuf, OpenError> {
    let journal = directory.journal();
    if fs::exists(&journal).map_err(io_at(&journal))? {
        return Ok(journal);
    }
    let reason = "it is missing, and with it the latest commits".to_owned();
    Err(OpenError::Corrupt { file: journal, reason })
}

/// Opens the store on `store` and what `journal` finds, with the names and beside the other files of `directory`.
pub(super) fn open_on(
    directory: &Directory,
    store: Arc<dyn Medium>,
    journal: impl FnOnce() -> Result<Arc<dyn Medium>, OpenError>,
) -> Result<OpenFiles, OpenError> {
    let file = directory.file();
    settle(&*store).map_err(io_at(&file))?;
    let (format, mark) = calmly(|| verify(&store)).map_err(|refused| refusal(&file, refused))?;
    match format {
        Some(FORMAT | OLD) => {}
        Some(found) if found > FORMAT => return Err(OpenError::Newer { file, found, known: FORMAT }),
        format => {
            return Err(OpenError::Corrupt { file, reason: format!("its format is {format:?}") });
        }
    }
    let media = Media { store, journal: journal()? };
    settle(&*media.journal).map_err(io_at(&directory.journal()))?;
    if let Some(mark) = mark {
        Journal::check(&*media.journal, &directory.journal(), &mark)?;
    }
    let opened = calmly(|| database(Disk::new(media.store.clone())));
    let (database, _) = opened.map_err(|refused| refusal(&file, refused))?;
    calmly(|| Ok(upgrade::seal_rows(&database)?)).map_err(|refused| refusal(&file, refused))?;
    if format == Some(OLD) {
        upgrade_from_1(&database, &media, directory)?;
    }
    catch_up(database, media, directory)
}

/// Verifies every page, without a change, and gives the format and, of a store of the present one, its mark. The library
/// verifies pages after a crash only, and by it may fall back to an older state, which the mark then tells; a file that
/// was closed in order it takes as it is.
fn verify(store: &Arc<dyn Medium>) -> Result<(Option<u64>, Option<JournalMark>), OpenRefusal> {
    let overlay = Overlay::new(store.clone()).map_err(DatabaseError::from)?;
    let (mut database, was_repaired) = database(Disk::over(overlay))?;
    if was_repaired {
        tracing::info!("the store was not closed; all of it was verified");
    } else if !database.check_integrity()? {
        return Err(FileFault::Broken("a page of it is damaged".to_owned()).into());
    }
    let format = meta::number(&database, META_FORMAT)?;
    let mark = if format == Some(FORMAT) { Some(meta::mark(&database)?) } else { None };
    Ok((format, mark))
}

/// What the two files are on.
#[derive(Debug)]
struct Media {
    store: Arc<dyn Medium>,
    journal: Arc<dyn Medium>,
}

fn upgrade_from_1(database: &Database, media: &Media, directory: &Directory) -> Result<(), OpenError> {
    let refuse = |refused| refusal(&directory.file(), refused);
    tracing::info!(from = OLD, to = FORMAT, "upgrading the store");
    let generation = calmly(|| Ok(meta::number(database, META_JOURNAL)?)).map_err(refuse)?;
    let groups = upgrade::old_groups(&directory.journal(), &*media.journal, generation.unwrap_or(0))?;
    let mut room = ReservedSpace::new(media.store.clone());
    calmly(|| Ok(upgrade::upgrade(database, &*media.journal, &mut room, &groups, FORMAT)?)).map_err(refuse)
}

/// Brings the database up to what its journal holds.
fn catch_up(database: Database, media: Media, directory: &Directory) -> Result<OpenFiles, OpenError> {
    let refuse = |refused| refusal(&directory.file(), refused);
    let mark = calmly(|| Ok(meta::mark(&database)?)).map_err(refuse)?;
    let path = directory.journal();
    let OpenJournal { mut journal, payloads, torn } = Journal::open(media.journal, &path, &mark)?;
    if let Some((torn, cut)) = &torn {
        tracing::warn!(
            at = cut.at,
            bytes = cut.bytes,
            "the last group in the journal is not whole: it is left out, and kept in journal.cut; a power cut leaves it so before \
             anybody is told of it, and damage after that looks the same"
        );
        directory.keep_torn(torn);
    }
    let mut room = ReservedSpace::new(media.store);
    let is_suspect = directory.is_suspect();
    if !payloads.is_empty() || is_suspect {
        tracing::info!(
            groups = payloads.len(),
            is_suspect,
            "reading the journal of a store that was not closed"
        );
        let caught_up = calmly(|| {
            payloads.iter().try_for_each(|payload| replay(&database, payload))?;
            Ok(make_durable(&database, &mut journal, &mut room, Syncs::Two)?)
        });
        match caught_up {
            Ok(()) => directory.trust(),
            // A full disk: the journal keeps holding what it holds.
            Err(OpenRefusal::Fault(FileFault::NoRoom)) => {}
            Err(refused) => return Err(refuse(refused)),
        }
    }
    Ok(OpenFiles { database, journal, room, replayed: payloads.len(), cut: torn.map(|(_, cut)| cut) })
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
    let mark = JournalMark::random().map_err(io_at(&file))?;
    Journal::make(&directory.journal(), &mark)?;
    if fs::exists(&unfinished).map_err(io_at(&unfinished))? {
        fs::remove_file(&unfinished).map_err(io_at(&unfinished))?;
    }
    fill(&unfinished, &mark).map_err(|error| refusal(&unfinished, error))?;
    fs::rename(&unfinished, &file).map_err(io_at(&file))?;
    directory.sync()
}

fn fill(file: &Path, mark: &JournalMark) -> Result<(), OpenRefusal> {
    let (database, _) = database(Disk::new(Arc::new(private().open(file).map_err(DatabaseError::from)?)))?;
    let txn = database.begin_write().map_err(FileFault::from)?;
    {
        txn.open_table(STATE).map_err(FileFault::from)?;
        txn.open_table(LOG).map_err(FileFault::from)?;
        txn.open_table(LEASES).map_err(FileFault::from)?;
        txn.open_table(BOUND).map_err(FileFault::from)?;
        let mut meta = txn.open_table(META).map_err(FileFault::from)?;
        meta.insert(META_FORMAT, FORMAT).map_err(FileFault::from)?;
        meta.insert(META_SUMS, 1).map_err(FileFault::from)?;
    }
    meta::set_mark(&txn, mark)?;
    txn.commit().map_err(FileFault::from)?;
    Ok(())
}

/// Opens it, and says whether it was not closed, so that all of it was verified and put in order.
fn database(disk: Disk) -> Result<(Database, bool), OpenRefusal> {
    let was_repaired = Arc::new(AtomicBool::new(false));
    let repairs = was_repaired.clone();
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder.set_repair_callback(move |_| repairs.store(true, Ordering::Relaxed));
    let database = builder.create_with_backend(disk)?;
    Ok((database, was_repaired.load(Ordering::Relaxed)))
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
