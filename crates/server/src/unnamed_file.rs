//! A file without a name, for what is needed once: nobody else can open it, and it is gone with the process that has it open.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Makes one on the file system of this directory, to be written and read; one after the other, as the directory has one user.
///
/// # Errors
/// What the system says.
pub(crate) fn make(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Not every file system has files without a name, and old kernels say so in another way.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => named_for_a_moment(dir),
        Err(error) => Err(error.into()),
    }
}

fn named_for_a_moment(dir: &Path) -> io::Result<File> {
    let path = dir.join(".unnamed");
    // What a process left that died in that moment.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn it_is_written_and_read_and_never_seen() {
        let dir = tempfile::tempdir().unwrap();
        for make in [make, named_for_a_moment] {
            let mut file = make(dir.path()).unwrap();
            file.write_all(b"kept").unwrap();
            file.rewind().unwrap();
            let mut read = String::new();
            file.read_to_string(&mut read).unwrap();
            assert_eq!(read, "kept");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
