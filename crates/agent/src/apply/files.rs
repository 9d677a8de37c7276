//! Files on the host that are rendered from a profile or the catalogue: written beside, put in place in one move, put back when what reads
//! them does not take them. Never writes through a link.
//!
//! While files were put in place and are not known to be read, the journal names them, and each has a copy of what was
//! read before beside it. So a restart at any point knows what to make be read, and what to go back to.

mod journal;
mod write;

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) use journal::{FileJournal, JournalPhase};
use write::{FileMode, sync_dir, write_new};

/// Mode of a file that is new and has none said.
const NEW_MODE: u32 = 0o644;

/// A file that is written beside the place it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StagedFile {
    /// Where it is to be.
    pub(crate) path: PathBuf,
    /// Where it is.
    pub(crate) beside: PathBuf,
}

/// Writes `text` beside its place, or nothing if it is there already as it is to be.
///
/// # Errors
/// One line with the file and the reason; nothing is left beside then.
pub(crate) fn stage((path, mode): (&Path, Option<u32>), text: &str) -> Result<Option<StagedFile>, String> {
    let old = look(path)?;
    if let Some(old) = &old
        && mode.is_none_or(|mode| mode == old.mode)
        && is_same(path, text).map_err(|error| said("read", path, &error))?
    {
        // What an agent that was killed left beside is not wanted any more.
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
            let reason = said("write", &beside, &error);
            drop(fs::remove_file(&beside));
            Err(reason)
        }
    }
}

/// Forgets what is beside.
pub(crate) fn unstage(staged: &[StagedFile]) {
    for each in staged {
        match fs::remove_file(&each.beside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %each.beside.display(), %error, "could not remove a file"),
        }
    }
}

/// Puts files in place: first a copy of what each replaces, then the journal, then the moves. Whatever stands in the
/// journal already keeps its copy: that is what was last read.
///
/// # Errors
/// One line with the file and the reason; everything is as it was last read then.
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
            let reason = said("replace", &each.path, &error);
            unstage(staged);
            // What was not read before is still to be read.
            let settle = |journal: &mut FileJournal| if all_read { settle(journal) } else { Ok(()) };
            return match put_back(journal).and_then(|()| settle(journal)) {
                Ok(()) => Err(reason),
                Err(worse) => Err(format!("{reason}; and {worse}")),
            };
        }
    }
    Ok(())
}

/// Replaces one file in one move, for whoever needs no way back; says whether it changed.
///
/// # Errors
/// One line with the file and the reason; the file is as it was then.
pub(crate) fn replace(path: &Path, text: &str) -> Result<bool, String> {
    let Some(staged) = stage((path, None), text)? else { return Ok(false) };
    let moved = fs::rename(&staged.beside, path).and_then(|()| sync_dir(path));
    moved.map_err(|error| said("replace", path, &error)).inspect_err(|_| unstage(&[staged]))?;
    Ok(true)
}

/// Puts back everything the journal names. May be cut short and begun again.
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
        done.map_err(|error| said("put back", path, &error))?;
    }
    Ok(())
}

/// Forgets the journal: what is in place is what is read.
///
/// # Errors
/// One line with the file and the reason.
pub(crate) fn settle(journal: &mut FileJournal) -> Result<(), String> {
    let copies: Vec<PathBuf> = journal.files().map(|(path, _)| beside(path, "old")).collect();
    journal.clear()?;
    for copy in copies {
        // Without the journal a copy means nothing, and the next one takes its place.
        drop(fs::remove_file(copy));
    }
    Ok(())
}

/// Keeps a copy of what is at `path`; says whether there is anything.
fn copy_aside(path: &Path) -> Result<bool, String> {
    if look(path)?.is_none() {
        return Ok(false);
    }
    let copy = beside(path, "old");
    duplicate(path, &copy).map_err(|error| said("write", &copy, &error))?;
    Ok(true)
}

fn duplicate(from: &Path, to: &Path) -> io::Result<()> {
    let about = fs::metadata(from)?;
    let looks =
        FileMode { mode: about.permissions().mode() & 0o7777, owner: Some((about.uid(), about.gid())) };
    write_new(to, &fs::read(from)?, &looks)
}

/// How the file at `path` looks, or none if there is none and its directory is there.
fn look(path: &Path) -> Result<Option<FileMode>, String> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().unwrap_or(Path::new("/"));
            let about = fs::metadata(dir).map_err(|error| said("write to the directory", dir, &error))?;
            return if about.is_dir() { Ok(None) } else { Err(format!("{} is no directory", dir.display())) };
        }
        Err(error) => return Err(said("look at", path, &error)),
    };
    if about.is_symlink() {
        let to = fs::read_link(path).unwrap_or_default();
        return Err(format!(
            "could not write {}: it is a link to {}, and files are never written through links; name the file itself",
            path.display(),
            to.display()
        ));
    }
    if !about.is_file() {
        return Err(format!("could not write {}: there is something that is no file", path.display()));
    }
    let owner = Some((about.uid(), about.gid()));
    Ok(Some(FileMode { mode: about.permissions().mode() & 0o7777, owner }))
}

fn is_same(path: &Path, text: &str) -> io::Result<bool> {
    let length = fs::metadata(path)?.len();
    Ok(u64::try_from(text.len()).is_ok_and(|wanted| wanted == length) && fs::read(path)? == text.as_bytes())
}

/// A hidden name in the same directory, so that a move is one step and a pattern like `*.conf` does not find it.
fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.with_file_name(format!(".{name}.bellwether-{word}"))
}

fn said(what: &str, path: &Path, error: &io::Error) -> String {
    format!("could not {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests;
