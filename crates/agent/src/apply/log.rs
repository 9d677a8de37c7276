//! Log files of runs: one per entity, of bounded size, with one older file. That of a job is in segments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_core::records::evidence::MAX_TAIL_BYTES;

use super::hidden::hide_bytes;
use super::job_log::{JobLogFile, SEGMENT_BYTES};
use super::output::{last_words, visible};

/// A log is rotated at this size: with the older file, 16 MiB per entity at most.
const MAX_LOG_BYTES: u64 = 8 << 20;

/// How much of the end of a run's output is remembered, to be stored and sent if the run fails, in bytes.
pub(crate) const RECENT_BYTES: usize = 64 << 10;

/// An entity's log, open for appending. A log that cannot be written does not stop the run; it is reported once.
#[derive(Debug)]
pub(crate) struct EntityLog {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    /// Whether what was written last is not the end of a line.
    is_within_line: bool,
    recent: RunOutput,
    rotation: Rotation,
}

/// What happens to a log that is full.
#[derive(Debug)]
enum Rotation {
    /// It becomes the older file.
    Older,
    /// The next segment is begun.
    Segments(JobLogFile),
}

/// The end of a run's output, through all of its logs. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunOutput(Arc<Mutex<RunOutputState>>);

#[derive(Debug, Default)]
struct RunOutputState {
    /// At most twice [`RECENT_BYTES`].
    bytes: Vec<u8>,
    written: usize,
}

impl RunOutput {
    /// Forgets the output.
    pub(crate) fn clear(&self) {
        *self.state() = RunOutputState::default();
    }

    /// How many bytes were written.
    pub(crate) fn written(&self) -> usize {
        self.state().written
    }

    /// What was written after the first `begin` bytes, as text; its end, if that is more than [`RECENT_BYTES`].
    pub(crate) fn since(&self, begin: usize) -> String {
        let state = self.state();
        let most = state.written.saturating_sub(begin).min(RECENT_BYTES);
        let from = state.bytes.len().saturating_sub(most);
        visible(state.bytes.get(from..).unwrap_or_default())
    }

    fn add(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.written = state.written.saturating_add(bytes.len());
        state.bytes.extend_from_slice(bytes);
        if state.bytes.len() > 2 * RECENT_BYTES {
            let over = state.bytes.len().saturating_sub(RECENT_BYTES);
            state.bytes.drain(..over);
        }
    }

    fn state(&self) -> MutexGuard<'_, RunOutputState> {
        // The state is consistent after every change, so a poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EntityLog {
    /// Opens `path` for appending; what is written is also remembered in `recent`.
    pub(crate) fn open(path: &Path, recent: RunOutput) -> Self {
        Self::rotated_by(Rotation::Older, path.to_owned(), recent)
    }

    /// Opens the log of a job, as [`Self::open`] does.
    pub(crate) fn of_job(file: JobLogFile, recent: RunOutput) -> Self {
        let path = file.path();
        Self::rotated_by(Rotation::Segments(file), path, recent)
    }

    fn rotated_by(rotation: Rotation, path: PathBuf, recent: RunOutput) -> Self {
        let is_within_line = ends_within_line(&path).unwrap_or(false);
        let mut log = Self { path, file: None, bytes: 0, is_within_line, recent, rotation };
        let path = &log.path;
        match append(path).and_then(|file| Ok((file.metadata()?.len(), file))) {
            Ok((bytes, file)) => (log.bytes, log.file) = (bytes, Some(file)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot open a log; continuing without it")
            }
        }
        log
    }

    /// The output of the run so far.
    pub(crate) fn recent(&self) -> &RunOutput {
        &self.recent
    }

    /// Adds a line of the agent's own, behind `--- `: what came before it may have ended within a line.
    pub(crate) fn mark(&mut self, text: &str) {
        let begin = if self.is_within_line { "\n" } else { "" };
        self.write(format!("{begin}--- {text}\n").as_bytes());
    }

