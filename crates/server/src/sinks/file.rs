//! Files of events: one line of JSON for each, appended; a file that is large enough is kept under another name, and another one begun.

use std::io::{ErrorKind, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bellwether_api::v1::cloud_event::CloudEvent;
use bellwether_core::records::sink::SinkFile;
use bellwether_core::words::name::Namespace;
use rustix::fs::OFlags;
use tokio::fs::{self, DirBuilder, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::settings::NO_DIRECTORY;

/// How much is read at once while the end of the last whole line is looked for.
const CHUNK: u64 = 64 << 10;

/// What a directory that is made is for: its owner, and readers of its group.
const DIRECTORY_MODE: u32 = 0o750;

/// As that of a directory.
const FILE_MODE: u32 = 0o640;

/// Appends events to a file.
#[derive(Debug)]
pub(crate) struct FileAppender {
    path: Option<PathBuf>,
    file: SinkFile,
    open: Option<(File, u64)>,
}

impl FileAppender {
    /// What appends to the file of a sink, below the directory of the namespace.
    pub(super) fn new(directory: Option<&Path>, namespace: &Namespace, file: SinkFile) -> Self {
        let path = directory.map(|directory| directory.join(namespace.as_str()).join(&file.path));
        Self { path, file, open: None }
    }

    /// Appends an event. After a failure what was written of it is removed again before the next one.
    pub(super) async fn send(&mut self, event: &CloudEvent) -> Result<String, String> {
        let path = self.path.clone().ok_or_else(|| NO_DIRECTORY.to_owned())?;
        let mut line =
            serde_json::to_vec(event).map_err(|error| format!("cannot encode the event: {error}"))?;
        line.push(b'\n');
        let written = self.append(&path, &line).await;
        if written.is_err() {
            self.open = None;
        }
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(format!("written to {}", path.display()))
    }

    /// Has the disk keep what was appended.
    pub(super) async fn sync(&self) -> std::io::Result<()> {
        match &self.open {
            Some((file, _)) => file.sync_data().await,
            None => Ok(()),
        }
    }

    async fn append(&mut self, path: &Path, line: &[u8]) -> std::io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let (mut file, size) = match self.open.take() {
            Some(open) if is_at(&open.0, path).await => open,
            // It is not open yet, or somebody has moved or deleted it.
            Some(_) | None => opened(path).await?,
        };
        if size > 0 && size.saturating_add(length) > self.file.max_bytes {
            file.sync_data().await?;
            drop(file);
            rotate(path, self.file.keep).await?;
            file = opened(path).await?.0;
            file.write_all(line).await?;
            file.flush().await?;
            self.open = Some((file, length));
            return Ok(());
        }
        file.write_all(line).await?;
        file.flush().await?;
        self.open = Some((file, size.saturating_add(length)));
        Ok(())
    }
}

/// Whether an open file is the one at a path.
async fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata().await, fs::symlink_metadata(path).await) else {
        return false;
    };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

/// The file for appending, without a line that was not written to its end.
async fn opened(path: &Path) -> std::io::Result<(File, u64)> {
    if let Some(directory) = path.parent() {
        // Whatever the umask: others could else put links into it.
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory).await.map_err(|error| {
            let is_file = [ErrorKind::AlreadyExists, ErrorKind::NotADirectory].contains(&error.kind());
            let what = if is_file { "a part of the path is a file".to_owned() } else { error.to_string() };
            std::io::Error::new(
                error.kind(),
                format!("cannot create directory {}: {what}", directory.display()),
            )
        })?;
    }
    let mut how = OpenOptions::new();
    how.read(true).append(true).create(true).mode(FILE_MODE).custom_flags(no_follow());
    let mut file = how.open(path).await.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            std::io::Error::new(error.kind(), "it is a symbolic link, which is not followed")
        }
        Some(_) | None => error,
    })?;
    let whole = whole_lines(&mut file).await?;
    file.set_len(whole).await?;
    Ok((file, whole))
}

/// That a file is not opened by a symbolic link.
fn no_follow() -> i32 {
    OFlags::NOFOLLOW.bits().cast_signed()
}

/// Length of the file up to the end of its last whole line.
async fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0)).await?;
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start)).await?;
        let mut chunk = Vec::new();
        file.take(end - start).read_to_end(&mut chunk).await?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + u64::try_from(at).unwrap_or(0) + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Gives each older file the next number, and the present one the first.
