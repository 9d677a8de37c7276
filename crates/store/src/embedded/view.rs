//! The store's file as of one commit, to read. Owns how much one look copies out.

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase};

use super::fault::FileFault;
use super::record;
use super::schema::{LOG, META, META_FLOOR, STATE};
use crate::as_of::{self, RevertedKeys};
use crate::entry::{Entry, Page, Revision};
use crate::error::StoreError;
use crate::history::Commit;
use crate::range::Range;

/// The result of a read: a fault of the file, or the contract's own refusal.
type Read<T> = Result<Result<T, StoreError>, FileFault>;

/// The log rows one read of a replay takes, so that no view of the file lives long.
const REPLAY_ROWS: usize = 1_000;
/// The bytes behind which such a read ends.
const REPLAY_BYTES: u64 = 4 << 20;

/// The file as of one commit. Short-lived: while it is held, no page it can see is reused.
pub(super) struct View {
    state: ReadOnlyTable<&'static [u8], &'static [u8]>,
    log: ReadOnlyTable<u64, &'static [u8]>,
    floor: Revision,
    revision: Revision,
}

impl View {
    /// The newest durable commit.
    pub(super) fn of(database: &Database) -> Result<Self, FileFault> {
        use redb::ReadableTable;
        let txn = database.begin_read()?;
        let (state, log, meta) = (txn.open_table(STATE)?, txn.open_table(LOG)?, txn.open_table(META)?);
        let floor = Revision(meta.get(META_FLOOR)?.map_or(0, |row| row.value()));
        let newest = log.last()?.map_or(0, |(revision, _)| revision.value());
        Ok(Self { state, log, floor, revision: floor.max(Revision(newest)) })
    }

    /// The newest revision.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Refuses a revision that is not kept.
    pub(super) fn check_kept(&self, asked: Revision) -> Result<(), StoreError> {
        as_of::check_kept(asked, self.floor, self.revision)
    }

    /// A page of `range`.
    pub(super) fn page(&self, range: &Range, at: Option<Revision>, limit: usize) -> Read<Page> {
        let revision = at.unwrap_or(self.revision);
        if let Err(refused) = self.check_kept(revision) {
            return Ok(Err(refused));
        }
        let mut undone = RevertedKeys::default();
        for row in self.log.range(revision.next().0..)? {
            let (revision, row) = row?;
            undone.undo(range, &record::read_commit(Revision(revision.value()), row.value())?);
        }
        Ok(Ok(as_of::page(self.entries(range)?, undone, revision, limit)?))
    }

    /// Commits above `after`, ascending: a bounded number, and at least one if there is one.
    pub(super) fn commits(&self, after: Revision) -> Read<Vec<Commit>> {
        if let Err(refused) = self.check_kept(after) {
            return Ok(Err(refused));
        }
        let (mut commits, mut bytes) = (Vec::new(), 0_u64);
        for row in self.log.range(after.next().0..)?.take(REPLAY_ROWS) {
            let (revision, row) = row?;
            let commit = record::read_commit(Revision(revision.value()), row.value())?;
            bytes = bytes.saturating_add(commit.size());
            commits.push(commit);
            if bytes >= REPLAY_BYTES {
                break;
            }
        }
        Ok(Ok(commits))
    }

    fn entries(&self, range: &Range) -> Result<impl Iterator<Item = Result<Entry, FileFault>>, FileFault> {
        let found = if range.is_empty() {
            None
        } else if range.end.is_empty() {
            Some(self.state.range::<&[u8]>(&*range.start..)?)
        } else {
            Some(self.state.range::<&[u8]>(&*range.start..&*range.end)?)
        };
        Ok(found.into_iter().flatten().map(|row| {
            let (key, row) = row?;
            Ok(record::read_entry(Bytes::copy_from_slice(key.value()), row.value())?)
        }))
    }
}
