//! One group: requests that become durable together. Owns what each of them does to the tables.

use std::sync::Arc;
use std::time::Duration;

use redb::{Database, Durability};

use super::fault::Fault;
use super::journal::Journal;
use super::redo::Redo;
use super::request::{Answer, Request};
use super::schema::META_LEASE;
use super::tables::Tables;
use crate::entry::{LeaseId, Revision};
use crate::error::StoreError;
use crate::history::{Commit, Edit, RETAINED_BYTES, RETAINED_COMMITS};
use crate::judge::{Verdict, judge};
use crate::lease::Leases;
use crate::txn::{Outcome, Txn};

/// The log rows one group drops at most: a few milliseconds of work, and more than groups add on average.
const TRIM_ROWS: u64 = 512;

/// What a group will have done once it is durable.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// One answer per request, in order.
    pub(super) answers: Vec<Answer>,
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
}

impl Group {
    /// Carries out `requests`, durably by one append to `journal`, and then shows readers the result. After a
    /// fault, `self` says what was tried.
    pub(super) fn write(
        &mut self,
        database: &Database,
        journal: &mut Journal,
        leases: &Leases,
        requests: &[Request],
    ) -> Result<(), Fault> {
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
        }
        if self.changed {
            txn.commit()?
        } else {
            txn.abort()?
        }
        Ok(())
    }

    fn answer(&mut self, tables: &mut Tables<'_>, request: &Request) -> Result<Answer, Fault> {
        match request {
            Request::Commit { txn, .. } => self.commit(tables, txn),
            Request::Grant { ttl, .. } => self.grant(tables, *ttl),
            Request::Revoke { lease, .. } => self.revoke(tables, *lease),
            Request::Compact { before, .. } => self.compact(tables, *before),
            Request::Stop => Ok(Answer::Done),
        }
    }

    fn commit(&mut self, tables: &mut Tables<'_>, txn: &Txn) -> Result<Answer, Fault> {
        let revision = tables.revision.next();
        Ok(match judge(txn, revision, tables)? {
            Verdict::Change(edits) => {
                self.apply(tables, edits)?;
                Answer::Outcome(Outcome::Committed(revision))
            }
            Verdict::Nothing => Answer::Outcome(Outcome::Committed(tables.revision)),
            Verdict::Conflict(failed) => {
                Answer::Outcome(Outcome::Conflict { revision: tables.revision, failed })
            }
            Verdict::LeaseGone => Answer::No(StoreError::LeaseGone),
        })
    }

    fn apply(&mut self, tables: &mut Tables<'_>, edits: Vec<Edit>) -> Result<(), Fault> {
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

    fn grant(&mut self, tables: &mut Tables<'_>, ttl: Duration) -> Result<Answer, Fault> {
        let lease = tables.last_lease()?.saturating_add(1);
        tables.meta.insert(META_LEASE, lease)?;
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        tables.granted.insert(lease, millis)?;
        self.redo.grant(lease, millis);
        self.changed = true;
        self.granted.push((LeaseId(lease), ttl));
        Ok(Answer::Lease(LeaseId(lease)))
    }

    fn revoke(&mut self, tables: &mut Tables<'_>, lease: LeaseId) -> Result<Answer, Fault> {
        if tables.granted.remove(lease.0)?.is_none() {
            return Ok(Answer::No(StoreError::LeaseGone));
        }
        self.changed = true;
        self.ended.push(lease);
        self.redo.end(lease);
        let edits = tables.deletes(lease)?;
        if !edits.is_empty() {
            self.apply(tables, edits)?;
        }
        Ok(Answer::Done)
    }

    fn compact(&mut self, tables: &mut Tables<'_>, before: Revision) -> Result<Answer, Fault> {
        if before > tables.revision {
            return Ok(Answer::No(StoreError::Future { current: tables.revision }));
        }
        if before > tables.floor {
            self.raise_floor(tables, before)?;
        }
        Ok(Answer::Done)
    }

    /// Raises the floor when the log is over its limits, and drops some rows below the floor.
    fn trim(&mut self, tables: &mut Tables<'_>) -> Result<(), Fault> {
        let Some((oldest, before_oldest)) = tables.oldest()? else { return Ok(()) };
        let kept = tables.revision.0.saturating_sub(tables.floor.0);
        let bytes = tables.logged.saturating_sub(before_oldest);
        if kept >= RETAINED_COMMITS.saturating_add(TRIM_ROWS) || bytes > RETAINED_BYTES {
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

    fn raise_floor(&mut self, tables: &mut Tables<'_>, floor: Revision) -> Result<(), Fault> {
        tables.raise_floor(floor)?;
        self.redo.floor(floor);
        self.changed = true;
        Ok(())
    }
}
