//! The stored form of entries and of the log. Little-endian numbers, lengths before bytes; its version is
//! [`super::file::FORMAT`]. Never trusts a length it reads.

use bytes::Bytes;

use crate::entry::{Entry, LeaseId, Revision};
use crate::history::{Commit, Edit};

/// Bytes that are not what this release writes.
#[derive(Debug, thiserror::Error)]
#[error("a damaged record")]
pub(super) struct DamagedRecord;

/// Writes an entry without its key, which is the row's.
pub(super) fn write_entry(row: &mut Vec<u8>, entry: &Entry) {
    row.extend_from_slice(&entry.created.0.to_le_bytes());
    row.extend_from_slice(&entry.modified.0.to_le_bytes());
    row.extend_from_slice(&entry.lease.map_or(0, |lease| lease.0).to_le_bytes());
    write_bytes(row, &entry.value);
}

/// Reads an entry back under its key.
pub(super) fn read_entry(key: Bytes, row: &[u8]) -> Result<Entry, DamagedRecord> {
    let mut input = ByteReader(row);
    let entry = input.entry(key)?;
    if input.0.is_empty() { Ok(entry) } else { Err(DamagedRecord) }
}

/// Writes a commit without its revision, which is the row's key. `logged` is the sum of the sizes of all
/// commits ever logged, this one included: the difference of two rows tells what lies between them.
pub(super) fn write_commit(row: &mut Vec<u8>, commit: &Commit, logged: u64) {
    row.extend_from_slice(&logged.to_le_bytes());
    for Edit { key, before, after } in &commit.edits {
        write_bytes(row, key);
        write_option(row, before.as_ref());
        write_option(row, after.as_ref());
    }
}

/// Reads a commit back under its revision.
pub(super) fn read_commit(revision: Revision, row: &[u8]) -> Result<Commit, DamagedRecord> {
    let mut input = ByteReader(row);
    input.number()?;
    let mut edits = Vec::new();
    while !input.0.is_empty() {
        let key = input.bytes()?;
        let (before, after) = (input.option(&key)?, input.option(&key)?);
        edits.push(Edit { key, before, after });
    }
    Ok(Commit { revision, edits })
}

/// The running sum of a log row.
pub(super) fn read_logged(row: &[u8]) -> Result<u64, DamagedRecord> {
    ByteReader(row).number()
}

/// Writes whether there is an entry, and the entry.
pub(super) fn write_option(row: &mut Vec<u8>, entry: Option<&Entry>) {
    row.push(u8::from(entry.is_some()));
    if let Some(entry) = entry {
        write_entry(row, entry);
    }
}

/// Writes bytes behind their length.
pub(super) fn write_bytes(row: &mut Vec<u8>, bytes: &[u8]) {
    write_count(row, bytes.len());
    row.extend_from_slice(bytes);
}

/// Writes a length or a number of things.
pub(super) fn write_count(row: &mut Vec<u8>, count: usize) {
    // Keys and values are within MAX_TXN_BYTES, and a lease of 4 billion keys does not fit a disk.
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    row.extend_from_slice(&count.to_le_bytes());
}

/// Bytes that are read from the front.
pub(super) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], DamagedRecord> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(DamagedRecord)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DamagedRecord> {
        self.take().map(u8::from_le_bytes)
    }

    pub(super) fn number(&mut self) -> Result<u64, DamagedRecord> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn count(&mut self) -> Result<usize, DamagedRecord> {
        usize::try_from(u32::from_le_bytes(self.take()?)).map_err(|_| DamagedRecord)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, DamagedRecord> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DamagedRecord)?;
        self.0 = rest;
        Ok(Bytes::copy_from_slice(bytes))
    }

    pub(super) fn option(&mut self, key: &Bytes) -> Result<Option<Entry>, DamagedRecord> {
        match self.byte()? {
            0 => Ok(None),
            1 => self.entry(key.clone()).map(Some),
            _ => Err(DamagedRecord),
        }
    }

    fn entry(&mut self, key: Bytes) -> Result<Entry, DamagedRecord> {
        let (created, modified) = (Revision(self.number()?), Revision(self.number()?));
        let lease = Some(self.number()?).filter(|lease| *lease != 0).map(LeaseId);
        Ok(Entry { key, value: self.bytes()?, created, modified, lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: &'static str, lease: Option<u64>) -> Entry {
        Entry {
            key: "key".into(),
            value: value.into(),
            created: Revision(1),
            modified: Revision(2),
            lease: lease.map(LeaseId),
        }
    }

    fn row() -> Vec<u8> {
        let (before, after) = (Some(entry("old", Some(7))), Some(entry("", None)));
        let edits = vec![
            Edit { key: "key".into(), before: before.clone(), after },
            Edit {
                key: "gone".into(),
                before: before.map(|old| Entry { key: "gone".into(), ..old }),
                after: None,
            },
        ];
        let mut row = Vec::new();
        write_commit(&mut row, &Commit { revision: Revision(3), edits }, 42);
        row
    }

    #[test]
    fn a_commit_reads_back_as_it_was_written() {
        let commit = read_commit(Revision(3), &row()).unwrap();
        let mut again = Vec::new();
        write_commit(&mut again, &commit, 42);
        assert_eq!((again, commit.edits.len(), read_logged(&row()).unwrap()), (row(), 2, 42));
        assert_eq!(commit.edits[0].before, Some(entry("old", Some(7))));
        assert_eq!(commit.edits[1].after, None);
    }

    #[test]
    fn a_row_cut_short_is_damaged_or_shorter_never_a_panic() {
        let whole = read_commit(Revision(3), &row()).unwrap();
        for length in 0..row().len() {
            assert_ne!(read_commit(Revision(3), &row()[..length]).ok().as_ref(), Some(&whole));
        }
    }

    #[test]
    fn the_form_of_format_1_stays_readable() {
        let golden = b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x03\0\0\0old";
        assert_eq!(read_entry("key".into(), golden).unwrap(), entry("old", Some(7)));
    }
}
