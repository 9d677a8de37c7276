//! The journal: what groups did since the database file was last made durable. One append and one sync a
//! group, in a file that keeps its size, so a commit costs what the disk's fastest durable write costs.
//!
//! A frame is length, checksum, generation and payload. The database names the generation that continues
//! it, so that frames it already holds are never taken for new ones.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bellwether_rt::fail::{self, FailPoint};

use super::directory::{io_at, private};
use super::fault::FileFault;
use crate::error::OpenError;

/// Size at which the database is made durable, in bytes: 4 MiB, some 12,000 small commits. Everyone waits for
/// about 90 ms meanwhile; half the size waits 65 ms and gives a tenth fewer commits a second, twice the
/// size 150 ms and a tenth more. The file has this size.
const LONG: u64 = 4 << 20;

/// Length and checksum, 4 bytes each, and the generation, 8 bytes.
const HEADER: usize = 16;

/// The journal of one generation, open to append to.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    generation: u64,
    end: u64,
    frame: Vec<u8>,
}

impl Journal {
    /// Creates an empty journal of full size. A used one is refused: its store file was taken away.
    pub(super) fn make(path: &Path) -> Result<(), OpenError> {
        if fs::exists(path).map_err(io_at(path))? && frame(&fs::read(path).map_err(io_at(path))?).is_some() {
            let reason = "the store file it belongs to is missing".to_owned();
            return Err(OpenError::Corrupt { file: path.to_owned(), reason });
        }
        // Zeros, not a hole: overwriting them changes nothing but data, which makes for the fastest sync.
        let zeros = vec![0; usize::try_from(LONG).unwrap_or(usize::MAX)];
        let file = private().open(path).map_err(io_at(path))?;
        file.set_len(0).and_then(|()| file.write_all_at(&zeros, 0)).map_err(io_at(path))?;
        file.sync_all().map_err(io_at(path))
    }

    /// Opens the journal that continues `generation` and returns its payloads.
    pub(super) fn open(path: PathBuf, generation: u64) -> Result<(Self, Vec<Vec<u8>>), OpenError> {
        if !fs::exists(&path).map_err(io_at(&path))? {
            let reason = "it is missing, and with it the latest commits".to_owned();
            return Err(OpenError::Corrupt { file: path, reason });
        }
        let file = private().open(&path).map_err(io_at(&path))?;
        let bytes = fs::read(&path).map_err(io_at(&path))?;
        let (mut rest, mut payloads, mut end) = (&*bytes, Vec::new(), 0_u64);
        while let Some((found, payload, behind)) = frame(rest) {
            if found > generation {
                let reason = format!("it continues a newer store file ({found} after {generation})");
                return Err(OpenError::Corrupt { file: path, reason });
            }
            if found < generation {
                break;
            }
            payloads.push(payload.to_vec());
            end = end.saturating_add(offset(rest.len().saturating_sub(behind.len())));
            rest = behind;
        }
        Ok((Self { file, generation, end, frame: Vec::new() }, payloads))
    }

    /// Makes `payload` durable. After [`FileFault::NoRoom`] it is as if this was never called.
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<(), FileFault> {
        let length = u32::try_from(payload.len()).map_err(|_| FileFault::NoRoom)?;
        self.frame.clear();
        self.frame.extend_from_slice(&length.to_le_bytes());
        self.frame.extend_from_slice(&checksum(self.generation, payload).to_le_bytes());
        self.frame.extend_from_slice(&self.generation.to_le_bytes());
        self.frame.extend_from_slice(payload);
        if let Err(error) = self.file.write_all_at(&self.frame, self.end) {
            self.shorten()?;
            return Err(FileFault::from_write(&error));
        }
        fail::pass(FailPoint::JournalWritten);
        self.file.sync_data().map_err(|error| FileFault::Broken(format!("cannot sync: {error}")))?;
        self.end = self.end.saturating_add(offset(self.frame.len()));
        Ok(())
    }

    /// Whether the database holds everything that it holds.
    pub(super) const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Whether the database should be made durable now.
    pub(super) fn is_due(&self) -> bool {
        self.end >= LONG
    }

    /// The generation that will continue the database once it is durable.
    pub(super) fn next_generation(&self) -> u64 {
        self.generation.saturating_add(1)
    }

    /// Restarts the journal, as the database holds everything and names the next generation.
    pub(super) fn restart(&mut self) -> Result<(), FileFault> {
        self.generation = self.next_generation();
        self.end = 0;
        self.shorten()
    }

    /// Frees space beyond the usual size and the last frame.
    fn shorten(&self) -> Result<(), FileFault> {
        let keep = LONG.max(self.end);
        let length = self.file.metadata().map(|data| data.len());
        let shortened =
            length.and_then(|length| if length > keep { self.file.set_len(keep) } else { Ok(()) });
        shortened.map_err(|error| FileFault::Broken(format!("cannot shorten the journal: {error}")))
    }
}

fn offset(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn checksum(generation: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&generation.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// The first frame of `bytes`, if it is whole: its generation, its payload and what lies behind it. A frame
/// is never empty, so zeros are none.
fn frame(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (length, header) = header.split_first_chunk::<4>()?;
    let (sum, generation) = header.split_first_chunk::<4>()?;
    let generation = u64::from_le_bytes(generation.try_into().ok()?);
    let (payload, behind) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let whole = !payload.is_empty() && checksum(generation, payload) == u32::from_le_bytes(*sum);
    if whole { Some((generation, payload, behind)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(path: &Path, generation: u64) -> Vec<Vec<u8>> {
        Journal::open(path.to_owned(), generation).unwrap().1
    }

    #[test]
    fn frames_read_back_until_the_first_that_is_torn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        Journal::make(&path).unwrap();
        let (mut journal, none) = Journal::open(path.clone(), 7).unwrap();
        assert!(none.is_empty());
        for payload in [&b"one"[..], b"two", b"three"] {
            journal.append(payload).unwrap();
        }
        assert_eq!(payloads(&path, 7), [&b"one"[..], b"two", b"three"]);
        let torn = journal.end - 1;
        journal.file.write_all_at(b"?", torn).unwrap();
        assert_eq!(payloads(&path, 7), [&b"one"[..], b"two"]);
        let (mut journal, _) = Journal::open(path.clone(), 7).unwrap();
        journal.append(b"3").unwrap();
        assert_eq!(payloads(&path, 7), [&b"one"[..], b"two", b"3"]);
    }

    #[test]
    fn frames_of_an_earlier_generation_are_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        Journal::make(&path).unwrap();
        let (mut journal, _) = Journal::open(path.clone(), 0).unwrap();
        for payload in [&b"old"[..], b"old", b"old"] {
            journal.append(payload).unwrap();
        }
        journal.restart().unwrap();
        assert_eq!(payloads(&path, 1), Vec::<Vec<u8>>::new());
        journal.append(b"new").unwrap();
        assert_eq!(payloads(&path, 1), [b"new"]);
        let newer = Journal::open(path, 0).unwrap_err();
        assert!(matches!(newer, OpenError::Corrupt { .. }), "{newer}");
    }
}
