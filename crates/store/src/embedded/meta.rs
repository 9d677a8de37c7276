//! The numbers of the store's file that tell what the rest of it is.

use redb::{Database, ReadableDatabase, Table, WriteTransaction};

use super::fault::FileFault;
use super::journal::JournalMark;
use super::schema::{META, META_GROUP, META_ID, META_JOURNAL, META_SALT};

/// A number of the file; `None` if it has no such number, or no numbers at all.
pub(super) fn number(database: &Database, name: &str) -> Result<Option<u64>, FileFault> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get(name)?.map(|row| row.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The mark that its journal must have.
pub(super) fn mark(database: &Database) -> Result<JournalMark, FileFault> {
    let number = |name: &str| {
        number(database, name)?.ok_or_else(|| FileFault::Broken(format!("it has no number {name}")))
    };
    Ok(JournalMark {
        id: [number(META_ID[0])?, number(META_ID[1])?],
        generation: number(META_JOURNAL)?,
        group: number(META_GROUP)?,
        salt: number(META_SALT)?,
    })
}

/// Writes it.
pub(super) fn set_mark(txn: &WriteTransaction, mark: &JournalMark) -> Result<(), FileFault> {
    let mut meta: Table<'_, &str, u64> = txn.open_table(META)?;
    let numbers = [
        (META_ID[0], mark.id[0]),
        (META_ID[1], mark.id[1]),
        (META_JOURNAL, mark.generation),
        (META_GROUP, mark.group),
        (META_SALT, mark.salt),
    ];
    for (name, number) in numbers {
        meta.insert(name, number)?;
    }
    Ok(())
}
