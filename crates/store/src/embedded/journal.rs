//! The journal: what groups did since the database file was last made durable. One append and one sync a
//! group, in a file that keeps its size, so a commit costs what the disk's fastest durable write costs.
//!
//! Groups are numbered for ever. The database knows which generation of the journal continues it and the last group that
//! it holds itself, so frames it already holds are never taken for new ones, and frames that are missing are missed.

mod format_1;
mod frame;
mod mark;
mod scan;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bellwether_rt::fail::{self, FailPoint};

pub(super) use self::format_1::read as read_format_1;
use self::mark::FRAMES;
pub(super) use self::mark::JournalMark;
use self::scan::LONG;
use super::directory::{io_at, private};
use super::fault::{FileFault, is_full};
use super::medium::{Medium, read_all};
use crate::error::OpenError;
use crate::health::JournalCut;

/// The journal of one generation, open to append to.
#[derive(Debug)]
pub(super) struct Journal {
    medium: Arc<dyn Medium>,
    mark: JournalMark,
    group: u64,
    end: u64,
    frame: Vec<u8>,
}

/// A journal as it was found.
#[derive(Debug)]
pub(super) struct OpenJournal {
    pub(super) journal: Journal,
    /// What its groups did, in order.
    pub(super) payloads: Vec<Vec<u8>>,
    /// All of it, if its last group is not whole, and where that is.
    pub(super) torn: Option<(Vec<u8>, JournalCut)>,
}

impl Journal {
    /// Creates an empty journal of full size. A used one is refused: its store file was taken away.
    pub(super) fn make(path: &Path, mark: &JournalMark) -> Result<(), OpenError> {
        if fs::exists(path).map_err(io_at(path))? && is_used(&fs::read(path).map_err(io_at(path))?) {
            let reason = "the store file it belongs to is missing".to_owned();
            return Err(OpenError::Corrupt { file: path.to_owned(), reason });
        }
        let file = private().open(path).map_err(io_at(path))?;
        file.resize(0).and_then(|()| lay_out(&file, mark)).map_err(io_at(path))?;
        file.sync_all().map_err(io_at(path))
    }

    /// Makes a journal of format 1, of which nothing is needed any more, one that continues `mark`.
    pub(super) fn remake(medium: &dyn Medium, mark: &JournalMark) -> Result<(), FileFault> {
        lay_out(medium, mark).map_err(|error| FileFault::from_write(&error))?;
        medium.sync().map_err(|error| FileFault::Broken(format!("cannot sync: {error}")))
    }

    /// Refuses a journal that does not continue the database of `mark`, or is damaged. Changes nothing.
    pub(super) fn check(medium: &dyn Medium, path: &Path, mark: &JournalMark) -> Result<(), OpenError> {
        let bytes = read_all(medium).map_err(io_at(path))?;
        scan::scan(&bytes, mark)
            .map(drop)
            .map_err(|reason| OpenError::Corrupt { file: path.to_owned(), reason })
    }

    /// Opens the journal that continues the database of `mark`. `path` is its name.
    pub(super) fn open(
        medium: Arc<dyn Medium>,
        path: &Path,
        mark: &JournalMark,
    ) -> Result<OpenJournal, OpenError> {
        let bytes = read_all(&*medium).map_err(io_at(path))?;
        let found = scan::scan(&bytes, mark)
            .map_err(|reason| OpenError::Corrupt { file: path.to_owned(), reason })?;
        let payloads = found.payloads.iter().map(|payload| payload.to_vec()).collect();
        let end = offset(found.end);
        let journal = Self { medium, mark: *mark, group: found.group, end, frame: Vec::new() };
        if found.is_behind {
            journal.write_header().map_err(io_at(path))?;
        }
        let cut = found.torn_length.map(|bytes| JournalCut { at: end, bytes: offset(bytes) });
        Ok(OpenJournal { journal, payloads, torn: cut.map(|cut| (bytes, cut)) })
    }

    /// Makes `payload` durable. After [`FileFault::NoRoom`] it is as if this was never called.
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<(), FileFault> {
        let group = self.group.saturating_add(1);
        self.frame.clear();
        frame::write(&mut self.frame, &self.mark, group, payload);
        if let Err(error) = self.medium.write(&self.frame, self.end) {
            self.shorten()?;
            return Err(FileFault::from_write(&error));
        }
        fail::pass(FailPoint::JournalWritten);
        self.medium.sync().map_err(|error| FileFault::Broken(format!("cannot sync: {error}")))?;
        self.end = self.end.saturating_add(offset(self.frame.len()));
        self.group = group;
        Ok(())
    }

    /// Whether the database holds everything that it holds.
    pub(super) fn is_empty(&self) -> bool {
        self.end == offset(FRAMES)
    }

    /// Whether the database should be made durable now.
    pub(super) fn is_due(&self) -> bool {
        self.end >= offset(FRAMES.saturating_add(LONG))
    }

    /// The mark of the database once it holds everything.
    pub(super) fn next_mark(&self) -> Result<JournalMark, FileFault> {
        self.mark.following(self.group).map_err(|error| FileFault::Broken(error.to_string()))
    }

    /// Restarts the journal, as the database holds everything and has `mark`. Its header is durable before the first
    /// frame is written over one of the generation before, which the old header needs.
    pub(super) fn restart(&mut self, mark: JournalMark) -> Result<(), FileFault> {
        (self.mark, self.end) = (mark, offset(FRAMES));
        self.write_header().map_err(|error| {
            let reason = format!("cannot restart the journal: {error}");
            if is_full(&error) { FileFault::Full } else { FileFault::Broken(reason) }
        })?;
        self.shorten()
    }

    fn write_header(&self) -> std::io::Result<()> {
        let (place, header) = self.mark.header();
        self.medium.write(&header, place)?;
        self.medium.sync()
    }

    /// Frees space beyond the usual size and the last frame.
    fn shorten(&self) -> Result<(), FileFault> {
        let keep = offset(FRAMES.saturating_add(LONG)).max(self.end);
        let shortened = self
            .medium
            .length()
            .and_then(|length| if length > keep { self.medium.resize(keep) } else { Ok(()) });
        shortened.map_err(|error| FileFault::Broken(format!("cannot shorten the journal: {error}")))
    }
}

/// Zeros, not a hole: overwriting them changes nothing but data, which makes for the fastest sync.
fn lay_out(medium: &dyn Medium, mark: &JournalMark) -> std::io::Result<()> {
    medium.write(&vec![0; FRAMES.saturating_add(LONG)], 0)?;
    let (place, header) = mark.header();
    medium.write(&header, place)
}

/// Whether a journal was ever written to, or was and cannot be read any more.
fn is_used(journal: &[u8]) -> bool {
    let unused = |mark: JournalMark| mark.generation == 0 && frame::read(frames(journal), &mark).is_none();
    match JournalMark::newest(journal) {
        Some(mark) => !unused(mark),
        None => format_1::is_used(journal) || frames(journal).iter().any(|byte| *byte != 0),
    }
}

fn frames(journal: &[u8]) -> &[u8] {
    journal.get(FRAMES..).unwrap_or_default()
}

fn offset(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
