//! Moves records between an embedded store and etcd, in either direction. An interrupted move can be resumed.

use bellwether_store::{Compare, Op, Store, Txn};

use super::{RecordReader, TransferError, begin, commit, finish_in, in_another_store, tally, unused, write};
use crate::installation::{Installation, InstallationError, TransferKind};
use crate::records::key_text;

/// Result of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationResult {
    /// Number of records in the destination, each compared with the source.
    pub records: u64,
    /// How many of them an earlier attempt had moved.
    pub before: u64,
}

/// Moves all records from `from` to `to`, which must be empty or contain what an interrupted attempt left. Afterwards
/// `from` is marked as moved to `place`, and no server starts on it.
///
/// # Errors
/// [`TransferError`]; `from` is unchanged, and another attempt resumes this one.
pub async fn migrate(
    from: &Store,
    to: &Store,
    place: &str,
    mut tell: impl FnMut(u64),
) -> Result<MigrationResult, TransferError> {
    let installation = Installation::read(from).await?.ok_or(InstallationError::Missing)?;
    unused(from).await?;
    unused(to).await?;
    let begun = begin(to, &installation, TransferKind::Migration).await?;
    let last = last_key(to).await?;
    let before = if begun { super::tally(to).await?.count } else { 0 };
    let mut reader = RecordReader::start(from, last.as_deref()).await?;
    let mut count = before;
    while let Some(records) = reader.next().await? {
        count += u64::try_from(records.len()).unwrap_or_default();
        write(to, records).await?;
        tell(count);
    }
    let (sent, there) = (tally(from).await?, tally(to).await?);
    if !sent.same(&there) {
        return Err(TransferError::Lost { sent: sent.count, found: there.count });
    }
    unused(from).await?;
    finish(from, to, &installation, place, reader.at).await?;
    Ok(MigrationResult { records: there.count, before })
}

/// The last key that an earlier attempt moved.
async fn last_key(to: &Store) -> Result<Option<bytes::Bytes>, TransferError> {
    let mut reader = RecordReader::start(to, None).await?;
    let mut last = None;
    while let Some(records) = reader.next().await? {
        last = records.into_iter().last().map(|(key, _)| key).or(last);
    }
    Ok(last)
}

/// Marks the source as moved, then the destination as complete. In between both have the records: the destination is still
/// marked as incomplete, so that no server starts on either.
async fn finish(
    from: &Store,
    to: &Store,
    installation: &Installation,
    place: &str,
    at: bellwether_store::Revision,
) -> Result<(), TransferError> {
    let entry = from.get(key_text::META.into()).await?.ok_or(InstallationError::Missing)?;
    let gone = Installation { moved_to: Some(place.to_owned()), ..installation.clone() };
    let compare = Compare::Modified { key: key_text::META.into(), revision: entry.modified };
    let put = Op::Put { key: key_text::META.into(), value: gone.to_bytes()?, lease: None };
    let say = Txn { compares: vec![compare], ops: vec![put] };
    commit(from, say).await?;
    let meta = in_another_store(installation, at).to_bytes()?;
    finish_in(to, meta, Txn::default()).await
}
