//! Writing one file whole, with the mode and the owner it is to have.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// How a file looks from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileMode {
    pub(super) mode: u32,
    /// User and group; the agent's own if none.
    pub(super) owner: Option<(u32, u32)>,
}

/// Writes a file that is not there; what is left of an earlier try is replaced. Synced when this returns.
pub(super) fn write_new(path: &Path, bytes: &[u8], looks: &FileMode) -> io::Result<()> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Nobody else may read it before its mode and owner are right.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    let about = file.metadata()?;
    if let Some((user, group)) = looks.owner.filter(|owner| *owner != (about.uid(), about.gid())) {
        std::os::unix::fs::fchown(&file, Some(user), Some(group))?;
    }
    file.set_permissions(Permissions::from_mode(looks.mode))?;
    file.sync_all()
}

/// Makes a move in the directory of `path` last.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
