//! The files and directories of a long-running program that nobody else may use: its keys, and where they are. The judgement of a start, of a
//! check before one, and of `doctor`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// That others than the owner can write.
const WRITABLE: u32 = 0o022;

/// That others than the owner can do anything.
const OPEN: u32 = 0o077;

/// What mends what a stranger owns: whoever made it may know the keys that are in it.
const DISTRUSTED: &str = "what is in it cannot be trusted: use another directory";

/// What belongs to one data directory. What is not there is not judged.
#[derive(Debug, Clone)]
pub struct OwnFiles {
    /// The data directory.
    pub data_dir: PathBuf,
    /// What nobody else may write, beside the data directory: directories, and files that are not secret.
    pub unwritable: Vec<PathBuf>,
    /// Files that nobody else may read or write.
    pub secret: Vec<PathBuf>,
}

/// What others could do with a file or directory. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
#[error("use {path}: {reason}: {mend}")]
pub struct NotPrivate {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// What to do about it: a command, if one mends it.
    pub mend: String,
}

impl OwnFiles {
    /// Refuses what others than root and the user of this program own, or could use.
    ///
    /// # Errors
    /// [`NotPrivate`], the first one.
    pub fn check(&self) -> Result<(), NotPrivate> {
        self.faults(rustix::process::geteuid().as_raw()).into_iter().next().map_or(Ok(()), Err)
    }

    /// The user that owns the data directory, and everything that others than root and that user own, or could use: for who looks at it from
    /// outside the program.
    ///
    /// # Errors
    /// There is no data directory, or it cannot be looked at.
    pub fn look(&self) -> std::io::Result<(u32, Vec<NotPrivate>)> {
        let user = fs::metadata(&self.data_dir)?.uid();
        Ok((user, self.faults(user)))
    }

    fn faults(&self, user: u32) -> Vec<NotPrivate> {
        let unwritable = [&self.data_dir].into_iter().chain(&self.unwritable).map(|path| (path, WRITABLE));
        let all = unwritable.chain(self.secret.iter().map(|path| (path, OPEN)));
        all.filter_map(|(path, forbidden)| fault(path, forbidden, user)).collect()
    }
}

fn fault(path: &Path, forbidden: u32, user: u32) -> Option<NotPrivate> {
    let found = |reason, mend| Some(NotPrivate { path: path.to_owned(), reason, mend });
    let (about, link) = match fs::metadata(path).and_then(|about| Ok((about, fs::symlink_metadata(path)?))) {
        Ok(both) => both,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            return found(error.to_string(), "run this as root or as the user of the service".to_owned());
        }
    };
    let shown = path.display();
    let strange = [about.uid(), link.uid()].into_iter().find(|owner| *owner != 0 && *owner != user);
    if let Some(owner) = strange {
        let reason = format!("its owner is user {owner}, neither root nor user {user}, whose it is to be");
        let run = format!("run this as user {owner}, if the service is that user's; otherwise {DISTRUSTED}");
        return found(reason, run);
    }
    let mode = about.mode() & 0o7777;
    if mode & forbidden == 0 {
        return None;
    }
    let may = if mode & WRITABLE == 0 { "read" } else { "write" };
    let right = if about.is_dir() { "0700" } else { "0600" };
    found(format!("others than its owner can {may} it (mode {mode:04o})"), format!("chmod {right} {shown}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn said(own: &OwnFiles) -> String {
        own.check().map_or_else(|fault| fault.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn what_others_can_write_read_or_own_is_refused_with_the_command_that_mends_it() {
        let home = tempfile::tempdir().unwrap();
        let (data_dir, keys) = (home.path().join("data"), home.path().join("data/pki"));
        fs::create_dir_all(&keys).unwrap();
        let (key, list) = (keys.join("ca.key"), data_dir.join("servers.json"));
        let own = OwnFiles {
            data_dir: data_dir.clone(),
            unwritable: vec![keys.clone(), list.clone(), data_dir.join("none")],
            secret: vec![key.clone()],
        };
        for path in [&data_dir, &keys] {
            mode(path, 0o755);
        }
        assert_eq!(said(&own), "fine", "nothing is missed");
        for path in [&key, &list] {
            fs::write(path, "").unwrap();
        }
        for (path, sound) in [(&data_dir, 0o711), (&keys, 0o750), (&list, 0o644), (&key, 0o400)] {
            mode(path, sound);
        }
        assert_eq!(said(&own), "fine");
        for (path, open, sound, may, right) in [
            (&data_dir, 0o777, 0o700, "write", "0700"),
            (&data_dir, 0o1777, 0o700, "write", "0700"),
            (&keys, 0o770, 0o700, "write", "0700"),
            (&list, 0o664, 0o600, "write", "0600"),
            (&key, 0o640, 0o600, "read", "0600"),
            (&key, 0o602, 0o600, "write", "0600"),
        ] {
            mode(path, open);
            let shown = path.display();
            let text = format!(
                "use {shown}: others than its owner can {may} it (mode {open:04o}): chmod {right} {shown}"
            );
            assert_eq!(said(&own), text);
            mode(path, sound);
            assert_eq!(said(&own), "fine");
        }
        // Only root may give something away.
        if rustix::process::geteuid().is_root() {
            for path in [&data_dir, &keys, &list, &key] {
                chown(path, Some(65_534), None).unwrap();
                let text = said(&own);
                assert!(text.contains("its owner is user 65534, neither root nor user 0"), "{text}");
                let next = "run this as user 65534, if the service is that user's; otherwise what is in it cannot be trusted: use another directory";
                assert!(text.ends_with(&format!(": {next}")), "{text}");
                chown(path, Some(0), None).unwrap();
            }
            // Whoever looks from outside judges for the user whose directory it is.
            chown(&data_dir, Some(65_534), None).unwrap();
            let (user, faults) = own.look().unwrap();
            assert!(user == 65_534 && faults.is_empty(), "{faults:?}");
        }
    }

    #[test]
    fn a_link_counts_by_what_it_leads_to() {
        let home = tempfile::tempdir().unwrap();
        let (key, link) = (home.path().join("key"), home.path().join("link"));
        fs::write(&key, "").unwrap();
        mode(&key, 0o644);
        symlink(&key, &link).unwrap();
        let own = OwnFiles { data_dir: home.path().to_owned(), unwritable: vec![], secret: vec![link] };
        assert!(said(&own).contains("link: others than its owner can read it (mode 0644)"), "{}", said(&own));
        mode(&key, 0o600);
        assert_eq!(said(&own), "fine");
    }
}
