//! The journal of an entity's files: those that were replaced and not reloaded yet. On disk before the first move.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk;

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// The phase of the files in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalPhase {
    /// They were moved into place.
    #[default]
    Placed,
    /// They are being restored.
    Returning,
}

/// The replaced files, and whether each existed before.
#[derive(Debug)]
pub(crate) struct FileJournal {
    at: PathBuf,
    phase: JournalPhase,
    files: BTreeMap<PathBuf, bool>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalForm {
    schema: u32,
    phase: JournalPhase,
    /// Each file with whether it existed before.
    files: BTreeMap<PathBuf, bool>,
}

impl FileJournal {
    /// The journal at `at`; empty if there is none.
    ///
    /// # Errors
    /// One line with the file and the reason.
    pub(crate) fn read(at: &Path) -> Result<Self, String> {
        let failed = |reason: String| format!("cannot read {}: {reason}", at.display());
        let text = disk::read(at).map_err(|error| failed(error.to_string()))?;
        let Some(text) = text else {
            return Ok(Self { at: at.to_owned(), phase: JournalPhase::Placed, files: BTreeMap::new() });
        };
        let form: JournalForm = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if form.schema != SCHEMA {
            return Err(failed(format!("schema {} is not known to this agent", form.schema)));
        }
        Ok(Self { at: at.to_owned(), phase: form.phase, files: form.files })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(crate) fn phase(&self) -> JournalPhase {
        self.phase
    }

    pub(crate) fn names(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Each file with whether it existed before.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.files.iter().map(|(path, existed)| (path.as_path(), *existed))
    }

    pub(super) fn add(&mut self, path: &Path, existed: bool) {
        self.files.insert(path.to_owned(), existed);
    }

    /// Writes the journal to disk.
    pub(super) fn write(&mut self, phase: JournalPhase) -> Result<(), String> {
        self.phase = phase;
        let form = JournalForm { schema: SCHEMA, phase, files: self.files.clone() };
        let text = serde_json::to_string_pretty(&form).map_err(io::Error::other);
        let dir = self.at.parent().unwrap_or(Path::new("/"));
        let written = disk::private_dir(dir).and(text).and_then(|text| disk::replace(&self.at, &text));
        written.map_err(|error| format!("cannot write {}: {error}", self.at.display()))
    }

    /// Clears the journal and removes it from disk.
    pub(super) fn clear(&mut self) -> Result<(), String> {
        self.files.clear();
        self.phase = JournalPhase::Placed;
        match fs::remove_file(&self.at) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(format!("cannot remove {}: {error}", self.at.display())),
        }
    }
}
