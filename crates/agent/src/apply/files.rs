//! Rendered files on the host: written to a temporary file, moved into place, and restored when the reload fails. Never
//! writes through a link.
//!
//! The journal names the files that were replaced and not reloaded yet, and each has a copy of its previous content beside
//! it. So after a restart at any point it is known what to reload, and what to restore.

mod journal;
mod write;

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) use journal::{FileJournal, JournalPhase};
use write::{FileMode, sync_dir, write_new};

/// Default mode of a new file.
const NEW_MODE: u32 = 0o644;

/// A new file in its temporary place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StagedFile {
    /// The final path.
    pub(crate) path: PathBuf,
    /// The temporary path.
    pub(crate) beside: PathBuf,
}

/// Writes `text` to a temporary file; `None` if the file has that text and mode already.
///
/// # Errors
/// One line with the file and the reason; no temporary file is left then.
pub(crate) fn stage(path: &Path, mode: Option<u32>, text: &str) -> Result<Option<StagedFile>, String> {
    let old = look(path)?;
    if let Some(old) = &old
        && mode.is_none_or(|mode| mode == old.mode)
        && is_same(path, text).map_err(|error| failure("read", path, &error))?
    {
        // A temporary file of an agent that was killed is of no use.
        drop(fs::remove_file(beside(path, "new")));
        return Ok(None);
    }
    let beside = beside(path, "new");
    let looks = match old {
        Some(old) => FileMode { mode: mode.unwrap_or(old.mode), ..old },
        None => FileMode { mode: mode.unwrap_or(NEW_MODE), owner: None },
    };
    match write_new(&beside, text.as_bytes(), &looks) {
        Ok(()) => Ok(Some(StagedFile { path: path.to_owned(), beside })),
        Err(error) => {
            let reason = failure("write", &beside, &error);
            drop(fs::remove_file(&beside));
            Err(reason)
        }
    }
}

/// Removes temporary files.
pub(crate) fn unstage(staged: &[StagedFile]) {
    for each in staged {
        match fs::remove_file(&each.beside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %each.beside.display(), %error, "cannot remove a file"),
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
        let existed = copy_aside(&each.path).inspect_err(|_| unstage(staged))?;
        journal.add(&each.path, existed);
    }
    if journal.is_empty() {
        return Ok(());
    }
    journal.write(JournalPhase::Placed).inspect_err(|_| unstage(staged))?;
    for each in staged {
        if let Err(error) = fs::rename(&each.beside, &each.path).and_then(|()| sync_dir(&each.path)) {
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

/// Replaces one file in one move, without a copy; returns whether it changed.
///
/// # Errors
/// One line with the file and the reason; the file is unchanged then.
pub(crate) fn replace(path: &Path, text: &str) -> Result<bool, String> {
    let Some(staged) = stage(path, None, text)? else { return Ok(false) };
    let moved = fs::rename(&staged.beside, path).and_then(|()| sync_dir(path));
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
        let done = if existed {
            let (copy, beside) = (beside(path, "old"), beside(path, "new"));
            duplicate(&copy, &beside).and_then(|()| fs::rename(&beside, path)).and_then(|()| sync_dir(path))
        } else {
            match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.and_then(|()| sync_dir(path)),
            }
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
    let copies: Vec<PathBuf> = journal.files().map(|(path, _)| beside(path, "old")).collect();
    journal.clear()?;
    for copy in copies {
        // Without the journal a copy means nothing, and the next one replaces it.
        drop(fs::remove_file(copy));
    }
    Ok(())
}

/// Copies the file at `path`; returns whether there was one.
fn copy_aside(path: &Path) -> Result<bool, String> {
    if look(path)?.is_none() {
        return Ok(false);
    }
    let copy = beside(path, "old");
    duplicate(path, &copy).map_err(|error| failure("write", &copy, &error))?;
    Ok(true)
}

fn duplicate(from: &Path, to: &Path) -> io::Result<()> {
    let about = fs::metadata(from)?;
    let looks =
        FileMode { mode: about.permissions().mode() & 0o7777, owner: Some((about.uid(), about.gid())) };
    write_new(to, &fs::read(from)?, &looks)
}

/// Mode and owner of the file at `path`; `None` if there is none and its directory exists.
fn look(path: &Path) -> Result<Option<FileMode>, String> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().unwrap_or(Path::new("/"));
            let about = fs::metadata(dir).map_err(|error| failure("write to the directory", dir, &error))?;
            return if about.is_dir() {
                Ok(None)
            } else {
                Err(format!("{} is not a directory", dir.display()))
            };
        }
        Err(error) => return Err(failure("look at", path, &error)),
    };
    if about.is_symlink() {
        let to = fs::read_link(path).unwrap_or_default();
        return Err(format!(
            "cannot write {}: it is a link to {}; name the file itself",
            path.display(),
            to.display()
        ));
    }
    if !about.is_file() {
        return Err(format!("cannot write {}: it exists and is not a regular file", path.display()));
    }
    let owner = Some((about.uid(), about.gid()));
    Ok(Some(FileMode { mode: about.permissions().mode() & 0o7777, owner }))
}

fn is_same(path: &Path, text: &str) -> io::Result<bool> {
    let length = fs::metadata(path)?.len();
    Ok(u64::try_from(text.len()).is_ok_and(|wanted| wanted == length) && fs::read(path)? == text.as_bytes())
}

/// A hidden name in the same directory: a move is atomic, and a pattern like `*.conf` does not match it.
fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.with_file_name(format!(".{name}.bellwether-{word}"))
}

fn failure(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests;
