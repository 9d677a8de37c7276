//! Reading a configuration file: what it says is run as the user of the program, so that nobody else may have written it.

use std::fs;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// That all users can write.
const WRITABLE: u32 = 0o002;

/// That in a directory nobody replaces what somebody else put there.
const STICKY: u32 = 0o1000;

/// Largest configuration file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The text of a file that only root and the user of this program can write, replace or put there. A link counts by its own owner and directory,
/// too.
///
/// # Errors
/// Somebody else can, or it cannot be read, or has no end.
pub(crate) fn read_trusted(path: &Path) -> Result<String> {
    let file = fs::File::open(path)?;
    trusted(path, &file.metadata()?)?;
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_BYTES) {
        return Err(Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

fn trusted(path: &Path, about: &fs::Metadata) -> Result<()> {
    for owner in [about.uid(), fs::symlink_metadata(path)?.uid()] {
        is_own(owner, "its owner")?;
    }
    if about.mode() & WRITABLE != 0 {
        return refused(format!(
            "every user can write it (mode {:04o}): chmod o-w it",
            about.mode() & 0o7777
        ));
    }
    directory_of(path)?;
    // A pipe, such as `/dev/stdin`, leads to nothing that has a name.
    if about.is_file() { directory_of(&fs::canonicalize(path)?) } else { Ok(()) }
}

/// Refuses a file that somebody else can replace in its directory.
fn directory_of(path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let about = fs::metadata(directory)?;
    for owner in [about.uid(), fs::symlink_metadata(directory)?.uid()] {
        is_own(owner, &format!("the owner of its directory {}", directory.display()))?;
    }
    if about.mode() & WRITABLE != 0 && about.mode() & STICKY == 0 {
        return refused(format!(
            "every user can write its directory {} (mode {:04o}): chmod o-w that",
            directory.display(),
            about.mode() & 0o7777
        ));
    }
    Ok(())
}

fn is_own(owner: u32, whose: &str) -> Result<()> {
    match owner == 0 || owner == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => refused(format!(
            "{whose} is user {owner}, neither root nor the user of this program: chown it to one of them"
        )),
    }
}

fn refused(reason: String) -> Result<()> {
    Err(Error::new(ErrorKind::PermissionDenied, reason))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn said(path: &Path) -> String {
        read_trusted(path).map_or_else(|error| error.to_string(), |_| "read".to_owned())
    }

    #[test]
    fn a_file_that_others_can_write_or_replace_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("conf");
        fs::create_dir(&dir).unwrap();
        let (file, link) = (dir.join("a.toml"), home.path().join("link.toml"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        let mode = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).unwrap();
        mode(&file, 0o640);
        assert_eq!((said(&file), said(&link)), ("read".to_owned(), "read".to_owned()));
        mode(&file, 0o646);
        assert!(said(&file).contains("every user can write it (mode 0646)"));
        mode(&file, 0o640);
        // Also what a link leads to.
        mode(&dir, 0o777);
        for path in [&file, &link] {
            assert!(said(path).contains("every user can write its directory"), "{}", said(path));
        }
        mode(&dir, 0o1777);
        assert_eq!(said(&file), "read");
        mode(&dir, 0o755);
        assert!(said(Path::new("/dev/zero")).contains("every user can write it"));
        let (read, mut write) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut write, b"a = 1").unwrap();
        drop(write);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&read);
        assert_eq!(read_trusted(Path::new(&format!("/proc/self/fd/{fd}"))).unwrap(), "a = 1");
        // Only root may give something away.
        if rustix::process::geteuid().is_root() {
            chown(&dir, Some(65_534), None).unwrap();
            for path in [&file, &link] {
                assert!(said(path).contains("the owner of its directory"), "{}", said(path));
            }
            chown(&dir, Some(0), None).unwrap();
            chown(&file, Some(65_534), None).unwrap();
            assert!(
                said(&file).contains("its owner is user 65534, neither root nor the user of this program")
            );
        }
    }
}
