//! Past commits in memory, with what each replaced. Owns how much of the past is kept.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{Entry, Revision};
use crate::range::Range;
use crate::watch::{Batch, Change};

/// Number of commits a local back end keeps for watches and reads at a revision. At the 200 writes a second a
/// fleet of ten thousand makes at most at rest, this is eight minutes: enough for any live watcher to
/// catch up, and for paging through a list.
pub const RETAINED_COMMITS: u64 = 100_000;

/// Size of history a local back end keeps, in bytes, if fewer commits reach it: 256 MiB.
pub const RETAINED_BYTES: u64 = 256 << 20;

/// One key as a commit found it and as it left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) key: Bytes,
    pub(crate) before: Option<Entry>,
    pub(crate) after: Option<Entry>,
}

impl Edit {
    fn size(&self) -> usize {
        let before = self.before.as_ref().map_or(0, Entry::size);
        let after = self.after.as_ref().map_or(0, Entry::size);
        self.key.len().saturating_add(before).saturating_add(after)
    }
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) revision: Revision,
    pub(crate) edits: Vec<Edit>,
}

impl Commit {
    /// What a watcher of `range` sees of this commit.
    pub(crate) fn batch(&self, range: &Range) -> Option<Batch> {
        let touched = self.edits.iter().filter(|edit| range.contains(&edit.key));
        let changes: Vec<_> = touched
            .map(|edit| Change { key: edit.key.clone(), entry: edit.after.clone(), revision: self.revision })
            .collect();
        if changes.is_empty() { None } else { Some(Batch { revision: self.revision, changes }) }
    }

    /// Bytes of keys and values, old and new.
    pub(crate) fn size(&self) -> u64 {
        let bytes = self.edits.iter().map(Edit::size).fold(0, usize::saturating_add);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The most recent commits: all above `floor`, none missing.
#[derive(Debug)]
pub(crate) struct History {
    floor: Revision,
    commits: VecDeque<Arc<Commit>>,
    bytes: u64,
    most_commits: usize,
    most_bytes: u64,
}

impl History {
    /// No commits yet, of a store that is at `floor`.
    pub(crate) fn new(floor: Revision, most_commits: usize, most_bytes: u64) -> Self {
        Self { floor, commits: VecDeque::new(), bytes: 0, most_commits, most_bytes }
    }

    /// The revision above which every commit is held.
    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    /// Adds the commit that follows the newest; the oldest are dropped. The newest is always kept.
    pub(crate) fn push(&mut self, commit: Arc<Commit>) {
        self.bytes = self.bytes.saturating_add(commit.size());
        self.commits.push_back(commit);
        while self.commits.len() > 1
            && (self.commits.len() > self.most_commits || self.bytes > self.most_bytes)
        {
            self.drop_oldest();
        }
    }

    /// Forgets the commits up to and including `before`.
    pub(crate) fn compact(&mut self, before: Revision) {
        while self.floor < before && self.drop_oldest() {}
        self.floor = self.floor.max(before);
    }

    /// The commits above `revision`, ascending; `None` if some are no longer held.
    pub(crate) fn above(&self, revision: Revision) -> Option<impl Iterator<Item = &Arc<Commit>>> {
        let skip = revision.0.checked_sub(self.floor.0)?;
        Some(self.commits.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)))
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.commits.pop_front() else { return false };
        self.bytes = self.bytes.saturating_sub(oldest.size());
        self.floor = oldest.revision;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(revision: u64) -> Arc<Commit> {
        Arc::new(Commit { revision: Revision(revision), edits: Vec::new() })
    }

    fn above(history: &History, revision: u64) -> Option<Vec<u64>> {
        let commits = history.above(Revision(revision))?;
        Some(commits.map(|commit| commit.revision.0).collect())
    }

    #[test]
    fn the_oldest_make_room_and_are_known_to_be_gone() {
        let mut history = History::new(Revision(4), 2, u64::MAX);
        for revision in 5..=7 {
            history.push(commit(revision));
        }
        assert_eq!(above(&history, 4), None);
        assert_eq!(above(&history, 5), Some(vec![6, 7]));
        assert_eq!(above(&history, 7), Some(vec![]));
        assert_eq!(above(&history, 9), Some(vec![]));
    }

    #[test]
    fn compaction_forgets_up_to_and_including() {
        let mut history = History::new(Revision(0), 9, u64::MAX);
        for revision in 1..=3 {
            history.push(commit(revision));
        }
        history.compact(Revision(2));
        assert_eq!((above(&history, 1), above(&history, 2)), (None, Some(vec![3])));
    }
}
