//! The files of the audit log: JSON lines, appended and synced; a full file is set aside, and the oldest ones are deleted.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bellwether_api::v1::audit::{AuditAnswer, AuditEntry};

/// The file that is written.
const CURRENT: &str = "audit.jsonl";

/// Size at which a file is set aside, in bytes.
const FILE_BYTES: u64 = 16 * 1_024 * 1_024;

/// What is tried to be written, in bytes: more than a block of the file system, whose rest a full disk may still have.
const TRIED_BYTES: usize = 64 * 1_024;

/// Number of files that are kept beside the one that is written.
const FILES_KEPT: usize = 15;

/// The file of a log that is written.
#[derive(Debug)]
pub(super) struct AuditFile {
    dir: PathBuf,
    file: File,
    /// Bytes up to the end of the last lines that were written whole; what is behind them was never confirmed.
    length: u64,
    /// Number of the last entry.
    last: u64,
}

/// A line of a file.
enum AuditLine {
    Entry(Box<AuditEntry>),
    Answer(AuditAnswer),
}

impl AuditFile {
    /// Opens the log in this directory, which is created if it is missing. A last line that was not written whole is cut off: it was
    /// not confirmed.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let file = open(&dir.join(CURRENT))?;
        let length = whole_lines(&dir.join(CURRENT))?;
        file.set_len(length)?;
        let mut last = 0;
        for path in newest_first(dir)? {
            last = read_file(&path)?.iter().map(AuditLine::id).max().unwrap_or_default();
            if last > 0 {
                break;
            }
        }
        Ok(Self { dir: dir.to_owned(), file, length, last })
    }

    /// Number of the last entry.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Appends lines, each with its line feed, up to the entry `last`. If there is a new entry among them, they are on disk once this
    /// returns. Nobody waits for answers: alone, they come to the disk with the next entry, or when the system writes them back.
    pub(super) fn append(&mut self, lines: &[u8], last: u64) -> io::Result<()> {
        let added = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        if self.length > 0 && self.length.saturating_add(added) > FILE_BYTES {
            self.set_aside()?;
        }
        let has_entry = last > self.last;
        let written = self.file.write_all(lines);
        let written = written.and_then(|()| if has_entry { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // What may be there was not confirmed, and must not stand before what follows.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        (self.length, self.last) = (self.length + added, last);
        Ok(())
    }

    /// Tries whether there is room for entries, and leaves the file as it is. A reader meanwhile, and a server that dies, leave or see
    /// empty lines, which are no entries.
    pub(super) fn try_write(&mut self) -> io::Result<()> {
        let tried = self.file.write_all(&[b'\n'; TRIED_BYTES]).and_then(|()| self.file.sync_data());
        self.file.set_len(self.length)?;
        tried
    }

    fn set_aside(&mut self) -> io::Result<()> {
        let current = self.dir.join(CURRENT);
        std::fs::rename(&current, self.dir.join(format!("audit-{:020}.jsonl", self.last)))?;
        self.file = open(&current)?;
        self.length = 0;
        File::open(&self.dir)?.sync_all()?;
        for path in newest_first(&self.dir)?.into_iter().skip(FILES_KEPT + 1) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }
}

impl AuditLine {
    fn read(line: &[u8]) -> Option<Self> {
        // An answer has no other fields, so that no entry is taken for one.
        let answer = serde_json::from_slice(line).map(Self::Answer);
        answer.or_else(|_| serde_json::from_slice(line).map(|entry| Self::Entry(Box::new(entry)))).ok()
    }

    fn id(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.id,
            Self::Answer(_) => 0,
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Length of a file up to its last line feed, in bytes.
fn whole_lines(path: &Path) -> io::Result<u64> {
    let bytes = std::fs::read(path)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    Ok(u64::try_from(end).unwrap_or(u64::MAX))
}

/// The files of the log, the one that is written first.
fn newest_first(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut aside: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("audit-") && name.ends_with(".jsonl") {
            aside.push(path);
        }
    }
    aside.sort();
    aside.push(dir.join(CURRENT));
    aside.reverse();
    Ok(aside)
}

fn read_file(path: &Path) -> io::Result<Vec<AuditLine>> {
    let file = match File::open(path) {
        Ok(file) => file,
        // It was set aside or deleted since it was listed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        // A line that is being written now is not an entry yet.
        lines.extend(AuditLine::read(&line?));
    }
    Ok(lines)
}

/// The matching entries of the log in `dir`, oldest first: the first `limit` after the entry `after`, or else the newest.
pub(super) fn read(
    dir: &Path,
    (after, limit): (Option<u64>, usize),
    matches: impl Fn(&AuditEntry) -> bool,
) -> io::Result<Vec<AuditEntry>> {
    let mut found: VecDeque<AuditEntry> = VecDeque::new();
    let mut answers: BTreeMap<u64, u16> = BTreeMap::new();
    for path in newest_first(dir)? {
        let mut first = u64::MAX;
        let mut entries = Vec::new();
        for line in read_file(&path)? {
            match line {
                AuditLine::Entry(entry) => entries.push(*entry),
                AuditLine::Answer(answer) => {
                    answers.insert(answer.id, answer.status);
                }
            }
        }
        for mut entry in entries.into_iter().rev() {
            first = first.min(entry.id);
            entry.status = answers.remove(&entry.id);
            if after.is_none_or(|after| entry.id > after) && matches(&entry) {
                found.push_front(entry);
            }
        }
        let is_enough = match after {
            Some(after) => first <= after,
            None => found.len() >= limit,
        };
        if is_enough {
            break;
        }
    }
    let surplus = found.len().saturating_sub(limit);
    match after {
        Some(_) => found.truncate(limit),
        None => drop(found.drain(..surplus)),
    }
    Ok(found.into())
}

#[cfg(test)]
mod tests {
    use bellwether_api::v1::audit::AuditOutcome;

    use super::*;

    fn entry(id: u64) -> AuditEntry {
        AuditEntry {
            id,
            time_ms: 1,
            server: "server".to_owned(),
            actor: "kim".to_owned(),
            roles: Vec::new(),
            address: None,
            method: "PUT".to_owned(),
            path: "/v1/x".repeat(20),
            right: None,
            outcome: AuditOutcome::Allowed,
            reason: None,
            omitted: None,
            status: None,
        }
    }

    fn write(log: &mut AuditFile, ids: std::ops::RangeInclusive<u64>) {
        for id in ids {
            let mut lines = serde_json::to_vec(&entry(id)).unwrap();
            lines.extend_from_slice(format!("\n{{\"id\":{id},\"status\":200}}\n").as_bytes());
            log.append(&lines, id).unwrap();
        }
    }

    fn ids(dir: &Path, after: Option<u64>, limit: usize) -> Vec<u64> {
        read(dir, (after, limit), |_| true).unwrap().iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn entries_are_read_with_their_answers_and_go_on_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = AuditFile::open(dir.path()).unwrap();
        write(&mut log, 1..=5);
        let read = read(dir.path(), (None, 10), |_| true).unwrap();
        assert!(read.iter().all(|entry| entry.status == Some(200)));
        drop(log);
        // A power cut in the middle of a line.
        let mut torn = OpenOptions::new().append(true).open(dir.path().join(CURRENT)).unwrap();
        torn.write_all(b"{\"id\":6,\"time_").unwrap();
        let mut log = AuditFile::open(dir.path()).unwrap();
        assert_eq!(log.last(), 5);
        write(&mut log, 6..=7);
        assert_eq!(ids(dir.path(), None, 3), [5, 6, 7]);
        assert_eq!(ids(dir.path(), Some(2), 3), [3, 4, 5]);
        assert_eq!(ids(dir.path(), Some(7), 3), Vec::<u64>::new());
    }

    #[test]
    fn a_full_file_is_set_aside_and_all_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = AuditFile::open(dir.path()).unwrap();
        write(&mut log, 1..=3);
        log.set_aside().unwrap();
        write(&mut log, 4..=6);
        log.set_aside().unwrap();
        drop(log);
        let mut log = AuditFile::open(dir.path()).unwrap();
        assert_eq!(log.last(), 6, "the current file is empty");
        write(&mut log, 7..=7);
        assert_eq!(ids(dir.path(), None, 100), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ids(dir.path(), Some(1), 4), [2, 3, 4, 5]);
        assert_eq!(ids(dir.path(), None, 2), [6, 7]);
        for id in 8..30 {
            write(&mut log, id..=id);
            log.set_aside().unwrap();
        }
        assert_eq!(newest_first(dir.path()).unwrap().len(), FILES_KEPT + 1);
    }
}
