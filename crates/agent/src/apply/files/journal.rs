//! The journal of an entity's files: which were put in place and are not known to be read. On disk before the first move.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk;

/// The schema written, and the newest read.
const SCHEMA: u32 = 1;

/// What is going on with the files a journal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalPhase {
    /// They were put in place.
    #[default]
    Placed,
    /// They are being put back.
    Returning,
}

/// Which files were put in place, and whether there was a file before.
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
    /// Each file with whether there was one before.
    files: BTreeMap<PathBuf, bool>,
}

impl FileJournal {
    /// The journal kept at `at`; an empty one if none is.
    ///
    /// # Errors
    /// One line with the file and the reason.
    pub(crate) fn read(at: &Path) -> Result<Self, String> {
        let failed = |reason: String| format!("could not understand {}: {reason}", at.display());
        let text = disk::read(at).map_err(|error| failed(error.to_string()))?;
        let Some(text) = text else {
            return Ok(Self { at: at.to_owned(), phase: JournalPhase::Placed, files: BTreeMap::new() });
        };
        let form: JournalForm = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if form.schema != SCHEMA {
            return Err(failed(format!("schema {} is not one this agent knows", form.schema)));
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

    /// Each file, and whether there was one before.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.files.iter().map(|(path, existed)| (path.as_path(), *existed))
    }

    pub(super) fn add(&mut self, path: &Path, existed: bool) {
        self.files.insert(path.to_owned(), existed);
    }

    /// Keeps the journal on disk.
    pub(super) fn write(&mut self, phase: JournalPhase) -> Result<(), String> {
        self.phase = phase;
        let form = JournalForm { schema: SCHEMA, phase, files: self.files.clone() };
        let text = serde_json::to_string_pretty(&form).map_err(io::Error::other);
        let dir = self.at.parent().unwrap_or(Path::new("/"));
        let written = disk::private_dir(dir).and(text).and_then(|text| disk::replace(&self.at, &text));
        written.map_err(|error| format!("could not write {}: {error}", self.at.display()))
    }

    /// Forgets everything, on disk too.
    pub(super) fn clear(&mut self) -> Result<(), String> {
        self.files.clear();
        self.phase = JournalPhase::Placed;
        match fs::remove_file(&self.at) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(format!("could not remove {}: {error}", self.at.display())),
        }
    }
}
