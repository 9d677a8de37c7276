//! Takes a store of format 1 over. Killed at any moment, it is of format 1 or of the present one, and holds all that it held.

use std::path::Path;

use redb::{AccessGuard, Database, ReadableTable};

use super::checkpoint::replay;
use super::directory::io_at;
use super::disk::ReservedSpace;
use super::fault::FileFault;
use super::journal::{self, Journal, JournalMark};
use super::medium::{Medium, read_all};
use super::meta;
use super::record;
use super::schema::{LOG, META, META_FORMAT, META_JOURNAL, META_SUMS, STATE};
use crate::error::OpenError;

/// The format without marks: its journal has no header, and its frames no numbers.
pub(super) const OLD: u64 = 1;

/// The groups that the journal of a store of format 1 holds.
pub(super) fn old_groups(
    path: &Path,
    medium: &dyn Medium,
    generation: u64,
) -> Result<Vec<Vec<u8>>, OpenError> {
    journal::read_format_1(path, &read_all(medium).map_err(io_at(path))?, generation)
}

/// Makes the store one of `format`, with the groups of its journal.
pub(super) fn upgrade(
    database: &Database,
    medium: &dyn Medium,
    room: &mut ReservedSpace,
    groups: &[Vec<u8>],
    format: u64,
) -> Result<(), FileFault> {
    let old = meta::number(database, META_JOURNAL)?.unwrap_or(0);
    groups.iter().try_for_each(|payload| replay(database, payload))?;
    room.take()?;
    // First the database alone holds everything, in the old format: then nothing of the old journal is needed.
    let generation = old.saturating_add(1);
    let txn = database.begin_write()?;
    txn.open_table(META)?.insert(META_JOURNAL, generation)?;
    txn.commit()?;
    let random = JournalMark::random().map_err(|error| FileFault::Broken(error.to_string()))?;
    let mark = JournalMark { generation, ..random };
    Journal::remake(medium, &mark)?;
    let txn = database.begin_write()?;
    meta::set_mark(&txn, &mark)?;
    txn.open_table(META)?.insert(META_FORMAT, format)?;
    Ok(txn.commit()?)
}

/// Rows that are read before they are written again: some MiB of the largest.
const SLICE: usize = 100;

/// Gives each row of the state and the log its checksum, unless they have it: in one transaction, so that a row has one or
/// none has.
pub(super) fn seal_rows(database: &Database) -> Result<(), FileFault> {
    if meta::number(database, META_SUMS)?.is_some() {
        return Ok(());
    }
    let txn = database.begin_write()?;
    let (mut state, mut from) = (txn.open_table(STATE)?, Some(Vec::new()));
    while let Some(start) = from.take() {
        let rows: Vec<_> =
            state.range(&*start..)?.take(SLICE).map(|row| row.map(copied)).collect::<Result<_, _>>()?;
        for (key, mut row) in rows {
            record::seal(&mut row, &key);
            state.insert(&*key, &*row)?;
            // The first key behind it.
            from = Some([&*key, &[0]].concat());
        }
    }
    drop(state);
    let (mut log, mut from) = (txn.open_table(LOG)?, Some(0));
    while let Some(start) = from.take() {
        let rows = log
            .range(start..)?
            .take(SLICE)
            .map(|row| row.map(|(key, row)| (key.value(), row.value().to_vec())));
        for (revision, mut row) in rows.collect::<Result<Vec<_>, _>>()? {
            record::seal(&mut row, &revision.to_le_bytes());
            log.insert(revision, &*row)?;
            from = revision.checked_add(1);
        }
    }
    drop(log);
    txn.open_table(META)?.insert(META_SUMS, 1)?;
    Ok(txn.commit()?)
}

fn copied(
    (key, row): (AccessGuard<'_, &'static [u8]>, AccessGuard<'_, &'static [u8]>),
) -> (Vec<u8>, Vec<u8>) {
    (key.value().to_vec(), row.value().to_vec())
}
