//! Writing one file completely, with its mode and owner.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode and owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileMode {
    pub(super) mode: u32,
    /// User and group; the agent's own if `None`.
    pub(super) owner: Option<(u32, u32)>,
}

/// Creates a file; the leftover of an earlier attempt is replaced. Synced when this returns.
pub(super) fn write_new(path: &Path, bytes: &[u8], looks: &FileMode) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // No one else may read it before its mode and owner are set.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    let about = file.metadata()?;
    if let Some((user, group)) = looks.owner.filter(|owner| *owner != (about.uid(), about.gid())) {
        std::os::unix::fs::fchown(&file, Some(user), Some(group))?;
    }
    file.set_permissions(Permissions::from_mode(looks.mode))?;
    file.sync_all()
}

/// Syncs the directory of `path`, so that a move in it survives a power failure.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
