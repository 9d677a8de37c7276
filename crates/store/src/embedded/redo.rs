//! The effects of a group as the journal keeps them: enough to replay it, and idempotent.

use bytes::Bytes;

use super::fault::FileFault;
use super::record::{self, ByteReader, DamagedRecord};
use super::schema::META_LEASE;
use super::tables::Tables;
use crate::entry::{LeaseId, Revision};
use crate::history::{Commit, Edit};
use crate::judge::TxnState;

const COMMIT: u8 = 1;
const GRANT: u8 = 2;
const END: u8 = 3;
const FLOOR: u8 = 4;

/// The effects of one group, in order.
#[derive(Debug, Default)]
pub(super) struct Redo(Vec<u8>);

impl Redo {
    /// The journal's payload; empty if nothing was done.
    pub(super) fn payload(&self) -> &[u8] {
        &self.0
    }

    /// A commit. What it replaced is found again in the state it meets.
    pub(super) fn commit(&mut self, commit: &Commit) {
        self.number(COMMIT, commit.revision.0);
        record::write_count(&mut self.0, commit.edits.len());
        for Edit { key, after, .. } in &commit.edits {
            record::write_bytes(&mut self.0, key);
            record::write_option(&mut self.0, after.as_ref());
        }
    }

    /// A lease granted for a time in milliseconds.
    pub(super) fn grant(&mut self, lease: u64, ttl_ms: u64) {
        self.number(GRANT, lease);
        self.0.extend_from_slice(&ttl_ms.to_le_bytes());
    }

    /// A lease ended. The deletes of its keys are a commit of their own.
    pub(super) fn end(&mut self, lease: LeaseId) {
        self.number(END, lease.0);
    }

    /// History compacted.
    pub(super) fn floor(&mut self, floor: Revision) {
        self.number(FLOOR, floor.0);
    }

    fn number(&mut self, what: u8, number: u64) {
        self.0.push(what);
        self.0.extend_from_slice(&number.to_le_bytes());
    }
}

/// Replays the effects in `payload` that `tables` do not show already.
pub(super) fn again(payload: &[u8], tables: &mut Tables<'_>) -> Result<(), FileFault> {
    let mut input = ByteReader::new(payload);
    while !input.is_over() {
        let (what, number) = (input.byte()?, input.number()?);
        match what {
            COMMIT => commit_again(&mut input, Revision(number), tables)?,
            GRANT => {
                let ttl_ms = input.number()?;
                if tables.last_lease()? < number {
                    tables.meta.insert(META_LEASE, number)?;
                    tables.granted.insert(number, ttl_ms)?;
                }
            }
            END => drop(tables.granted.remove(number)?),
            FLOOR => tables.raise_floor(Revision(number))?,
            _ => return Err(DamagedRecord::Part.into()),
        }
    }
    Ok(())
}

fn commit_again(
    input: &mut ByteReader<'_>,
    revision: Revision,
    tables: &mut Tables<'_>,
) -> Result<(), FileFault> {
    let mut edits = Vec::new();
    for _ in 0..input.count()? {
        let key: Bytes = input.bytes()?;
        let after = input.option(&key)?;
        edits.push(Edit { before: tables.entry(&key)?, key, after });
    }
    if revision <= tables.revision {
        return Ok(());
    }
    if revision != tables.revision.next() {
        return Err(DamagedRecord::Part.into());
    }
    for edit in &edits {
        tables.apply(edit)?;
    }
    tables.append(&Commit { revision, edits })
}
