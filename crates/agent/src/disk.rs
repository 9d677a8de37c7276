//! Files that are complete or absent: written to a temporary file, synced, renamed, and the directory synced.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use bellwether_rt::tasks::Tasks;

/// Replaces `path` with `text`, readable by its owner alone. After this returns, a power failure leaves the new text; before,
/// the old one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let parent = path.parent().ok_or_else(|| io::Error::other("the path has no directory"))?;
    let beside = path.with_extension("new");
    // A leftover of a crash belongs to no one: the directory has one writer.
    match fs::remove_file(&beside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    fs::File::open(parent)?.sync_all()
}

/// Replaces `path` with `text` in one move, readable by its owner alone. After a power failure the file may be empty or as
/// before.
pub(crate) fn replace_unsynced(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&beside, path)
}

/// Removes a file, if there is one.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes a directory and its parents with mode 0700. An existing directory is not changed.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The text of a file, or `None` if there is no such file.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs disk work off the runtime's threads.
pub(crate) async fn off_runtime<T: Send + 'static>(
    tasks: &Tasks,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tasks.spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(format!("the task on disk did not complete: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(path.with_extension("new"), "left over").unwrap();
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
