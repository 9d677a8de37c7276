//! Files of the catalogue: written when what they are made of changes, read again by whoever reads them. One task for all
//! files with the same reload, so that what changes together is one reload.
//!
//! A file that cannot be written now stays as it is, and the reason is said. Nothing is ever removed.

mod context;
pub mod format;
mod group;
mod shared;
pub(crate) mod state;
mod write;

use crate::apply::files;
use crate::config::files::CatalogueFile;
use group::FileGroup;
pub(crate) use shared::FileContext;
use state::FileState;

/// Says of every file that it is not written yet, and starts writing.
pub(crate) fn start(files: Vec<CatalogueFile>, context: &FileContext) {
    context.board.send_modify(|board| {
        for file in &files {
            board.files.insert(file.path.clone(), FileState::first(file));
        }
    });
    for files in together(files) {
        let group = FileGroup::new(files, context.clone());
        context.tasks.spawn("files", group.run());
    }
}

/// Replaces a file with `text` in one move, never through a link; says whether it changed.
///
/// # Errors
/// One line with the file and the reason; the file is as it was then.
pub fn put(path: &std::path::Path, text: &str) -> Result<bool, String> {
    files::replace(path, text)
}

/// Files with the same reload together; one without a reload alone.
fn together(files: Vec<CatalogueFile>) -> Vec<Vec<CatalogueFile>> {
    let mut groups: Vec<Vec<CatalogueFile>> = Vec::new();
    for file in files {
        let same = |group: &&mut Vec<CatalogueFile>| {
            file.reload.is_some() && group.first().is_some_and(|first| first.reload == file.reload)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(file),
            None => groups.push(vec![file]),
        }
    }
    groups
}
