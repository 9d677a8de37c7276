//! A record with the store revision of its last write.

use alloc::sync::Arc;

use crate::words::counter::Revision;

/// A record, and the revision of its last write; updates are conditional on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The record.
    pub value: Arc<T>,
    /// The store revision of its last write.
    pub revision: Revision,
}
