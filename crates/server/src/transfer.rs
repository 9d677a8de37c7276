//! Moves all records from one store to another, or to a file and back. No record is lost, an existing record is never
//! overwritten, and terms keep growing afterwards.

pub mod backup;
pub mod location;
pub mod migrate;
mod restored_event;
pub mod set_back;

use bellwether_api::shape::ShapeError;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::words::time::Timestamp;
use bellwether_store::{
    CommitOutcome, Compare, MAX_OPS, MAX_TXN_BYTES, Op, Page, Range, Revision, Store, StoreError, Txn,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::installation::{Installation, InstallationError, TransferKind};
use crate::key_files::KeyFileError;
use crate::records::encoding;
use crate::records::key_text::{self, KeyLocation};
use crate::run::error::RunError;

/// Entries per read.
const PAGE: usize = 500;

/// Bytes of a transaction that are reserved for the overhead of the store.
const SPARE_BYTES: usize = 64 << 10;

/// Why records cannot be moved. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A store has no installation, or has one where it must not.
    #[error("{0}")]
    Installation(#[from] InstallationError),
    /// Servers use the store.
    #[error("move or restore the records of a store in use by {servers}; stop them first")]
    InUse {
        /// Their names.
        servers: String,
    },
    /// Another process wrote to the store at the same time.
    #[error("move the records: another process writes to the store; stop it and try again")]
    Disturbed,
    /// The records in the destination differ from those of the source.
    #[error("move the records: {sent} were read, and {found} are in the destination")]
    Lost {
        /// Number of records read.
        sent: u64,
        /// Number of records found in the destination.
        found: u64,
    },
    /// A file cannot be read or written.
    #[error("{action} {path}: {source}")]
    File {
        /// The verb: "read" or "write".
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system clock may be wrong.
    #[error(
        "restore the records: the system clock is {doubt} their newest time, and if it is wrong, so are the numbers that are issued from \
         then on; if it is right, add --accept-clock; otherwise correct it"
    )]
    Clock {
        /// How it differs, such as "3d ahead of".
        doubt: String,
    },
    /// The data directory has the authority of another installation.
    #[error(
        "restore the backup: {dir}/pki has the authority of another installation (ca.pem {theirs}, and the backup's is {ours}), which its \
         agents do not trust and no server would start with; name another data directory, put ca.pem and ca.key of that time there first, \
         or do so afterwards and add --any-authority"
    )]
    Authority {
        /// The data directory.
        dir: String,
        /// Fingerprint of the authority that is there, shortened.
        theirs: String,
        /// Fingerprint of the backup's, shortened.
        ours: String,
    },
    /// A file with keys is not that of the backup.
    #[error(
        "restore the backup: {} is there, and not as the backup has it; name another data directory, move the files in pki away first, or add \
         --any-authority, with which no keys are written where others are", path.display()
    )]
    KeysPresent {
        /// The file.
        path: std::path::PathBuf,
    },
    /// The keys to back up are not those of the records.
    #[error(
        "back up the keys: {dir}/pki has the authority of another installation than the records; put ca.pem and ca.key of this one there, \
         or leave --with-keys out"
    )]
    OtherKeys {
        /// The data directory.
        dir: String,
    },
    /// A file with keys cannot be read or written.
    #[error("{0}")]
    Keys(#[from] KeyFileError),
    /// The backup has a record that this release does not read.
    #[error(
        "restore the backup: this release cannot {reason}; nothing was written; install the release that wrote it, {version}, or a later one"
    )]
    Unreadable {
        /// Which record, and why.
        reason: String,
        /// The release that wrote the backup.
        version: String,
    },
    /// The file is not a backup, or is damaged.
    #[error("read the backup: {0}")]
    Damaged(String),
    /// A newer release wrote the backup.
    #[error(
        "read the backup: its format is {found}, and this release reads formats up to {known}; install a newer release"
    )]
    Newer {
        /// The format found.
        found: u32,
        /// The newest format that this release reads.
        known: u32,
    },
    /// A store cannot be opened.
    #[error("{0}")]
    Open(#[from] RunError),
    /// A record cannot be encoded.
    #[error("encode a record: {0}")]
    Shape(#[from] ShapeError),
}

impl TransferError {
    /// Whether another process has the store open.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Open(error) if error.is_in_use())
    }
}