async fn rotate(path: &Path, keep: u32) -> std::io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    if keep == 0 {
        return fs::remove_file(path).await;
    }
    for number in (1..keep).rev() {
        match fs::rename(numbered(number), numbered(number + 1)).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::rename(path, numbered(1)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_api::v1::event::Event;

    fn event(seq: u64) -> CloudEvent {
        let event = Event {
            seq,
            time_ms: 1_700_000_000_000,
            actor: "kim".to_owned(),
            kind: "node.joined".to_owned(),
            subject: "node/web-1".to_owned(),
            before: None,
            after: None,
            cause: "x".repeat(200),
            caused_by: None,
        };
        CloudEvent::of("i", "default", event)
    }

    fn appender(directory: &Path, max_bytes: u64, keep: u32) -> FileAppender {
        let file = SinkFile { path: "a/events.jsonl".to_owned(), max_bytes, keep };
        FileAppender::new(Some(directory), &"default".parse().unwrap(), file)
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str::<CloudEvent>(line).unwrap().data.seq).collect()
    }

    #[tokio::test]
    async fn events_are_lines_and_a_line_that_was_cut_off_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("default/a/events.jsonl");
        let mut file = appender(dir.path(), 1 << 20, 1);
        for number in 1..=3 {
            file.send(&event(number)).await.unwrap();
        }
        file.sync().await.unwrap();
        assert_eq!(numbers(&path), [1, 2, 3]);
        let whole = std::fs::read(&path).unwrap();
        for cut in [1, 100, 600] {
            std::fs::write(&path, whole.get(..whole.len() - cut).unwrap()).unwrap();
            appender(dir.path(), 1 << 20, 1).send(&event(9)).await.unwrap();
            let known = numbers(&path);
            assert_eq!(known.last(), Some(&9));
            assert!(known.starts_with(&[1]), "{known:?}");
        }
    }

    #[tokio::test]
    async fn a_large_file_is_kept_under_a_number_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("default/a/events.jsonl");
        let line = serde_json::to_vec(&event(10)).unwrap().len() as u64 + 1;
        let mut file = appender(dir.path(), line * 2, 2);
        for number in 10..=16 {
            file.send(&event(number)).await.unwrap();
        }
        let older = |number: u32| numbers(&dir.path().join(format!("default/a/events.jsonl.{number}")));
        assert_eq!(numbers(&path), [16]);
        assert_eq!((older(1), older(2), older(3)), (vec![14, 15], vec![12, 13], vec![]));
        let mut file = appender(dir.path(), line * 2, 0);
        for number in 20..=22 {
            file.send(&event(number)).await.unwrap();
        }
        assert_eq!(numbers(&path), [21, 22]);
    }

    #[tokio::test]
    async fn a_file_that_was_moved_or_deleted_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("default/a/events.jsonl");
        let aside = dir.path().join("aside");
        let mut file = appender(dir.path(), 1 << 20, 1);
        file.send(&event(1)).await.unwrap();
        std::fs::rename(&path, &aside).unwrap();
        file.send(&event(2)).await.unwrap();
        assert_eq!((numbers(&aside), numbers(&path)), (vec![1], vec![2]));
        std::fs::remove_file(&path).unwrap();
        file.send(&event(3)).await.unwrap();
        assert_eq!(numbers(&path), [3]);
    }

    #[tokio::test]
    async fn others_may_not_write_what_is_made_and_a_link_is_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("default");
        let mut file = appender(dir.path(), 1 << 20, 1);
        file.send(&event(1)).await.unwrap();
        for (path, rest) in [("", 0o027), ("a", 0o027), ("a/events.jsonl", 0o137)] {
            let mode = std::fs::metadata(own.join(path)).unwrap().permissions().mode();
            assert_eq!(mode & rest, 0, "{path}: {mode:o}");
        }
        let (path, other) = (own.join("a/events.jsonl"), dir.path().join("other"));
        std::fs::rename(&path, &other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        for _ in 0..2 {
            let said = file.send(&event(2)).await.unwrap_err();
            assert!(said.contains("symbolic link"), "{said}");
        }
        assert_eq!(numbers(&other), [1]);
    }

    #[tokio::test]
    async fn without_a_directory_nothing_is_written() {
        let file = SinkFile { path: "a".to_owned(), max_bytes: 1, keep: 1 };
        let mut file = FileAppender::new(None, &"default".parse().unwrap(), file);
        assert!(file.send(&event(1)).await.unwrap_err().contains("names no directory"));
    }
}
