//! Making the database durable, so that the journal can be restarted; and bringing it up to its journal.

use bellwether_rt::fail::{self, FailPoint};
use redb::{Database, Durability};

use super::disk::ReservedSpace;
use super::fault::FileFault;
use super::journal::Journal;
use super::tables::Tables;
use super::{meta, redo};
use crate::lease::Leases;

/// Replays a group: shown to readers, durable in the journal.
pub(super) fn replay(database: &Database, payload: &[u8]) -> Result<(), FileFault> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::None)?;
    redo::again(payload, &mut Tables::open(&txn, &Leases::default())?)?;
    Ok(txn.commit()?)
}

/// How the database is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syncs {
    /// All at once; after a power cut in it, checksums tell whether all of it is there.
    One,
    /// First everything new and then what names it. For a disk that failed before: checksums are not needed then.
    Two,
}

/// Makes the file hold all that the database shows, and restarts the journal.
pub(super) fn make_durable(
    database: &Database,
    journal: &mut Journal,
    room: &mut ReservedSpace,
    syncs: Syncs,
) -> Result<(), FileFault> {
    room.take()?;
    let mark = journal.next_mark()?;
    let mut txn = database.begin_write()?;
    txn.set_two_phase_commit(syncs == Syncs::Two);
    meta::set_mark(&txn, &mark)?;
    txn.commit()?;
    fail::pass(FailPoint::CaughtUp);
    journal.restart(mark)
}
