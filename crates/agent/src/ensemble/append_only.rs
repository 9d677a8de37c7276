//! The append-only file of a Redis whose disk was full. What was written there meanwhile may not be readable, which Redis notices only when it
//! is to load it: after that the file counts once Redis has written it anew.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::probe::redis::Info;

/// The file in the directory of a member whose append-only file is to be written anew, also for the next agent.
const MARKER: &str = "append-only-file-damaged";

/// How long it takes before it is asked once more.
const AGAIN: Duration = Duration::from_secs(10);

/// What a Redis says of its append-only file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AppendOnlyInfo {
    /// Whether the last write to it failed.
    cannot_write: bool,
    /// Whether it is being written anew, or is about to be.
    is_rewriting: bool,
    /// How often it was written anew since the start; `None` from releases that do not count that.
    rewrites: Option<u64>,
    /// Whether that succeeded the last time.
    is_rewritten: bool,
}

impl AppendOnlyInfo {
    pub(super) fn of(info: &Info) -> Self {
        let is = |field: &str| info.get(field) == Some("1");
        Self {
            cannot_write: info.get("aof_last_write_status") == Some("err"),
            is_rewriting: is("aof_rewrite_in_progress") || is("aof_rewrite_scheduled"),
            rewrites: info.get("aof_rewrites").and_then(|text| text.parse().ok()),
            is_rewritten: info.get("aof_last_bgrewrite_status") == Some("ok"),
        }
    }

    /// Whether it takes what is written.
    pub(super) const fn takes_writes(&self) -> bool {
        !self.cannot_write
    }
}

/// What becomes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendOnlyStep {
    /// Nothing: it has what was written.
    Sound,
    /// It cannot be counted on, which is noted.
    Damaged,
    /// The same, and it is to be written anew now.
    Rewrite,
    /// It was written anew, and can be counted on: the note goes.
    Mended,
}

/// What an agent knows of the file.
#[derive(Debug, Default)]
pub(super) struct AppendOnly {
    /// Whether it is damaged; `None` before the note of an agent before was looked for.
    is_damaged: Option<bool>,
    /// When it was asked to be written anew, and how often it had been.
    asked: Option<(Instant, Option<u64>)>,
}

impl AppendOnly {
    /// Whether it is not known yet whether an agent before has noted damage.
    pub(super) const fn is_unknown(&self) -> bool {
        self.is_damaged.is_none()
    }

    /// What an agent before has noted.
    pub(super) const fn note_found(&mut self, is_damaged: bool) {
        self.is_damaged = Some(is_damaged);
    }

    /// The next step.
    pub(super) fn next(&mut self, said: &AppendOnlyInfo, now: Instant) -> AppendOnlyStep {
        if said.cannot_write {
            (self.is_damaged, self.asked) = (Some(true), None);
            return AppendOnlyStep::Damaged;
        }
        if self.is_damaged != Some(true) {
            return AppendOnlyStep::Sound;
        }
        if said.is_rewriting {
            return AppendOnlyStep::Damaged;
        }
        match self.asked {
            Some((_, before)) if said.is_rewritten && (before.is_none() || before < said.rewrites) => {
                *self = Self { is_damaged: Some(false), asked: None };
                AppendOnlyStep::Mended
            }
            Some((at, _)) if now.duration_since(at) < AGAIN => AppendOnlyStep::Damaged,
            Some(_) | None => {
                self.asked = Some((now, said.rewrites));
                AppendOnlyStep::Rewrite
            }
        }
    }
}

/// Whether damage is noted in this directory.
pub(super) fn is_noted(directory: &Path) -> io::Result<bool> {
    directory.join(MARKER).try_exists()
}

/// Notes damage in this directory, or that there is none any more.
pub(super) fn note(directory: &Path, is_damaged: bool) -> io::Result<()> {
    let marker = directory.join(MARKER);
    if is_damaged {
        return fs::write(marker, "");
    }
    match fs::remove_file(marker) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(write: &str, in_progress: &str, rewrites: u64) -> AppendOnlyInfo {
        let mut info = Info::default();
        info.add(&format!(
            "aof_last_write_status:{write}\r\naof_rewrite_in_progress:{in_progress}\r\naof_rewrite_scheduled:0\r\n\
             aof_rewrites:{rewrites}\r\naof_last_bgrewrite_status:ok\r\n"
        ));
        AppendOnlyInfo::of(&info)
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_full_disk_the_file_is_written_anew_before_it_counts() {
        use AppendOnlyStep::{Damaged, Mended, Rewrite, Sound};
        let mut file = AppendOnly::default();
        assert!(file.is_unknown());
        file.note_found(false);
        let mut next = |said| file.next(&said, Instant::now());
        assert_eq!(next(said("ok", "0", 0)), Sound);
        assert_eq!(next(said("err", "0", 0)), Damaged);
        // One that was begun while the disk was full says nothing.
        assert_eq!(next(said("ok", "1", 0)), Damaged);
        assert_eq!(next(said("ok", "0", 1)), Rewrite);
        assert_eq!(next(said("ok", "0", 1)), Damaged);
        assert_eq!(next(said("ok", "1", 1)), Damaged);
        // It had no room once more.
        assert_eq!(next(said("err", "0", 1)), Damaged);
        assert_eq!(next(said("ok", "0", 1)), Rewrite);
        tokio::time::advance(AGAIN).await;
        assert_eq!(next(said("ok", "0", 1)), Rewrite, "it was started anew, or refused");
        assert_eq!(next(said("ok", "0", 2)), Mended);
        assert_eq!(next(said("ok", "0", 2)), Sound);
    }

    #[test]
    fn the_next_agent_finds_the_note() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_noted(dir.path()).unwrap());
        note(dir.path(), false).unwrap();
        note(dir.path(), true).unwrap();
        assert!(is_noted(dir.path()).unwrap());
        note(dir.path(), false).unwrap();
        assert!(!is_noted(dir.path()).unwrap());
    }
}
