//! The state of one file of the catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bellwether_core::records::status::StatusState;
use bellwether_core::words::name::EntityName;

use crate::config::files::CatalogueFile;

/// How one file stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) state: StatusState,
    /// One line; empty when all is well.
    pub(crate) reason: String,
    /// How many times in a row it went wrong.
    pub(crate) failed: u32,
    /// When it was last replaced in this agent's life, in milliseconds of its clock.
    pub(crate) changed_ms: Option<u64>,
    /// Entities whose dynamic part waits for it.
    pub(crate) before: BTreeSet<EntityName>,
}

/// Every file by its path.
pub(crate) type FileStates = BTreeMap<PathBuf, FileState>;

impl FileState {
    pub(super) fn first(file: &CatalogueFile) -> Self {
        let (state, reason) = (StatusState::Pending, "not written yet".to_owned());
        Self { state, reason, failed: 0, changed_ms: None, before: file.before.clone() }
    }
}
