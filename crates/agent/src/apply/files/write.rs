//! Writing one file completely, with its mode and owner.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::directory::{FileDirectory, OldFile};

/// The bits that the kernel takes from a file that is written.
const SET_ID: u32 = 0o6000;

/// Mode and owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileMode {
    pub(super) mode: u32,
    /// User; the agent's own if `None`.
    pub(super) user: Option<u32>,
    /// Group; the agent's own if `None`.
    pub(super) group: Option<u32>,
}

impl FileMode {
    pub(super) fn of(old: &OldFile) -> Self {
        let (user, group) = old.owner;
        Self { mode: old.mode, user: Some(user), group: Some(group) }
    }
}

/// Creates a file; the leftover of an earlier attempt is replaced. It has its owner and mode before it has content, and is synced when
/// this returns.
pub(super) fn write_new(dir: &FileDirectory, name: &Path, bytes: &[u8], looks: &FileMode) -> io::Result<()> {
    dir.remove(name)?;
    let mut file = dir.create(name)?;
    own(&file, looks)?;
    file.set_permissions(Permissions::from_mode(looks.mode & !SET_ID))?;
    file.write_all(bytes)?;
    if looks.mode & SET_ID != 0 {
        file.set_permissions(Permissions::from_mode(looks.mode))?;
    }
    file.sync_all()
}

fn own(file: &File, looks: &FileMode) -> io::Result<()> {
    let about = file.metadata()?;
    let user = looks.user.filter(|user| *user != about.uid());
    let group = looks.group.filter(|group| *group != about.gid());
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, user, group)
}
