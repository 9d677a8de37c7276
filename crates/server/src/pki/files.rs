//! Certificate and key files: written once, the key readable by its owner alone.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::PkiError;

/// Reads `NAME.pem` and `NAME.key` in `dir`, or makes and writes both. One without the other is an error, never replaced.
pub(super) fn pair(
    dir: &Path,
    name: &str,
    make: impl FnOnce() -> Result<(String, String), PkiError>,
) -> Result<(String, String), PkiError> {
    let (pem, key) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
    if pem.exists() || key.exists() {
        return Ok((read(&pem)?, read(&key)?));
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| file("write", dir, source))?;
    let (pem_text, key_text) = make()?;
    write_private(&key, &key_text).map_err(|source| file("write", &key, source))?;
    write_private(&pem, &pem_text).map_err(|source| file("write", &pem, source))?;
    Ok((pem_text, key_text))
}

/// Writes a file that only its owner may read, whole and synced, refusing to replace one.
pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn read(path: &Path) -> Result<String, PkiError> {
    fs::read_to_string(path).map_err(|source| file("read", path, source))
}

fn file(action: &'static str, path: &Path, source: std::io::Error) -> PkiError {
    PkiError::File { action, path: PathBuf::from(path), source }
}
