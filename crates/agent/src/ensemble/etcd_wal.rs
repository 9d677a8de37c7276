//! Whose the data in a directory of etcd are: each file of its log begins with the member that writes it. A member that is started with the data
//! of another one answers as that one, beside it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// How much of a file is read: its first records are a few dozen bytes.
const READ_BYTES: u64 = 4_096;

/// The type of the record that says whose the log is.
const METADATA: u64 = 1;

/// Id of the member whose data are in a directory, as etcd prints it; `None` if none are there, or they do not say.
pub(super) fn member_of(data: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(data.join("member/wal")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let mut logs = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "wal"));
    let Some(first) = logs.into_iter().min() else { return Ok(None) };
    let mut bytes = Vec::new();
    File::open(first)?.take(READ_BYTES).read_to_end(&mut bytes)?;
    Ok(member(&bytes).map(|id| format!("{id:x}")))
}

/// The id of the member in the first records of a log.
pub(crate) fn member(mut log: &[u8]) -> Option<u64> {
    loop {
        let (length, rest) = log.split_first_chunk::<8>()?;
        let length = u64::from_le_bytes(*length);
        // The upper byte says with how many bytes a record is filled up, if its highest bit is set.
        let (size, upper) = (length & ((1 << 56) - 1), length >> 56);
        let filling = if upper & 0x80 == 0 { 0 } else { upper & 0x7 };
        let record = rest.get(..usize::try_from(size).ok()?)?;
        log = rest.get(usize::try_from(size.checked_add(filling)?).ok()?..)?;
        if number(record, 1)? == METADATA {
            return number(bytes(record, 3)?, 1);
        }
        if record.is_empty() {
            return None;
        }
    }
}

/// A field of a message of Protocol Buffers.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message until one that is not understood.
fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    core::iter::from_fn(move || {
        let key = varint(&mut message)?;
        let field = match key & 0x7 {
            0 => Field::Number(varint(&mut message)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        Some((key >> 3, field))
    })
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn number(message: &[u8], wanted: u64) -> Option<u64> {
    fields(message).find_map(|(field, value)| match value {
        Field::Number(value) if field == wanted => Some(value),
        Field::Number(_) | Field::Bytes(_) => None,
    })
}

fn bytes(message: &[u8], wanted: u64) -> Option<&[u8]> {
    fields(message).find_map(|(field, value)| match value {
        Field::Bytes(value) if field == wanted => Some(value),
        Field::Number(_) | Field::Bytes(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of this type, with these data.
    fn record(kind: u8, data: &[u8]) -> Vec<u8> {
        let mut record = vec![0x08, kind, 0x10, 0x96, 0x01];
        record.extend([0x1a, u8::try_from(data.len()).unwrap()]);
        record.extend(data);
        let filling = (8 - record.len() % 8) % 8;
        let upper = if filling == 0 { 0 } else { 0x80 | u64::try_from(filling).unwrap() };
        let mut frame = (u64::try_from(record.len()).unwrap() | upper << 56).to_le_bytes().to_vec();
        frame.extend(record);
        frame.resize(frame.len() + filling, 0);
        frame
    }

    #[test]
    fn the_member_is_read_from_the_first_records() {
        // Fields 1 and 2, with 0x12345 and 7.
        let metadata = record(1, &[0x08, 0xc5, 0xc6, 0x04, 0x10, 7]);
        let log = [record(4, &[]), metadata.clone(), record(3, &[1])].concat();
        assert_eq!(member(&log), Some(0x1_2345));
        assert_eq!(member(&metadata), Some(0x1_2345));
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(member_of(dir.path()).unwrap(), None);
        let wal = dir.path().join("member/wal");
        fs::create_dir_all(&wal).unwrap();
        assert_eq!(member_of(dir.path()).unwrap(), None);
        fs::write(wal.join("0.tmp"), "").unwrap();
        fs::write(wal.join("0000000000000000-0000000000000000.wal"), &log).unwrap();
        assert_eq!(member_of(dir.path()).unwrap(), Some("12345".to_owned()));
    }

    #[test]
    fn what_is_no_log_says_nothing() {
        let log = record(1, &[0x08, 0xc5, 0xc6, 0x04]);
        for end in 0..log.len() - 4 {
            assert_eq!(member(&log[..end]), None, "{end}");
        }
        for bytes in [&[0; 64][..], &[0xff; 64], &record(4, &[])] {
            assert_eq!(member(bytes), None);
        }
    }
}
