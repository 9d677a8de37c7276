//! The tables of the store's file inside of one transaction, to write. Owns how an edit changes them.

use bytes::Bytes;
use redb::{ReadableTable, Table, WriteTransaction};

use super::fault::FileFault;
use super::record;
use super::schema::{BOUND, LEASES, LOG, META, META_FLOOR, META_LEASE, STATE};
use crate::entry::{Entry, LeaseId, Revision};
use crate::history::{Commit, Edit};
use crate::judge;
use crate::lease::Leases;

/// The tables of one transaction, and where the log stands in it.
pub(super) struct Tables<'t> {
    state: Table<'t, &'static [u8], &'static [u8]>,
    pub(super) log: Table<'t, u64, &'static [u8]>,
    pub(super) granted: Table<'t, u64, u64>,
    bound: Table<'t, (u64, &'static [u8]), ()>,
    pub(super) meta: Table<'t, &'static str, u64>,
    leases: &'t Leases,
    pub(super) revision: Revision,
    pub(super) floor: Revision,
    pub(super) logged: u64,
    row: Vec<u8>,
}

impl<'t> Tables<'t> {
    /// Opens them.
    pub(super) fn open(txn: &'t WriteTransaction, leases: &'t Leases) -> Result<Self, FileFault> {
        let (log, meta) = (txn.open_table(LOG)?, txn.open_table(META)?);
        let floor = Revision(meta.get(META_FLOOR)?.map_or(0, |row| row.value()));
        let (revision, logged) = match log.last()? {
            Some((revision, row)) => {
                let revision = Revision(revision.value());
                (revision, record::read_logged(revision, row.value())?)
            }
            None => (floor, 0),
        };
        Ok(Self {
            state: txn.open_table(STATE)?,
            log,
            granted: txn.open_table(LEASES)?,
            bound: txn.open_table(BOUND)?,
            meta,
            leases,
            revision: revision.max(floor),
            floor,
            logged,
            row: Vec::new(),
        })
    }

    /// Makes one edit the present.
    pub(super) fn apply(&mut self, edit: &Edit) -> Result<(), FileFault> {
        let key = &*edit.key;
        let lease = |entry: &Option<Entry>| entry.as_ref().and_then(|entry| entry.lease);
        let (old, new) = (lease(&edit.before), lease(&edit.after));
        if old != new {
            if let Some(old) = old {
                self.bound.remove((old.0, key))?;
            }
            if let Some(new) = new {
                self.bound.insert((new.0, key), ())?;
            }
        }
        match &edit.after {
            Some(entry) => {
                self.row.clear();
                record::write_entry(&mut self.row, entry);
                self.state.insert(key, &*self.row)?;
            }
            None => {
                self.state.remove(key)?;
            }
        }
        Ok(())
    }

    /// Logs a commit whose edits were made.
    pub(super) fn append(&mut self, commit: &Commit) -> Result<(), FileFault> {
        self.revision = commit.revision;
        self.logged = self.logged.saturating_add(commit.size());
        self.row.clear();
        record::write_commit(&mut self.row, commit, self.logged);
        self.log.insert(commit.revision.0, &*self.row)?;
        Ok(())
    }

    /// The edits that delete every key bound to `lease`, in key order.
    pub(super) fn deletes(&self, lease: LeaseId) -> Result<Vec<Edit>, FileFault> {
        let mut edits = Vec::new();
        for row in self.bound.range((lease.0, &[][..])..(lease.0.saturating_add(1), &[][..]))? {
            let (bound, ()) = row.map(|(bound, _)| (bound, ()))?;
            let key = Bytes::copy_from_slice(bound.value().1);
            let before = judge::TxnState::entry(self, &key)?;
            edits.push(Edit { key, before, after: None });
        }
        Ok(edits)
    }

    /// The last lease granted, 0 if none was.
    pub(super) fn last_lease(&self) -> Result<u64, FileFault> {
        Ok(self.meta.get(META_LEASE)?.map_or(0, |row| row.value()))
    }

    /// Drops history below `floor`.
    pub(super) fn raise_floor(&mut self, floor: Revision) -> Result<(), FileFault> {
        self.floor = self.floor.max(floor);
        self.meta.insert(META_FLOOR, self.floor.0)?;
        Ok(())
    }

    /// The oldest row of the log and its running sum.
    pub(super) fn oldest(&self) -> Result<Option<(Revision, u64)>, FileFault> {
        let Some((revision, row)) = self.log.first()? else { return Ok(None) };
        let revision = Revision(revision.value());
        Ok(Some((revision, record::read_logged(revision, row.value())?)))
    }
}

impl judge::TxnState for Tables<'_> {
    type Error = FileFault;

    fn entry(&self, key: &[u8]) -> Result<Option<Entry>, FileFault> {
        let Some(row) = self.state.get(key)? else { return Ok(None) };
        Ok(Some(record::read_entry(Bytes::copy_from_slice(key), row.value())?))
    }

    fn is_alive(&self, lease: LeaseId) -> Result<bool, FileFault> {
        // The table knows of a lease that ended earlier in this group, the clock of one that ran out.
        Ok(self.leases.is_alive(lease) && self.granted.get(lease.0)?.is_some())
    }
}
