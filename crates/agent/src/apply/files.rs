//! Rendered files on the host: written to a temporary file, moved into place, and restored when the reload fails. Never
//! writes through a link, and never into a directory in which others could exchange what is written.
//!
//! The journal names the files that were replaced and not reloaded yet, and each has a copy of its previous content beside
//! it. So after a restart at any point it is known what to reload, and what to restore.

mod directory;
mod journal;
mod write;
mod writers;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use directory::{FileDirectory, failure};
pub(crate) use journal::{FileJournal, JournalPhase};
use write::{FileMode, write_new};
use writers::Writers;

use crate::users::{UserAccount, UserName};

/// Default mode of a new file.
const NEW_MODE: u32 = 0o644;

/// Mode and owner that a file is to have; those of the old file, or the defaults of a new one, if `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileAttributes {
    pub(crate) mode: Option<u32>,
    /// The owner may also write the file's directory.
    pub(crate) owner: Option<UserAccount>,
}

/// The configured owner of a file. Reads `/etc/passwd`.
///
/// # Errors
/// One line with the name and the reason.
pub(crate) fn owner(name: Option<&UserName>) -> Result<Option<UserAccount>, String> {
    name.map(UserName::look_up).transpose()
}

/// A new file in its temporary place.
#[derive(Debug, Clone)]
pub(crate) struct StagedFile {
    /// The final path.
    pub(crate) path: PathBuf,
    /// The temporary path.
    pub(crate) beside: PathBuf,
    dir: Arc<FileDirectory>,
}

/// Writes `text` to a temporary file; `None` if the file has that text, mode and owner already.
///
/// # Errors
/// One line with the file and the reason; no temporary file is left then.
pub(crate) fn stage(
    path: &Path,
    attributes: FileAttributes,
    text: &str,
) -> Result<Option<StagedFile>, String> {
    let dir = FileDirectory::of(path, Some(&Writers::of(attributes.owner)))?;
    stage_in(dir, path, attributes, text)
}

fn stage_in(
    dir: FileDirectory,
    path: &Path,
    attributes: FileAttributes,
    text: &str,
) -> Result<Option<StagedFile>, String> {
    let beside = beside(path, "new");
    let old = look(&dir, path)?;
    let looks = looks(old.as_ref().map(FileMode::of), attributes);
    if let Some(mut old) = old
        && looks == FileMode::of(&old)
        && old.is(text).map_err(|error| failure("read", path, &error))?
    {
        // A temporary file of an agent that was killed is of no use.
        drop(dir.remove(name(&beside)));
        return Ok(None);
    }
    match write_new(&dir, name(&beside), text.as_bytes(), &looks) {
        Ok(()) => Ok(Some(StagedFile { path: path.to_owned(), beside, dir: Arc::new(dir) })),
        Err(error) => {
            let reason = failure("write", &beside, &error);
            drop(dir.remove(name(&beside)));
            Err(reason)
        }
    }
}

/// The mode and owner of a file in place of the `old` one.
fn looks(old: Option<FileMode>, attributes: FileAttributes) -> FileMode {
    let before = old.unwrap_or(FileMode { mode: NEW_MODE, user: None, group: None });
    let after = FileMode { mode: attributes.mode.unwrap_or(before.mode), ..before };
    match attributes.owner {
        Some(owner) => FileMode { user: Some(owner.uid), group: owner.gid.or(before.group), ..after },
        None => after,
    }
}

/// Removes temporary files.
pub(crate) fn unstage(staged: &[StagedFile]) {
    for each in staged {
        if let Err(error) = each.dir.remove(name(&each.beside)) {
            tracing::warn!(path = %each.beside.display(), %error, "cannot remove a file");
        }
    }
}

/// Moves files into place: first a copy of what each replaces, then the journal, then the moves. A file that is in the
/// journal already keeps its copy, which is what was last reloaded.
///
/// # Errors
/// One line with the file and the reason; everything is as it was last reloaded then.
pub(crate) fn place(journal: &mut FileJournal, staged: &[StagedFile]) -> Result<(), String> {
    let all_read = journal.is_empty();
    for each in staged.iter().filter(|each| !journal.names(&each.path)).collect::<Vec<_>>() {
        let existed = copy_aside(each).inspect_err(|_| unstage(staged))?;
        journal.add(&each.path, existed);
    }
    if journal.is_empty() {
        return Ok(());
    }
    journal.write(JournalPhase::Placed).inspect_err(|_| unstage(staged))?;
    for each in staged {
        if let Err(error) = each.dir.rename(name(&each.beside), name(&each.path)) {
            let reason = failure("replace", &each.path, &error);
            unstage(staged);
            // What was not reloaded before still is not.
            let settle = |journal: &mut FileJournal| if all_read { settle(journal) } else { Ok(()) };
            return match put_back(journal).and_then(|()| settle(journal)) {
                Ok(()) => Err(reason),
                Err(worse) => Err(format!("{reason}; and {worse}")),
            };
        }
    }
    Ok(())
}

