//! What can go wrong with the file, distinguished by what the writer does next.

use std::any::Any;
use std::io;
use std::path::Path;

use super::record::DamagedRecord;
use crate::error::StoreError;

/// A failed piece of work on the file.
#[derive(Debug)]
pub(super) enum FileFault {
    /// There was no space, which was detected before anything was changed.
    NoRoom,
    /// There was no space: nothing was kept, and the file can be used again once it is reopened.
    Full,
    /// The library gave up on a state it did not expect; the file itself may be intact.
    Panicked(String),
    /// The disk or the file failed. What is on the disk is not known, so nothing more is written.
    Broken(String),
}

impl FileFault {
    /// The error for callers.
    pub(super) fn tell(&self, file: &Path) -> StoreError {
        match self {
            Self::NoRoom | Self::Full => {
                let place = file.parent().unwrap_or(file).display().to_string();
                StoreError::DiskFull { place }
            }
            Self::Panicked(reason) | Self::Broken(reason) => {
                StoreError::Broken { reason: format!("{} failed: {reason}", file.display()) }
            }
        }
    }

    /// The fault behind a caught panic.
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "an unknown panic".to_owned()))
    }

    /// The fault behind a refused write to the journal.
    pub(super) fn from_write(error: &io::Error) -> Self {
        if is_full(error) { Self::NoRoom } else { Self::Broken(error.to_string()) }
    }
}

/// Whether the operating system refused for lack of space: disk, quota or the process's file size limit.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

impl From<redb::Error> for FileFault {
    fn from(error: redb::Error) -> Self {
        if matches!(&error, redb::Error::Io(error) if is_full(error)) {
            Self::Full
        } else {
            Self::Broken(error.to_string())
        }
    }
}

impl From<DamagedRecord> for FileFault {
    fn from(damaged: DamagedRecord) -> Self {
        Self::Broken(damaged.to_string())
    }
}

macro_rules! from_redb {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for FileFault {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        })*
    };
}

from_redb!(CommitError, DatabaseError, SetDurabilityError, StorageError, TableError, TransactionError);
