//! Looks at a whole store and changes nothing in it: the files are opened under changes that stay in memory, as a start would
//! open them, and then every row is read.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bytes::Bytes;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::directory::Directory;
use super::fault::FileFault;
use super::file;
use super::record;
use super::schema::{BOUND, LEASES, LOG, META, META_FLOOR, META_LEASE, STATE};
use crate::check::{StoreCheck, StoreFinding};
use crate::entry::{Entry, Revision};
use crate::error::OpenError;
use crate::history::Commit;

/// Most findings that are told: who has so many needs no more.
const TOLD: usize = 100;

/// Looks at the store in `dir`, which nobody may have open.
pub(crate) fn check(dir: &Path) -> Result<StoreCheck, OpenError> {
    let directory = Directory::look(dir)?;
    let mut check = StoreCheck {
        revision: Revision(0),
        commits: 0,
        groups: 0,
        is_torn: false,
        cut_copy: directory.cut_copy(),
        entries: Vec::new(),
        findings: Vec::new(),
    };
    let files = match file::open_to_look(&directory) {
        Ok(files) => files,
        Err(OpenError::Corrupt { file, reason }) => {
            check.findings.push(StoreFinding { file, what: reason });
            return Ok(check);
        }
        Err(error) => return Err(error),
    };
    (check.groups, check.is_torn) = (files.replayed, files.cut.is_some());
    let mut look = Look::default();
    let looked = catch_unwind(AssertUnwindSafe(|| look.all(&files.database)));
    // A library that panicked may panic again when it is dropped.
    drop(catch_unwind(AssertUnwindSafe(|| drop(files))));
    if let Err(fault) = looked.unwrap_or_else(|panic| Err(FileFault::panicked(&*panic))) {
        look.find(format!("it cannot be read to its end: {fault:?}"));
    }
    (check.revision, check.commits, check.entries) = (look.revision, look.commits, look.entries);
    let file = directory.file();
    check.findings.extend(look.findings.into_iter().map(|what| StoreFinding { file: file.clone(), what }));
    Ok(check)
}

/// What was seen so far.
#[derive(Debug, Default)]
struct Look {
    revision: Revision,
    commits: u64,
    entries: Vec<Entry>,
    findings: Vec<String>,
    /// Keys whose records cannot be read, of which nothing more is said.
    damaged: BTreeSet<Bytes>,
}

impl Look {
    fn find(&mut self, what: String) {
        if self.findings.len() < TOLD {
            self.findings.push(what);
        } else if self.findings.len() == TOLD {
            self.findings.push("there is more that is wrong".to_owned());
        }
    }

    fn all(&mut self, database: &Database) -> Result<(), FileFault> {
        let txn = database.begin_read()?;
        for row in txn.open_table(STATE)?.iter()? {
            let (key, row) = row?;
            let key = Bytes::copy_from_slice(key.value());
            match record::read_entry(key.clone(), row.value()) {
                Ok(entry) => self.entries.push(entry),
                Err(damaged) => {
                    self.damaged.insert(key);
                    self.find(damaged.to_string());
                }
            }
        }
        self.leases(&txn)?;
        self.log(&txn)
    }

    /// What is bound to leases is what the entries say, and each of these leases is one that was granted.
    fn leases(&mut self, txn: &ReadTransaction) -> Result<(), FileFault> {
        let granted = txn.open_table(LEASES)?;
        let last = txn.open_table(META)?.get(META_LEASE)?.map_or(0, |row| row.value());
        if let Some((lease, _)) = granted.last()?
            && lease.value() > last
        {
            self.find(format!("lease {} is there, and the last that was granted is {last}", lease.value()));
        }
        let mut bound = BTreeSet::new();
        for row in txn.open_table(BOUND)?.iter()? {
            let (row, _) = row?;
            let (lease, key) = row.value();
            bound.insert((lease, Bytes::copy_from_slice(key)));
        }
        let mut wrong = Vec::new();
        for entry in &self.entries {
            let Some(lease) = entry.lease else { continue };
            let key = entry.key.escape_ascii();
            if !bound.remove(&(lease.0, entry.key.clone())) {
                wrong.push(format!("key \"{key}\" is not among those of its lease {lease}"));
            }
            if granted.get(lease.0)?.is_none() {
                wrong.push(format!(
                    "key \"{key}\" is bound to lease {lease}, which was not granted or has ended"
                ));
            }
        }
        let beyond = bound.iter().filter(|(_, key)| !self.damaged.contains(key));
        wrong.extend(beyond.map(|(lease, key)| {
            format!("key \"{}\" is among those of lease {lease} and is not bound to it", key.escape_ascii())
        }));
        wrong.into_iter().for_each(|what| self.find(what));
        Ok(())
    }

    /// Undoes the log from the present back: each commit left what the one after it found.
    fn log(&mut self, txn: &ReadTransaction) -> Result<(), FileFault> {
        let floor = txn.open_table(META)?.get(META_FLOOR)?.map_or(0, |row| row.value());
        let mut state: BTreeMap<Bytes, Entry> =
            self.entries.iter().map(|entry| (entry.key.clone(), entry.clone())).collect();
        let (mut newer, mut newer_sum) = (None, None);
        for row in txn.open_table(LOG)?.iter()?.rev() {
            let (revision, row) = row?;
            let revision = Revision(revision.value());
            self.revision = self.revision.max(revision);
            if let Some(newer) = newer.filter(|newer: &Revision| revision.next() != *newer) {
                self.find(format!("between the commits {revision} and {newer} there is a gap"));
            }
            newer = Some(revision);
            let read = record::read_commit(revision, row.value());
            let read = read.and_then(|commit| Ok((commit, record::read_logged(revision, row.value())?)));
            let (commit, sum) = match read {
                Ok(read) => read,
                Err(damaged) => {
                    // What was before it is not known any more.
                    self.find(damaged.to_string());
                    return Ok(());
                }
            };
            if newer_sum.is_some_and(|before: Option<u64>| before != Some(sum)) {
                self.find(format!("the sum of sizes in the log is wrong behind commit {revision}"));
            }
            newer_sum = Some(sum.checked_sub(commit.size()));
            self.undo(&commit, &mut state);
            self.commits = self.commits.saturating_add(1);
        }
        if newer.is_some_and(|oldest| oldest.0 > floor.saturating_add(1)) {
            self.find(format!("the log does not reach back to the oldest revision that is kept, {floor}"));
        }
        self.revision = self.revision.max(Revision(floor));
        Ok(())
    }

    fn undo(&mut self, commit: &Commit, state: &mut BTreeMap<Bytes, Entry>) {
        for edit in commit.edits.iter().rev() {
            if self.damaged.contains(&edit.key) {
                continue;
            }
            if state.get(&edit.key) != edit.after.as_ref() {
                let (key, revision) = (edit.key.escape_ascii().to_string(), commit.revision);
                self.find(format!(
                    "key \"{key}\" is not what commit {revision} and those after it made of it"
                ));
                self.damaged.insert(edit.key.clone());
            }
            match &edit.before {
                Some(before) => drop(state.insert(edit.key.clone(), before.clone())),
                None => drop(state.remove(&edit.key)),
            }
        }
    }
}