/// Count and checksum of records, in the order of their keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordTally {
    count: u64,
    sum: Sha256,
}

impl RecordTally {
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        for part in [key, value] {
            self.sum.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            self.sum.update(part);
        }
    }

    fn same(&self, other: &Self) -> bool {
        self.count == other.count && self.sum.clone().finalize() == other.sum.clone().finalize()
    }
}

/// Reads the records of an installation at one revision, page by page. Leaves out keys bound to leases, and the record of
/// the installation itself.
#[derive(Debug)]
pub(crate) struct RecordReader<'a> {
    store: &'a Store,
    range: Range,
    pub(crate) at: Revision,
    more: bool,
}

impl<'a> RecordReader<'a> {
    /// Starts after a key, or at the beginning, at the present revision.
    pub(crate) async fn start(store: &'a Store, after: Option<&[u8]>) -> Result<Self, TransferError> {
        let all = Range::prefix(key_text::ROOT);
        let range = after.map_or(all.clone(), |key| all.after(&Bytes::copy_from_slice(key)));
        let at = store.list(Range::one(key_text::META), None, 1).await?.revision;
        Ok(Self { store, range, at, more: true })
    }

    /// The next page of records; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>, TransferError> {
        while self.more {
            let page: Page = self.store.list(self.range.clone(), Some(self.at), PAGE).await?;
            self.more = page.more;
            let Some(last) = page.entries.last() else { return Ok(None) };
            self.range = self.range.after(&last.key);
            let kept = page.entries.into_iter().filter(|entry| is_moved(&entry.key));
            let records: Vec<(Bytes, Bytes)> = kept.map(|entry| (entry.key, entry.value)).collect();
            if !records.is_empty() {
                return Ok(Some(records));
            }
        }
        Ok(None)
    }
}

/// Whether a key is moved.
fn is_moved(key: &[u8]) -> bool {
    let aside = [key_text::META, key_text::LEADER, key_text::MOVING];
    !aside.iter().any(|one| one.as_bytes() == key) && !key.starts_with(key_text::SERVERS.as_bytes())
}

/// The time of a record that is an event.
pub(crate) fn event_time(key: &[u8], value: &[u8]) -> Option<Timestamp> {
    let Some(KeyLocation::Namespaced(_, key @ Key::Event(_))) = key_text::read(key) else { return None };
    match encoding::read(&key, value) {
        Ok(Record::Event(event)) => Some(event.time),
        Ok(_) | Err(_) => None,
    }
}

/// The time of the newest event of a store.
pub(crate) async fn newest_event(store: &Store) -> Result<Option<Timestamp>, TransferError> {
    let mut reader = RecordReader::start(store, None).await?;
    let mut newest = None;
    while let Some(records) = reader.next().await? {
        newest = records.iter().filter_map(|(key, value)| event_time(key, value)).max().max(newest);
    }
    Ok(newest)
}

/// Count and checksum of all records that are moved.
pub(crate) async fn tally(store: &Store) -> Result<RecordTally, TransferError> {
    let mut reader = RecordReader::start(store, None).await?;
    let mut tally = RecordTally::default();
    while let Some(records) = reader.next().await? {
        for (key, value) in records {
            tally.add(&key, &value);
        }
    }
    Ok(tally)
}

