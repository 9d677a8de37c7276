//! What a person needs of an agent to find a fault: the ends of its logs, without secrets. Changes nothing.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::apply::output::visible;
use crate::secret_cache;

/// How much of the end of a log is read, in bytes.
const TAIL_BYTES: u64 = 64 << 10;

/// The name of a log of a supervised process ends with this.
const OF_PROCESS: &str = ".service.log";

/// The ends of the logs in a data directory by file name, in order; those of supervised processes only if wanted. The secrets of this
/// node are masked.
///
/// # Errors
/// Those of reading the directory or a log.
pub fn logs(data_dir: &Path, processes: bool) -> io::Result<Vec<(String, String)>> {
    secret_cache::remember(data_dir);
    let entries = match fs::read_dir(data_dir.join("logs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut logs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_log = name.ends_with(".log") && (processes || !name.ends_with(OF_PROCESS));
        if is_log && entry.file_type()?.is_file() {
            logs.push((name, visible(&tail(&entry.path())?)));
        }
    }
    logs.sort();
    Ok(logs)
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    if size > TAIL_BYTES {
        // A secret may be cut off in the first line.
        let line =
            bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end.saturating_add(1));
        bytes.drain(..line);
    }
    Ok(bytes)
}
