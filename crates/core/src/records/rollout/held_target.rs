//! A target that is held, as a wait names it.

use alloc::sync::Arc;

use crate::words::name::TargetName;

/// A target that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTarget {
    /// Its name.
    pub target: TargetName,
    /// What holds it.
    pub reason: Arc<str>,
    /// Number of further targets that are held.
    pub others: u64,
}
