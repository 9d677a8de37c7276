//! Evaluating a transaction: a pure function of the transaction and the state it meets.

use crate::entry::{Entry, LeaseId, Revision};
use crate::history::Edit;
use crate::txn::{Compare, FailedCompare, Op, Txn};

/// The outcome of evaluating a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TxnVerdict {
    /// Every compare holds; these keys change, at least one.
    Change(Vec<Edit>),
    /// Every compare holds and there is nothing to change.
    Nothing,
    /// These compares do not hold.
    Conflict(Vec<FailedCompare>),
    /// A put names a lease that has ended.
    LeaseGone,
}

/// The state a transaction meets.
pub(crate) trait TxnState {
    type Error;
    /// The entry under `key`, pending commits included.
    fn entry(&self, key: &[u8]) -> Result<Option<Entry>, Self::Error>;
    /// Whether keys may be bound to `lease`.
    fn is_alive(&self, lease: LeaseId) -> Result<bool, Self::Error>;
}

/// Evaluates `txn` as the commit that would be `revision`.
pub(crate) fn judge<S: TxnState>(txn: &Txn, revision: Revision, state: &S) -> Result<TxnVerdict, S::Error> {
    let mut failed = Vec::new();
    for (index, compare) in txn.compares.iter().enumerate() {
        let found = state.entry(compare.key())?;
        if !holds(compare, found.as_ref()) {
            failed.push(FailedCompare { index, found });
        }
    }
    if !failed.is_empty() {
        return Ok(TxnVerdict::Conflict(failed));
    }
    let mut edits = Vec::with_capacity(txn.ops.len());
    for op in &txn.ops {
        if let Op::Put { lease: Some(lease), .. } = op
            && !state.is_alive(*lease)?
        {
            return Ok(TxnVerdict::LeaseGone);
        }
        edits.extend(edit(op, state.entry(op.key())?, revision));
    }
    Ok(if edits.is_empty() { TxnVerdict::Nothing } else { TxnVerdict::Change(edits) })
}

/// Whether `compare` holds for the entry under its key.
pub(crate) fn holds(compare: &Compare, entry: Option<&Entry>) -> bool {
    match compare {
        Compare::Absent { .. } => entry.is_none(),
        Compare::Modified { revision, .. } => entry.map_or(Revision(0), |entry| entry.modified) == *revision,
        Compare::Created { revision, .. } => entry.map_or(Revision(0), |entry| entry.created) == *revision,
        Compare::Value { value, .. } => entry.is_some_and(|entry| entry.value == value),
    }
}

fn edit(op: &Op, before: Option<Entry>, revision: Revision) -> Option<Edit> {
    match op {
        Op::Put { key, value, lease } => {
            let created = before.as_ref().map_or(revision, |entry| entry.created);
            let (key, value) = (key.clone(), value.clone());
            let after = Entry { key: key.clone(), value, created, modified: revision, lease: *lease };
            Some(Edit { key, before, after: Some(after) })
        }
        Op::Delete { key } => before.map(|entry| Edit { key: key.clone(), before: Some(entry), after: None }),
    }
}
