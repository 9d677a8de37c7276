//! Files that are written whole into a directory that others may write, too: no link that they left there is followed.

use std::fs::{OpenOptions, remove_file, rename};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;

/// Replaces a file, or the link that is in its place, in one move.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<()> {
    let name = path.file_name().ok_or_else(|| Error::other("the path names no file"))?;
    let beside = path.with_file_name(format!(".{}.new", name.to_string_lossy()));
    match remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // What somebody put there meanwhile is not written to: it must be new.
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = file.write_all(text).and_then(|()| rename(&beside, path));
    if written.is_err() {
        drop(remove_file(&beside));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_in_the_place_of_a_file_or_of_what_becomes_it_is_replaced_and_not_written_through() {
        let directory = tempfile::tempdir().unwrap();
        let (target, path) = (directory.path().join("target"), directory.path().join("a.yaml"));
        fs::write(&target, "theirs").unwrap();
        symlink(&target, &path).unwrap();
        symlink(&target, directory.path().join(".a.yaml.new")).unwrap();
        replace(&path, b"ours").unwrap();
        replace(&path, b"ours again").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours again");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_cannot_be_replaced_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("folder");
        fs::create_dir(&path).unwrap();
        replace(&path, b"ours").unwrap_err();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
