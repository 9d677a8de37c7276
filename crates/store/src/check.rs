//! What a look at a whole store found.

use std::path::PathBuf;

use crate::entry::{Entry, Revision};

/// A store as it is on the disk, unchanged by the look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCheck {
    /// The newest revision.
    pub revision: Revision,
    /// Commits in its history that were replayed.
    pub commits: u64,
    /// Groups of commits that only its journal has.
    pub groups: usize,
    /// Whether its journal ends with a group that was not written whole; it was never acknowledged.
    pub is_torn: bool,
    /// A copy of a journal whose last group an earlier start left out.
    pub cut_copy: Option<PathBuf>,
    /// The entries that can be read, in the order of keys.
    pub entries: Vec<Entry>,
    /// What is wrong with it; nothing with a sound one.
    pub findings: Vec<StoreFinding>,
}

/// Something that is wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFinding {
    /// The file that has it.
    pub file: PathBuf,
    /// What it is.
    pub what: String,
}
