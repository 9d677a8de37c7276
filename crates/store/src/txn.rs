//! Compare-and-commit: what a caller requests, within which limits, and its outcome.

use std::collections::HashSet;

use bytes::Bytes;

use crate::entry::{Entry, LeaseId, Revision};
use crate::error::{Limit, Refusal, StoreError};
use crate::limits::{MAX_OPS, MAX_TXN_BYTES};

/// A condition on the state just before the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The key does not exist.
    Absent {
        /// The key.
        key: Bytes,
    },
    /// The key was last put by this commit; revision 0 holds for an absent key.
    Modified {
        /// The key.
        key: Bytes,
        /// The commit.
        revision: Revision,
    },
    /// The key was made by this commit; revision 0 holds for an absent key.
    Created {
        /// The key.
        key: Bytes,
        /// The commit.
        revision: Revision,
    },
    /// The key exists and has this value.
    Value {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
}

impl Compare {
    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Self::Absent { key }
            | Self::Modified { key, .. }
            | Self::Created { key, .. }
            | Self::Value { key, .. } => key,
        }
    }

    fn size(&self) -> usize {
        let value = match self {
            Self::Value { value, .. } => value.len(),
            Self::Absent { .. } | Self::Modified { .. } | Self::Created { .. } => 0,
        };
        self.key().len().saturating_add(value)
    }
}

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets the value, whether or not the key exists.
    Put {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// The lease the key is bound to from now on; `None` unbinds it.
        lease: Option<LeaseId>,
    },
    /// Removes the key. An absent key stays absent and is no change.
    Delete {
        /// The key.
        key: Bytes,
    },
}

impl Op {
    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn size(&self) -> usize {
        let value = match self {
            Self::Put { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        };
        self.key().len().saturating_add(value)
    }
}

/// Changes that are made together if every compare holds, or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Txn {
    /// Conditions, at most [`MAX_OPS`].
    pub compares: Vec<Compare>,
    /// Changes, at most [`MAX_OPS`], no key twice.
    pub ops: Vec<Op>,
}

impl Txn {
    /// Bytes of keys and values, compares and operations together.
    #[must_use]
    pub fn size(&self) -> usize {
        let compares = self.compares.iter().map(Compare::size);
        let ops = self.ops.iter().map(Op::size);
        compares.chain(ops).fold(0, usize::saturating_add)
    }

    /// Refuses what no back end accepts.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        within(Limit::Compares, self.compares.len(), MAX_OPS)?;
        within(Limit::Ops, self.ops.len(), MAX_OPS)?;
        within(Limit::Bytes, self.size(), MAX_TXN_BYTES)?;
        if self.compares.iter().any(|compare| compare.key().is_empty()) {
            return Err(Refusal::EmptyKey.into());
        }
        let mut seen = HashSet::with_capacity(self.ops.len());
        for key in self.ops.iter().map(Op::key) {
            if key.is_empty() {
                return Err(Refusal::EmptyKey.into());
            }
            if !seen.insert(key) {
                return Err(Refusal::KeyTwice { key: key.clone() }.into());
            }
        }
        Ok(())
    }
}

fn within(limit: Limit, found: usize, most: usize) -> Result<(), StoreError> {
    if found > most { Err(StoreError::TooLarge { limit, found, most }) } else { Ok(()) }
}

/// The outcome of a transaction that the store answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Every compare held and the changes are durable. The revision is this commit's own, or the store's
    /// current one if there was nothing to change.
    Committed(Revision),
    /// Some compare did not hold and nothing was changed.
    Conflict {
        /// The store's revision when it was decided.
        revision: Revision,
        /// Those of [`Txn::compares`] that did not hold, ascending.
        failed: Vec<FailedCompare>,
    },
}

/// A compare that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCompare {
    /// Index into [`Txn::compares`].
    pub index: usize,
    /// What is under its key. The value may be left out for a compare of a revision.
    pub found: Option<Entry>,
}
