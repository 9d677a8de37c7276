//! The stored form of entries and of the log. Little-endian numbers, lengths before bytes; its version is
//! [`super::file::FORMAT`]. Never trusts a length it reads. Each row ends with a checksum of its key and itself, so that what a
//! disk or a stray write altered is not taken for what was written.

use bytes::Bytes;

use crate::entry::{Entry, LeaseId, Revision};
use crate::history::{Commit, Edit};

/// Bytes that are not what this release writes.
#[derive(Debug, thiserror::Error)]
pub(super) enum DamagedRecord {
    /// In the state.
    #[error("the record of key \"{}\" is damaged", .0.escape_ascii())]
    Entry(Bytes),
    /// In the log.
    #[error("the record of commit {0} is damaged")]
    Commit(Revision),
    /// Within one of these, or in the journal.
    #[error("a damaged record")]
    Part,
}

/// Size of the checksum at the end of a row.
const SUM: usize = 4;

/// Ends a row with its checksum.
pub(super) fn seal(row: &mut Vec<u8>, key: &[u8]) {
    let sum = checksum(key, row);
    row.extend_from_slice(&sum.to_le_bytes());
}

/// A row without its checksum, if that holds.
fn unseal<'a>(key: &[u8], row: &'a [u8]) -> Option<&'a [u8]> {
    let (row, sum) = row.split_last_chunk::<SUM>()?;
    (checksum(key, row) == u32::from_le_bytes(*sum)).then_some(row)
}

fn checksum(key: &[u8], row: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(row);
    hasher.finalize()
}

/// Writes the row of an entry, without its key.
pub(super) fn write_entry(row: &mut Vec<u8>, entry: &Entry) {
    write_inner(row, entry);
    seal(row, &entry.key);
}

fn write_inner(row: &mut Vec<u8>, entry: &Entry) {
    row.extend_from_slice(&entry.created.0.to_le_bytes());
    row.extend_from_slice(&entry.modified.0.to_le_bytes());
    row.extend_from_slice(&entry.lease.map_or(0, |lease| lease.0).to_le_bytes());
    write_bytes(row, &entry.value);
}

/// Reads an entry back under its key.
pub(super) fn read_entry(key: Bytes, row: &[u8]) -> Result<Entry, DamagedRecord> {
    let read = |key: Bytes| {
        let mut input = ByteReader(unseal(&key, row)?);
        let entry = input.entry(key).ok()?;
        input.0.is_empty().then_some(entry)
    };
    read(key.clone()).ok_or(DamagedRecord::Entry(key))
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
    seal(row, &commit.revision.0.to_le_bytes());
}

/// Reads a commit back under its revision.
pub(super) fn read_commit(revision: Revision, row: &[u8]) -> Result<Commit, DamagedRecord> {
    let damaged = || DamagedRecord::Commit(revision);
    let row = unseal(&revision.0.to_le_bytes(), row).ok_or_else(damaged)?;
    read_edits(revision, row).map_err(|_| damaged())
}

fn read_edits(revision: Revision, row: &[u8]) -> Result<Commit, DamagedRecord> {
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
pub(super) fn read_logged(revision: Revision, row: &[u8]) -> Result<u64, DamagedRecord> {
    let row = unseal(&revision.0.to_le_bytes(), row).ok_or(DamagedRecord::Commit(revision))?;
    ByteReader(row).number()
}

/// Writes whether there is an entry, and the entry.
pub(super) fn write_option(row: &mut Vec<u8>, entry: Option<&Entry>) {
    row.push(u8::from(entry.is_some()));
    if let Some(entry) = entry {
        write_inner(row, entry);
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
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(DamagedRecord::Part)?;
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
        usize::try_from(u32::from_le_bytes(self.take()?)).map_err(|_| DamagedRecord::Part)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, DamagedRecord> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DamagedRecord::Part)?;
        self.0 = rest;
        Ok(Bytes::copy_from_slice(bytes))
    }

    pub(super) fn option(&mut self, key: &Bytes) -> Result<Option<Entry>, DamagedRecord> {
        match self.byte()? {
            0 => Ok(None),
            1 => self.entry(key.clone()).map(Some),
            _ => Err(DamagedRecord::Part),
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
        assert_eq!((again, commit.edits.len(), read_logged(Revision(3), &row()).unwrap()), (row(), 2, 42));
        assert_eq!(commit.edits[0].before, Some(entry("old", Some(7))));
        assert_eq!(commit.edits[1].after, None);
    }

    #[test]
    fn a_row_cut_short_is_damaged_never_a_panic() {
        for length in 0..row().len() {
            read_commit(Revision(3), &row()[..length]).unwrap_err();
        }
    }

    #[test]
    fn the_form_of_format_2_stays_readable() {
        let golden = b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x03\0\0\0old\x32\x8f\xf5\x93";
        assert_eq!(read_entry("key".into(), golden).unwrap(), entry("old", Some(7)));
    }

    #[test]
    fn a_row_of_format_1_is_one_without_its_checksum() {
        let mut row = b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x03\0\0\0old".to_vec();
        read_entry("key".into(), &row).unwrap_err();
        seal(&mut row, b"key");
        assert_eq!(read_entry("key".into(), &row).unwrap(), entry("old", Some(7)));
    }

    #[test]
    fn a_row_of_which_a_bit_is_altered_or_that_is_under_another_key_is_refused_by_name() {
        let mut sealed = Vec::new();
        write_entry(&mut sealed, &entry("value", None));
        let damaged = "the record of key \"key\" is damaged";
        for bit in 0..sealed.len() * 8 {
            let mut row = sealed.clone();
            row[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_entry("key".into(), &row).unwrap_err().to_string(), damaged);
        }
        read_entry("kez".into(), &sealed).unwrap_err();
        let mut log = row();
        read_commit(Revision(4), &log).unwrap_err();
        log[9] ^= 1;
        assert_eq!(
            read_commit(Revision(3), &log).unwrap_err().to_string(),
            "the record of commit 3 is damaged"
        );
        read_logged(Revision(3), &log).unwrap_err();
    }
}
