//! The state of one file of the catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bellwether_core::records::status::StatusState;
use bellwether_core::words::name::EntityName;

use crate::config::files::CatalogueFile;

/// The state of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) state: StatusState,
    /// One line; empty on success.
    pub(crate) reason: String,
    /// Failures in a row.
    pub(crate) failed: u32,
    /// When it was last replaced since the agent started, milliseconds of its clock.
    pub(crate) changed_ms: Option<u64>,
    /// Entities whose dynamic part waits for it.
    pub(crate) before: BTreeSet<EntityName>,
}

/// States of all files by path.
pub(crate) type FileStates = BTreeMap<PathBuf, FileState>;

impl FileState {
    pub(super) fn first(file: &CatalogueFile) -> Self {
        let (state, reason) = (StatusState::Pending, "not written yet".to_owned());
        Self { state, reason, failed: 0, changed_ms: None, before: file.before.clone() }
    }
}