/// Writes records that must not exist yet, in as few transactions as possible.
pub(crate) async fn write(store: &Store, records: Vec<(Bytes, Bytes)>) -> Result<(), TransferError> {
    let mut txn = Txn::default();
    for (key, value) in records {
        let size = 2 * key.len() + value.len();
        if txn.ops.len() + 1 >= MAX_OPS || txn.size() + size > MAX_TXN_BYTES - SPARE_BYTES {
            commit(store, std::mem::take(&mut txn)).await?;
        }
        txn.compares.push(Compare::Absent { key: key.clone() });
        txn.ops.push(Op::Put { key, value, lease: None });
    }
    if txn.ops.is_empty() { Ok(()) } else { commit(store, txn).await }
}

async fn commit(store: &Store, txn: Txn) -> Result<(), TransferError> {
    match store.commit(txn).await? {
        CommitOutcome::Committed(_) => Ok(()),
        CommitOutcome::Conflict { .. } => Err(TransferError::Disturbed),
    }
}

/// Marks the destination as being filled. Returns whether it was marked already, by an earlier attempt.
pub(crate) async fn begin(
    to: &Store,
    installation: &Installation,
    transfer: TransferKind,
) -> Result<bool, TransferError> {
    if let Some(there) = Installation::read(to).await? {
        return Err(there.present(to, Some(installation)).await?.into());
    }
    let mark = transfer.mark(&installation.id);
    if let Some(entry) = to.get(key_text::MOVING.into()).await? {
        return if entry.value == mark {
            Ok(true)
        } else {
            Err(TransferKind::unfinished(&entry.value).into())
        };
    }
    let page = to.list(Range::prefix(key_text::ROOT), None, 1).await?;
    if let Some(entry) = page.entries.first() {
        let key = String::from_utf8_lossy(&entry.key).into_owned();
        return Err(InstallationError::Foreign { key }.into());
    }
    let put = Op::Put { key: key_text::MOVING.into(), value: mark, lease: None };
    commit(to, Txn { compares: vec![Compare::Absent { key: key_text::MOVING.into() }], ops: vec![put] })
        .await?;
    Ok(false)
}

/// Writes the record of the installation and removes the mark, once all records are there, with what else is to be true then.
pub(crate) async fn finish_in(to: &Store, meta: Bytes, also: Txn) -> Result<(), TransferError> {
    let Txn { mut compares, mut ops } = also;
    compares.push(Compare::Absent { key: key_text::META.into() });
    ops.push(Op::Put { key: key_text::META.into(), value: meta, lease: None });
    ops.push(Op::Delete { key: key_text::MOVING.into() });
    commit(to, Txn { compares, ops }).await
}

/// Deletes what an interrupted attempt left.
pub(crate) async fn clear(to: &Store) -> Result<(), TransferError> {
    let mut reader = RecordReader::start(to, None).await?;
    while let Some(records) = reader.next().await? {
        for keys in records.chunks(MAX_OPS) {
            let ops = keys.iter().map(|(key, _)| Op::Delete { key: key.clone() }).collect();
            commit(to, Txn { compares: vec![], ops }).await?;
        }
    }
    Ok(())
}

/// Refuses a store that servers use. An embedded store is locked by this process, so that no server can use it:
/// memberships in it were left by a killed server.
pub(crate) async fn unused(store: &Store) -> Result<(), TransferError> {
    if store.health().borrow().engine != "etcd" {
        return Ok(());
    }
    let page = store.list(Range::prefix(key_text::SERVERS), None, 16).await?;
    let names = page.entries.iter().map(|entry| {
        String::from_utf8_lossy(entry.key.get(key_text::SERVERS.len()..).unwrap_or_default()).into_owned()
    });
    let servers = names.collect::<Vec<_>>().join(", ");
    if servers.is_empty() { Ok(()) } else { Err(TransferError::InUse { servers }) }
}

/// The installation's record in another store: its terms are greater than all terms so far.
pub(crate) fn in_another_store(installation: &Installation, at: Revision) -> Installation {
    let term_base = installation.term_base.saturating_add(at.0);
    Installation { term_base, moved_to: None, ..installation.clone() }
}
