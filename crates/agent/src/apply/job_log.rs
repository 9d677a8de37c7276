//! Logs of jobs: below the logs of the node a directory for each run, with the segments of each job's log. The name of a
//! segment has the byte offset at which it begins, so that what was read once keeps its offset when older segments are removed.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bellwether_api::v1::job_log::MAX_CHUNK_BYTES;
use bellwether_core::words::name::EntityName;

use super::output::visible;
use crate::disk;

/// The directory of the logs of jobs, below that of all logs.
pub(crate) const JOBS: &str = "jobs";

/// A segment is full at this size.
pub(crate) const SEGMENT_BYTES: u64 = 4 << 20;

/// When a segment is begun, the oldest ones of the run are removed above this size: with the new one, 16 MiB per run.
const KEPT_BYTES: u64 = 12 << 20;

/// Times that a log is read again whose oldest segments are removed meanwhile.
const READS: u32 = 3;

/// The last segment of the log of a job.
#[derive(Debug)]
pub(crate) struct JobLogFile {
    dir: PathBuf,
    index: u32,
    begin: u64,
}

/// What was read of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogPart {
    pub(crate) offset: u64,
    pub(crate) next: u64,
    pub(crate) text: String,
    /// Whether there is more of it.
    pub(crate) more: bool,
}

/// A file of the log of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    index: u32,
    begin: u64,
    path: PathBuf,
}

impl JobLogFile {
    /// The file in which the log of the job of the task of this index goes on.
    pub(crate) fn open(logs: &Path, run: &EntityName, index: u32) -> io::Result<Self> {
        let dir = dir(logs, run);
        disk::private_dir(&dir)?;
        let begin =
            segments(&dir)?.iter().filter(|segment| segment.index == index).map(|last| last.begin).max();
        let file = Self { dir, index, begin: begin.unwrap_or(0) };
        file.prune()?;
        Ok(file)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(format!("{:05}-{:020}.log", self.index, self.begin))
    }

    /// Begins the next segment after this many bytes of this one.
    pub(crate) fn advance(&mut self, bytes: u64) -> io::Result<()> {
        self.begin = self.begin.saturating_add(bytes);
        self.prune()
    }

    /// Removes the oldest segments of the run, as long as the others are enough.
    fn prune(&self) -> io::Result<()> {
        let own = self.path();
        let mut kept = 0_u64;
        for segment in segments(&self.dir)?.iter().rev().filter(|segment| segment.path != own) {
            kept = kept.saturating_add(fs::metadata(&segment.path)?.len());
            if kept > KEPT_BYTES {
                fs::remove_file(&segment.path)?;
            }
        }
        Ok(())
    }
}

/// Reads the log of the job of the task of this index from a byte on: at most [`MAX_CHUNK_BYTES`], and whole lines, unless the job
/// has ended; a secret is within a line.
///
/// # Errors
/// Those of reading the files.
pub(crate) fn read(
    logs: &Path,
    (run, index): (&EntityName, u32),
    from: u64,
    has_ended: bool,
) -> io::Result<LogPart> {
    let dir = dir(logs, run);
    let mut reads = 0;
    loop {
        reads += 1;
        match read_once(&dir, index, from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && reads < READS => {}
            Ok((offset, bytes)) => return Ok(part(offset, &bytes, has_ended)),
            Err(error) => return Err(error),
        }
    }
}

fn dir(logs: &Path, run: &EntityName) -> PathBuf {
    logs.join(JOBS).join(run.as_str())
}

/// The segments in a directory, by job and offset; none if it does not exist.
fn segments(dir: &Path) -> io::Result<Vec<Segment>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
        let numbers = name.and_then(|(index, begin)| Some((index.parse().ok()?, begin.parse().ok()?)));
        found.extend(numbers.map(|(index, begin)| Segment { index, begin, path: path.clone() }));
    }
    found.sort();
    Ok(found)
}

