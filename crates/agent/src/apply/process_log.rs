//! Reading the log of a supervised process, which the process writes itself, and which is emptied when it is full.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bellwether_api::v1::job_log::MAX_CHUNK_BYTES;
use bellwether_core::words::name::EntityName;

use super::job_log::{LogPart, part};

/// From where on a log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogStart {
    /// This byte; the first one if the log was emptied since.
    Byte(u64),
    /// The first line that begins within this many bytes of the end.
    Tail(u64),
}

/// The log of the process of an entity, below the logs of a node.
pub(crate) fn path(logs: &Path, entity: &EntityName) -> PathBuf {
    logs.join(format!("{entity}.service.log"))
}

/// Reads a part: at most [`MAX_CHUNK_BYTES`], and whole lines unless `to_end`. `None` if there is no log.
///
/// # Errors
/// Those of reading the file.
pub(crate) fn read(path: &Path, start: LogStart, to_end: bool) -> io::Result<Option<LogPart>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let size = file.metadata()?.len();
    let offset = match start {
        LogStart::Byte(byte) if byte <= size => byte,
        LogStart::Byte(_) => 0,
        LogStart::Tail(bytes) => line_after(&mut file, size.saturating_sub(bytes))?,
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(u64::try_from(MAX_CHUNK_BYTES).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
    Ok(Some(part(offset, &bytes, to_end)))
}

/// The begin of the first line from this byte on.
fn line_after(file: &mut File, byte: u64) -> io::Result<u64> {
    if byte == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(byte.saturating_sub(1)))?;
    let mut bytes = Vec::new();
    file.take(u64::try_from(MAX_CHUNK_BYTES).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
    let end = bytes.iter().position(|found| *found == b'\n');
    Ok(end.map_or(byte, |end| byte.saturating_add(u64::try_from(end).unwrap_or(u64::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(path: &Path, start: LogStart, to_end: bool) -> (u64, u64, String) {
        let part = read(path, start, to_end).unwrap().unwrap();
        (part.offset, part.next, part.text)
    }

    #[test]
    fn a_log_is_read_from_a_byte_from_its_end_and_again_after_it_was_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), &"web".parse().unwrap());
        assert_eq!(read(&path, LogStart::Byte(0), true).unwrap(), None);
        std::fs::write(&path, "one\ntwo\nthree\nfo").unwrap();
        let of = |begin, next, text: &str| (begin, next, text.to_owned());
        assert_eq!(read_text(&path, LogStart::Byte(4), false), of(4, 14, "two\nthree\n"));
        assert_eq!(read_text(&path, LogStart::Byte(14), false), of(14, 14, ""), "the line may go on");
        assert_eq!(read_text(&path, LogStart::Byte(14), true), of(14, 16, "fo"));
        assert_eq!(read_text(&path, LogStart::Tail(9), false), of(8, 14, "three\n"));
        assert_eq!(read_text(&path, LogStart::Tail(8), true), of(8, 16, "three\nfo"));
        assert_eq!(read_text(&path, LogStart::Tail(900), false), of(0, 14, "one\ntwo\nthree\n"));
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(read_text(&path, LogStart::Byte(14), false), of(0, 4, "new\n"));
    }
}
