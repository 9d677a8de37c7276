//! One group: requests that become durable together. Owns what each of them does to the tables.

use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::fail::{self, FailPoint};
use redb::{Database, Durability};

use super::fault::FileFault;
use super::journal::Journal;
use super::redo::Redo;
use super::request::{WriterAnswer, WriterRequest};
use super::schema::META_LEASE;
use super::tables::Tables;
use crate::entry::{LeaseId, Revision};
use crate::error::StoreError;
use crate::history::{Commit, Edit};
use crate::judge::{TxnVerdict, judge};
use crate::lease::Leases;
use crate::limits::{RETAINED_BYTES, RETAINED_COMMITS};
use crate::txn::{CommitOutcome, Txn};

/// Most log rows one group drops: a few milliseconds of work, and more than groups add on average.
const TRIM_ROWS: u64 = 512;

/// How much history the log holds before the oldest is dropped.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryLimits {
    pub(super) commits: u64,
    pub(super) bytes: u64,
}

/// What the contract promises.
pub(super) const KEPT: HistoryLimits = HistoryLimits { commits: RETAINED_COMMITS, bytes: RETAINED_BYTES };

/// The effects of a group once it is durable.
#[derive(Debug)]
pub(super) struct CommitGroup {
    /// One answer per request, in order.
    pub(super) answers: Vec<WriterAnswer>,
    /// The commits, ascending.
    pub(super) commits: Vec<Arc<Commit>>,
    /// Leases granted.
    pub(super) granted: Vec<(LeaseId, Duration)>,
    /// Leases ended.
    pub(super) ended: Vec<LeaseId>,
    /// Whether the log holds more rows to drop.
    pub(super) untrimmed: bool,
    /// Whether it is durable: then it stands, whatever happens afterwards.
    pub(super) durable: bool,
    redo: Redo,
    changed: bool,
    kept: HistoryLimits,
}

impl CommitGroup {
    /// A group without effects.
    pub(super) fn new(kept: HistoryLimits) -> Self {
        Self {
            answers: Vec::new(),
            commits: Vec::new(),
            granted: Vec::new(),
            ended: Vec::new(),
            untrimmed: false,
            durable: false,
            redo: Redo::default(),
            changed: false,
            kept,
        }
    }

    /// Executes `requests`, durably by one append to `journal`, and then shows readers the result. After a
    /// fault, `self` says what was tried.
    pub(super) fn write(
        &mut self,
        database: &Database,
        journal: &mut Journal,
        leases: &Leases,
        requests: &[WriterRequest],
    ) -> Result<(), FileFault> {
        let mut txn = database.begin_write()?;
        txn.set_durability(Durability::None)?;
        let mut tables = Tables::open(&txn, leases)?;
        for request in requests {
            let answer = self.answer(&mut tables, request)?;
            self.answers.push(answer);
        }
        self.trim(&mut tables)?;
        drop(tables);
        if !self.redo.payload().is_empty() {
            if let Err(fault) = journal.append(self.redo.payload()) {
                txn.abort()?;
                return Err(fault);
            }
            self.durable = true;
            fail::pass(FailPoint::JournalSynced);
        }
        if self.changed {
            txn.commit()?
        } else {
            txn.abort()?
        }
        Ok(())
    }

    fn answer(
        &mut self,
        tables: &mut Tables<'_>,
        request: &WriterRequest,
    ) -> Result<WriterAnswer, FileFault> {
        match request {
            WriterRequest::Commit { txn, .. } => self.commit(tables, txn),
            WriterRequest::Grant { ttl, .. } => self.grant(tables, *ttl),
            WriterRequest::Revoke { lease, .. } => self.revoke(tables, *lease),
            WriterRequest::Compact { before, .. } => self.compact(tables, *before),
            WriterRequest::Reopen { .. } | WriterRequest::Stop => Ok(WriterAnswer::Done),
        }
    }

    fn commit(&mut self, tables: &mut Tables<'_>, txn: &Txn) -> Result<WriterAnswer, FileFault> {
        let revision = tables.revision.next();
        Ok(match judge(txn, revision, tables)? {
            TxnVerdict::Change(edits) => {
                self.apply(tables, edits)?;
                WriterAnswer::Outcome(CommitOutcome::Committed(revision))
            }
            TxnVerdict::Nothing => WriterAnswer::Outcome(CommitOutcome::Committed(tables.revision)),
            TxnVerdict::Conflict(failed) => {
                WriterAnswer::Outcome(CommitOutcome::Conflict { revision: tables.revision, failed })
            }
            TxnVerdict::LeaseGone => WriterAnswer::No(StoreError::LeaseGone),
        })
    }

    fn apply(&mut self, tables: &mut Tables<'_>, edits: Vec<Edit>) -> Result<(), FileFault> {
        let commit = Commit { revision: tables.revision.next(), edits };
        for edit in &commit.edits {
            tables.apply(edit)?;
        }
        tables.append(&commit)?;
        self.redo.commit(&commit);
        self.changed = true;
        self.commits.push(Arc::new(commit));
        Ok(())
    }

