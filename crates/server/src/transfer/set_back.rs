//! A store that was set back by other means than a restore of ours: a snapshot of etcd, a copy of the data directory.

use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::Timestamp;
use bellwether_store::{Compare, Op, Store, Txn};

use super::{TransferError, commit, restored_event, unused};
use crate::installation::{Installation, InstallationError};
use crate::records::key_text;

/// Raises the epoch of a store that was set back, so that no number is issued again that was issued since it was copied.
/// An event tells of it, by the server of this name.
///
/// # Errors
/// [`TransferError`]; the store is unchanged.
pub async fn note(store: &Store, (by, now): (&ServerName, Timestamp)) -> Result<Installation, TransferError> {
    let entry = store.get(key_text::META.into()).await?.ok_or(InstallationError::Missing)?;
    let installation = Installation::parse(&entry.value)?;
    if let Some(place) = installation.moved_to {
        return Err(InstallationError::Moved { id: installation.id, place }.into());
    }
    unused(store).await?;
    let raised = installation.restored(Timestamp::EPOCH, now)?;
    let cause = "the store was set back, and a new epoch began; every node moves to the versions that its records name at once, without batches";
    let Txn { mut compares, mut ops } = restored_event::write(store, (by, now), cause.to_owned()).await?;
    compares.push(Compare::Modified { key: key_text::META.into(), revision: entry.modified });
    ops.push(Op::Put { key: key_text::META.into(), value: raised.to_bytes()?, lease: None });
    commit(store, Txn { compares, ops }).await?;
    Ok(raised)
}