/// Replaces one file in one move, without a copy; returns whether it changed. Its directory may be one that others can write: who
/// calls this named it.
///
/// # Errors
/// One line with the file and the reason; the file is unchanged then.
pub(crate) fn replace(path: &Path, text: &str) -> Result<bool, String> {
    let dir = FileDirectory::of(path, None)?;
    let Some(staged) = stage_in(dir, path, FileAttributes::default(), text)? else { return Ok(false) };
    let moved = staged.dir.rename(name(&staged.beside), name(path));
    moved.map_err(|error| failure("replace", path, &error)).inspect_err(|_| unstage(&[staged]))?;
    Ok(true)
}

/// Restores everything in the journal. May be interrupted and repeated.
///
/// # Errors
/// One line with the file and the reason.
pub(crate) fn put_back(journal: &mut FileJournal) -> Result<(), String> {
    journal.write(JournalPhase::Returning)?;
    for (path, existed) in journal.files() {
        let dir = FileDirectory::of(path, None)?;
        let done = if existed {
            let (copy, beside) = (beside(path, "old"), beside(path, "new"));
            duplicate(&dir, name(&copy), name(&beside)).and_then(|()| dir.rename(name(&beside), name(path)))
        } else {
            dir.remove(name(path)).and_then(|()| dir.sync())
        };
        done.map_err(|error| failure("put back", path, &error))?;
    }
    Ok(())
}

/// Clears the journal: the files in place are the ones that were reloaded.
///
/// # Errors
/// One line with the file and the reason.
pub(crate) fn settle(journal: &mut FileJournal) -> Result<(), String> {
    let replaced: Vec<PathBuf> = journal.files().map(|(path, _)| path.to_owned()).collect();
    journal.clear()?;
    for path in replaced {
        // Without the journal a copy means nothing, and the next one replaces it.
        if let Ok(dir) = FileDirectory::of(&path, None) {
            drop(dir.remove(name(&beside(&path, "old"))));
        }
    }
    Ok(())
}

/// Copies the file that is replaced; returns whether there was one.
fn copy_aside(staged: &StagedFile) -> Result<bool, String> {
    let StagedFile { path, dir, .. } = staged;
    let Some(mut old) = look(dir, path)? else { return Ok(false) };
    let copy = beside(path, "old");
    let looks = FileMode::of(&old);
    let copied = old.bytes().and_then(|bytes| write_new(dir, name(&copy), &bytes, &looks));
    copied.map_err(|error| failure("write", &copy, &error))?;
    Ok(true)
}

/// Copies a file within its directory: what is copied, and its mode and owner, are those of the file that was opened.
fn duplicate(dir: &FileDirectory, from: &Path, to: &Path) -> io::Result<()> {
    let mut old = dir.read(from)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let looks = FileMode::of(&old);
    write_new(dir, to, &old.bytes()?, &looks)
}

/// Opens the file at `path`; `None` if there is none.
fn look(dir: &FileDirectory, path: &Path) -> Result<Option<directory::OldFile>, String> {
    let refused = |reason: String| format!("cannot write {}: {reason}", path.display());
    if let Some(to) = dir.link(name(path)) {
        return Err(refused(format!("it is a link to {}; name the file itself", to.display())));
    }
    if dir.is_other(name(path)) {
        return Err(refused("it exists and is not a regular file".to_owned()));
    }
    dir.read(name(path)).map_err(|error| failure("read", path, &error))
}

/// A hidden name in the same directory: a move is atomic, and a pattern like `*.conf` does not match it.
fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.with_file_name(format!(".{name}.bellwether-{word}"))
}

/// The name of a file in its directory.
fn name(path: &Path) -> &Path {
    path.file_name().map_or(Path::new(""), Path::new)
}

#[cfg(test)]
mod tests;