    fn grant(&mut self, tables: &mut Tables<'_>, ttl: Duration) -> Result<WriterAnswer, FileFault> {
        let lease = tables.last_lease()?.saturating_add(1);
        tables.meta.insert(META_LEASE, lease)?;
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        tables.granted.insert(lease, millis)?;
        self.redo.grant(lease, millis);
        self.changed = true;
        self.granted.push((LeaseId(lease), ttl));
        Ok(WriterAnswer::Lease(LeaseId(lease)))
    }

    fn revoke(&mut self, tables: &mut Tables<'_>, lease: LeaseId) -> Result<WriterAnswer, FileFault> {
        if tables.granted.remove(lease.0)?.is_none() {
            return Ok(WriterAnswer::No(StoreError::LeaseGone));
        }
        self.changed = true;
        self.ended.push(lease);
        self.redo.end(lease);
        let edits = tables.deletes(lease)?;
        if !edits.is_empty() {
            self.apply(tables, edits)?;
        }
        Ok(WriterAnswer::Done)
    }

    fn compact(&mut self, tables: &mut Tables<'_>, before: Revision) -> Result<WriterAnswer, FileFault> {
        if before > tables.revision {
            return Ok(WriterAnswer::No(StoreError::Future { current: tables.revision }));
        }
        if before > tables.floor {
            self.raise_floor(tables, before)?;
        }
        Ok(WriterAnswer::Done)
    }

    /// Raises the floor when the log is over its limits, and drops some rows below the floor.
    fn trim(&mut self, tables: &mut Tables<'_>) -> Result<(), FileFault> {
        let Some((oldest, before_oldest)) = tables.oldest()? else { return Ok(()) };
        let kept = tables.revision.0.saturating_sub(tables.floor.0);
        let bytes = tables.logged.saturating_sub(before_oldest);
        if kept >= self.kept.commits.saturating_add(TRIM_ROWS) || bytes > self.kept.bytes {
            let floor = tables.floor.0.saturating_add(TRIM_ROWS);
            // The newest commit is kept, whatever its size.
            self.raise_floor(tables, Revision(floor.min(tables.revision.0.saturating_sub(1))))?;
        }
        if oldest <= tables.floor {
            let up_to = tables.floor.0.min(oldest.0.saturating_add(TRIM_ROWS));
            tables.log.retain_in(..=up_to, |_, _| false)?;
            self.changed = true;
            self.untrimmed = up_to < tables.floor.0;
        }
        Ok(())
    }

    fn raise_floor(&mut self, tables: &mut Tables<'_>, floor: Revision) -> Result<(), FileFault> {
        tables.raise_floor(floor)?;
        self.redo.floor(floor);
        self.changed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::ReadableTableMetadata;
    use tokio::sync::oneshot;

    use super::super::directory::Directory;
    use super::super::file;
    use super::super::schema::LOG;
    use super::super::view::View;
    use super::*;
    use crate::txn::Op;

    fn put(number: u64) -> WriterRequest {
        let op = Op::Put { key: "k".into(), value: number.to_string().into(), lease: None };
        let (reply, _) = oneshot::channel();
        WriterRequest::Commit { txn: Txn { compares: vec![], ops: vec![op] }, reply }
    }

    /// Writes 4,000 commits and gives how many rows the log has left and how it answers a read of the start.
    fn written(kept: HistoryLimits) -> (u64, Result<(), StoreError>) {
        let dir = tempfile::tempdir().unwrap();
        let opened = file::open(&Directory::lock(dir.path()).unwrap()).unwrap();
        let (database, mut journal) = (opened.database, opened.journal);
        let leases = Leases::default();
        for first in (0..4_000).step_by(500) {
            let requests: Vec<_> = (first..first + 500).map(put).collect();
            CommitGroup::new(kept).write(&database, &mut journal, &leases, &requests).unwrap();
        }
        let txn = database.begin_write().unwrap();
        let rows = txn.open_table(LOG).unwrap().len().unwrap();
        let view = View::of(&database).unwrap();
        assert_eq!(view.revision(), Revision(4_000));
        (rows, view.check_kept(Revision(0)))
    }

    #[test]
    fn the_oldest_history_gives_way_to_a_number_of_commits() {
        let (rows, start) = written(HistoryLimits { commits: 600, bytes: u64::MAX });
        assert!((600..=600 + 2 * TRIM_ROWS).contains(&rows), "{rows} rows");
        assert!(matches!(start, Err(StoreError::Compacted { .. })), "{start:?}");
    }

    #[test]
    fn the_oldest_history_gives_way_to_a_number_of_bytes() {
        let (rows, start) = written(HistoryLimits { commits: u64::MAX, bytes: 9_000 });
        assert!((1..=2_000).contains(&rows), "{rows} rows");
        assert!(matches!(start, Err(StoreError::Compacted { .. })), "{start:?}");
    }

    #[test]
    fn history_within_its_limits_is_whole() {
        assert_eq!(written(KEPT), (4_000, Ok(())));
    }
}