/// The bytes from an offset on, or from the oldest that is there, and its offset.
fn read_once(dir: &Path, index: u32, from: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut of_job = segments(dir)?;
    of_job.retain(|segment| segment.index == index);
    let oldest = of_job.first().map_or(from, |oldest| oldest.begin);
    let offset = from.max(oldest);
    let first = of_job.iter().rposition(|segment| segment.begin <= offset).unwrap_or(0);
    let mut bytes = Vec::new();
    for segment in of_job.iter().skip(first) {
        let room = MAX_CHUNK_BYTES.saturating_sub(bytes.len());
        let mut file = File::open(&segment.path)?;
        file.seek(SeekFrom::Start(offset.saturating_sub(segment.begin)))?;
        file.take(u64::try_from(room).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
        if bytes.len() >= MAX_CHUNK_BYTES {
            break;
        }
    }
    Ok((offset, bytes))
}

/// The part that these bytes at this offset are: without the line at their end that may go on.
pub(super) fn part(offset: u64, bytes: &[u8], has_ended: bool) -> LogPart {
    let more = bytes.len() >= MAX_CHUNK_BYTES;
    let line = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at.saturating_add(1));
    let end = match (more, has_ended, line) {
        (false, true, _) => bytes.len(),
        (_, _, Some(line)) => line,
        // A line that is longer than what is read at once.
        (true, _, None) => whole_characters(bytes),
        (false, false, None) => 0,
    };
    let next = offset.saturating_add(u64::try_from(end).unwrap_or(u64::MAX));
    LogPart { offset, next, text: visible(bytes.get(..end).unwrap_or_default()), more }
}

/// How many bytes there are before a character that is cut off at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::log::{EntityLog, RunOutput};

    fn run() -> EntityName {
        EntityName::parse("work-1").unwrap()
    }

    fn write(logs: &Path, index: u32, text: &[u8]) {
        let file = JobLogFile::open(logs, &run(), index).unwrap();
        EntityLog::of_job(file, RunOutput::default()).write(text);
    }

    #[test]
    fn each_job_has_its_own_part_and_only_whole_lines_of_one_that_runs() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path();
        let read = |index, from, ended| read(logs, (&run(), index), from, ended).unwrap();
        assert_eq!(read(0, 0, false).next, 0, "it has not begun");
        write(logs, 0, b"one\n");
        write(logs, 1, b"two\nthr");
        write(logs, 0, b"again\n");
        assert_eq!(read(0, 0, true).text, "one\nagain\n", "a job that begins again goes on");
        let part = read(1, 0, false);
        assert_eq!((part.text.as_str(), part.next, part.more), ("two\n", 4, false));
        assert_eq!(read(1, 4, false).text, "", "the line may go on");
        assert_eq!(read(1, 4, true).text, "thr");
        assert_eq!((read(1, 900, true).text.as_str(), read(1, 900, true).next), ("", 900));
    }

    #[test]
    fn a_long_log_is_read_in_parts_that_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let lines: String = (0..20_000).map(|number| format!("line {number} \u{e9}\n")).collect();
        let long = format!("{lines}{}", "\u{e9}".repeat(MAX_CHUNK_BYTES));
        write(dir.path(), 0, long.as_bytes());
        let (mut at, mut text) = (0, String::new());
        loop {
            let part = read(dir.path(), (&run(), 0), at, true).unwrap();
            assert_eq!(part.offset, at);
            text.push_str(&part.text);
            at = part.next;
            if !part.more {
                break;
            }
        }
        assert!(text == long && at == u64::try_from(long.len()).unwrap());
    }

    #[test]
    fn the_oldest_segments_are_removed_and_offsets_stay() {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("{}\n", "x".repeat(1_023));
        let file = JobLogFile::open(dir.path(), &run(), 3).unwrap();
        let mut log = EntityLog::of_job(file, RunOutput::default());
        for _ in 0..30 << 10 {
            log.write(line.as_bytes());
        }
        let kept = segments(&super::dir(dir.path(), &run())).unwrap();
        let size: u64 = kept.iter().map(|segment| fs::metadata(&segment.path).unwrap().len()).sum();
        assert!(size <= KEPT_BYTES + SEGMENT_BYTES, "{size}");
        let part = read(dir.path(), (&run(), 3), 0, true).unwrap();
        assert_eq!(part.offset, kept.first().unwrap().begin);
        assert!(part.offset > 0 && part.more);
        let last = read(dir.path(), (&run(), 3), (30 << 20) - 1_024, true).unwrap();
        assert_eq!((last.text == line, last.next), (true, 30 << 20));
        let next = JobLogFile::open(dir.path(), &run(), 3).unwrap();
        assert_eq!(next.path(), kept.last().unwrap().path, "another agent goes on there");
    }
}
