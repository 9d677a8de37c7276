//! Reading a page, now or at an earlier revision. Owns the merge of today's entries with what was reverted.

use std::collections::BTreeMap;
use std::collections::btree_map::IntoIter;
use std::iter::Peekable;

use bytes::Bytes;

use crate::entry::{Entry, Page, Revision};
use crate::error::StoreError;
use crate::history::Commit;
use crate::range::Range;

/// Most entries of one page, whatever limit is requested: a page is copied in one go, and nothing
/// may hold a view of the store for long.
pub const MAX_PAGE: usize = 10_000;

/// Size of keys and values, in bytes, at which a page ends, whatever limit is requested: 8 MiB. A page always
/// holds at least one entry if there is one.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// Refuses a revision that is not kept.
pub(crate) fn check_kept(asked: Revision, oldest: Revision, current: Revision) -> Result<(), StoreError> {
    if asked < oldest {
        Err(StoreError::Compacted { oldest })
    } else if asked > current {
        Err(StoreError::Future { current })
    } else {
        Ok(())
    }
}

/// How the keys of a range were before some commits.
#[derive(Debug, Default)]
pub(crate) struct RevertedKeys(BTreeMap<Bytes, Option<Entry>>);

impl RevertedKeys {
    /// Reverts one more commit. Commits are given oldest first: the first one to touch a key wins.
    pub(crate) fn undo(&mut self, range: &Range, commit: &Commit) {
        for edit in commit.edits.iter().filter(|edit| range.contains(&edit.key)) {
            self.0.entry(edit.key.clone()).or_insert_with(|| edit.before.clone());
        }
    }
}

/// The first entries of a range as of `revision`: today's, given in key order, with `undone` applied over them.
pub(crate) fn page<E>(
    today: impl Iterator<Item = Result<Entry, E>>,
    undone: RevertedKeys,
    revision: Revision,
    limit: usize,
) -> Result<Page, E> {
    let merged = MergedEntries { today: today.peekable(), undone: undone.0.into_iter().peekable() };
    let mut page = Page { entries: Vec::new(), revision, more: false };
    let mut bytes = 0_usize;
    for entry in merged {
        let entry = entry?;
        if page.entries.len() >= limit.min(MAX_PAGE) || bytes >= MAX_PAGE_BYTES {
            page.more = true;
            break;
        }
        bytes = bytes.saturating_add(entry.size());
        page.entries.push(entry);
    }
    Ok(page)
}

struct MergedEntries<E, T: Iterator<Item = Result<Entry, E>>> {
    today: Peekable<T>,
    undone: Peekable<IntoIter<Bytes, Option<Entry>>>,
}

impl<E, T: Iterator<Item = Result<Entry, E>>> Iterator for MergedEntries<E, T> {
    type Item = Result<Entry, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((undone, _)) = self.undone.peek() else { return self.today.next() };
            match self.today.peek() {
                Some(Err(_)) => return self.today.next(),
                Some(Ok(entry)) if entry.key < undone => return self.today.next(),
                Some(Ok(entry)) if entry.key == undone => drop(self.today.next()),
                Some(Ok(_)) | None => {}
            }
            let (_, before) = self.undone.next()?;
            if let Some(entry) = before {
                return Some(Ok(entry));
            }
        }
    }
}
