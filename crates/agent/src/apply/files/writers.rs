//! Who may write the directories of a file: whoever can, can exchange the file, its new content before it is in place, and the copy
//! of its old one.

use std::path::Path;

use rustix::fs::Stat;
use rustix::process::{getegid, geteuid};

use crate::users::UserAccount;

/// The bit by which only the owner of an entry may move or remove it.
const STICKY: u32 = 0o1000;

/// Users and groups that may write.
#[derive(Debug)]
pub(super) struct Writers {
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl Writers {
    /// root, the user of this agent, and the owner of the file, if one is configured.
    pub(super) fn of(owner: Option<UserAccount>) -> Self {
        let users = [0, geteuid().as_raw()].into_iter().chain(owner.map(|owner| owner.uid));
        let groups = [0, getegid().as_raw()].into_iter().chain(owner.and_then(|owner| owner.gid));
        Self { users: users.collect(), groups: groups.collect() }
    }

    /// Accepts a directory in which only these may make, move and remove entries.
    ///
    /// # Errors
    /// Who else may; fits after "cannot write FILE: ".
    pub(super) fn trusts(&self, dir: &Path, about: &Stat) -> Result<(), String> {
        self.owns(dir, about)?;
        if self.is_open(about) {
            let mode = about.st_mode & 0o7777;
            return Err(format!(
                "users other than its owner can write the directory {} (mode {mode:04o}), and exchange what is in it; \
                 take that from them, or use another directory",
                dir.display()
            ));
        }
        Ok(())
    }

    /// Accepts a directory in which others may not move the one `below`.
    ///
    /// # Errors
    /// Who may; fits after "cannot write FILE: ".
    pub(super) fn trusts_on_the_way(&self, dir: &Path, about: &Stat, below: &Stat) -> Result<(), String> {
        if about.st_mode & STICKY != 0 && self.users.contains(&below.st_uid) {
            return self.owns(dir, about);
        }
        self.trusts(dir, about)
    }

    fn owns(&self, dir: &Path, about: &Stat) -> Result<(), String> {
        if self.users.contains(&about.st_uid) {
            return Ok(());
        }
        let (user, dir) = (about.st_uid, dir.display());
        Err(format!(
            "the directory {dir} belongs to user {user}, who can exchange what is in it; use one of root or of this agent's user, \
             or name that user as `owner` of the file"
        ))
    }

    fn is_open(&self, about: &Stat) -> bool {
        let mode = about.st_mode;
        mode & 0o002 != 0 || (mode & 0o020 != 0 && !self.groups.contains(&about.st_gid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn about(path: &Path, mode: u32) -> Stat {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        rustix::fs::stat(path).unwrap()
    }

    fn writers(users: &[u32], groups: &[u32]) -> Writers {
        Writers { users: users.to_vec(), groups: groups.to_vec() }
    }

    #[test]
    fn a_directory_is_trusted_by_who_owns_and_who_may_write_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let (own, group) = (geteuid().as_raw(), getegid().as_raw());
        let (mine, strange) = (writers(&[own], &[group]), writers(&[own + 1], &[group + 1]));
        assert_eq!(mine.trusts(path, &about(path, 0o775)), Ok(()));
        let refused = mine.trusts(path, &about(path, 0o777)).unwrap_err();
        assert!(refused.contains("can write the directory") && refused.contains("(mode 0777)"), "{refused}");
        let others = writers(&[own], &[group + 1]).trusts(path, &about(path, 0o770)).unwrap_err();
        assert!(others.contains("(mode 0770)"), "{others}");
        let refused = strange.trusts(path, &about(path, 0o700)).unwrap_err();
        assert!(refused.contains(&format!("belongs to user {own}")), "{refused}");
    }

    #[test]
    fn nobody_moves_the_directory_of_another_out_of_one_that_is_sticky() {
        let dir = tempfile::tempdir().unwrap();
        let (path, own) = (dir.path(), geteuid().as_raw());
        let below = path.join("below");
        fs::create_dir(&below).unwrap();
        let (mine, below) = (writers(&[own], &[]), about(&below, 0o700));
        let sticky = about(path, 0o1777);
        assert_eq!(mine.trusts_on_the_way(path, &sticky, &below), Ok(()));
        assert!(mine.trusts(path, &sticky).is_err(), "a file in it would be exchanged");
        assert!(mine.trusts_on_the_way(path, &about(path, 0o777), &below).is_err());
    }
}