    /// Adds bytes, without the secrets in them; rotates the log when it is full.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let hidden = hide_bytes(bytes);
        let bytes = hidden.as_deref().unwrap_or(bytes);
        self.recent.add(bytes);
        self.is_within_line = bytes.last().map_or(self.is_within_line, |last| *last != b'\n');
        let most = match self.rotation {
            Rotation::Older => MAX_LOG_BYTES,
            Rotation::Segments(_) => SEGMENT_BYTES,
        };
        if self.bytes >= most {
            self.turn_over();
        }
        let Some(file) = &mut self.file else { return };
        match file.write_all(bytes) {
            Ok(()) => self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot write a log; continuing without it");
                self.file = None;
            }
        }
    }

    fn turn_over(&mut self) {
        let turned = match &mut self.rotation {
            Rotation::Older => fs::rename(&self.path, older(&self.path)),
            Rotation::Segments(file) => {
                let next = file.advance(self.bytes);
                self.path = file.path();
                next
            }
        };
        match turned.and_then(|()| append(&self.path)) {
            Ok(file) => (self.bytes, self.file) = (0, Some(file)),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot rotate a log");
                self.file = None;
            }
        }
    }
}

/// Whether a file ends with anything but the end of a line.
fn ends_within_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0_u8];
    file.read_exact(&mut last)?;
    Ok(last != [b'\n'])
}

/// Opens a file for appending, for its owner alone.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Bounds the log of a process that writes it itself: its last part is copied to the older file, and the file is emptied.
/// The process goes on writing at the new end, because it has opened the file for appending.
pub(crate) fn trim(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let size = file.metadata()?.len();
    if size <= MAX_LOG_BYTES {
        return Ok(());
    }
    file.seek(SeekFrom::Start(size.saturating_sub(MAX_LOG_BYTES)))?;
    let mut kept =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(older(path))?;
    io::copy(&mut Read::by_ref(&mut file).take(MAX_LOG_BYTES), &mut kept)?;
    file.set_len(0)
}

/// How much of the end of a log is looked at for why a program ended.
const SEEN_BYTES: u64 = 64 << 10;

/// The last words of what is in a log from `from` on; of one of which it is not known where they begin, no more than the end.
pub(crate) fn tail(path: &Path, from: Option<u64>) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let (from, most) =
            from.map_or((0, MAX_TAIL_BYTES.try_into().unwrap_or(SEEN_BYTES)), |from| (from, SEEN_BYTES));
        // Emptied meanwhile: everything in it is newer than `from`.
        let from = if size < from { 0 } else { from };
        file.seek(SeekFrom::Start(from.max(size.saturating_sub(most))))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_or_else(
        |error| {
            tracing::debug!(path = %path.display(), %error, "cannot read a log");
            String::new()
        },
        |bytes| last_words(&bytes),
    )
}

fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_stays_within_its_size_with_one_older_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("web.log");
        let mut log = EntityLog::open(&path, RunOutput::default());
        for _ in 0..40 {
            log.write(&vec![b'x'; 1 << 20]);
        }
        let sizes: Vec<u64> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= MAX_LOG_BYTES), "{sizes:?}");
    }

    #[test]
    fn a_line_of_the_agent_begins_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("web.log");
        let mut log = EntityLog::open(&path, RunOutput::default());
        log.mark("begins");
        log.write(b"one\n");
        log.mark("exit code 0");
        log.write(b"two");
        drop(log);
        let mut log = EntityLog::open(&path, RunOutput::default());
        log.write(b"");
        log.mark("exit code 1");
        let expected = "--- begins\none\n--- exit code 0\ntwo\n--- exit code 1\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn the_end_of_what_was_written_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let recent = RunOutput::default();
        let mut log = EntityLog::open(&dir.path().join("web.log"), recent.clone());
        log.write(b"one\n");
        let begin = recent.written();
        log.write(b"two\n");
        assert_eq!((recent.since(0).as_str(), recent.since(begin).as_str()), ("one\ntwo\n", "two\n"));
        for _ in 0..100 {
            log.write(&[b'x'; 8_192]);
        }
        assert_eq!(recent.since(begin).len(), RECENT_BYTES);
        assert!(recent.state().bytes.len() <= 2 * RECENT_BYTES);
        recent.clear();
        assert_eq!(recent.since(0), "");
    }

    #[test]
    fn a_log_is_emptied_while_a_process_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("web.log");
        let mut writer = append(&path).unwrap();
        writer.write_all(&vec![b'x'; 9 << 20]).unwrap();
        trim(&path).unwrap();
        writer.write_all(b"end").unwrap();
        assert_eq!(tail(&path, Some(9 << 20)), "end");
    }
}
