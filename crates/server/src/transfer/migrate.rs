//! From one store to another, between the embedded one and an etcd, in either direction. What was begun is gone on with.

use bellwether_store::{Compare, Op, Store, Txn};

use super::{RecordReader, TransferError, begin, commit, finish_in, goes_on, tally, unused, write};
use crate::installation::{Installation, InstallationError};
use crate::records::key_text;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationResult {
    /// How many records are there now, each compared with what was read.
    pub records: u64,
    /// How many of them had been carried over by an attempt before.
    pub before: u64,
}

/// Carries all records of `from` over into `to`, which must be empty or hold what an interrupted attempt at the same left.
/// Afterwards `from` says that its records have gone to `place`, and no server starts on it.
///
/// # Errors
/// [`TransferError`]; `from` is as it was, and a second attempt goes on where this one ended.
pub async fn migrate(
    (from, to): (&Store, &Store),
    place: &str,
    mut tell: impl FnMut(u64),
) -> Result<MigrationResult, TransferError> {
    let installation = Installation::read(from).await?.ok_or(InstallationError::Missing)?;
    unused(from).await?;
    unused(to).await?;
    let begun = begin(to, &installation).await?;
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
    finish((from, to), &installation, (place, reader.at)).await?;
    Ok(MigrationResult { records: there.count, before })
}

/// The last key that an attempt before has carried over.
async fn last_key(to: &Store) -> Result<Option<bytes::Bytes>, TransferError> {
    let mut reader = RecordReader::start(to, None).await?;
    let mut last = None;
    while let Some(records) = reader.next().await? {
        last = records.into_iter().last().map(|(key, _)| key).or(last);
    }
    Ok(last)
}

/// Says in the goal whose it is, and in the source where its records have gone. In between both are there: the goal's
/// mark still stands, so that no server starts on either.
async fn finish(
    (from, to): (&Store, &Store),
    installation: &Installation,
    (place, at): (&str, bellwether_store::Revision),
) -> Result<(), TransferError> {
    let entry = from.get(key_text::META.into()).await?.ok_or(InstallationError::Missing)?;
    let gone = Installation { moved_to: Some(place.to_owned()), ..installation.clone() };
    let compare = Compare::Modified { key: key_text::META.into(), revision: entry.modified };
    let put = Op::Put { key: key_text::META.into(), value: gone.to_bytes()?, lease: None };
    let say = Txn { compares: vec![compare], ops: vec![put] };
    commit(from, say).await?;
    let meta = goes_on(installation, at).to_bytes()?;
    finish_in(to, meta).await
}
