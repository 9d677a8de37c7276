//! The tables of the store's file. Owns their names and shapes.

use redb::TableDefinition;

/// Key to entry: the present.
pub(super) const STATE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("state");
/// Revision to commit, with what it replaced: the past down to the floor.
pub(super) const LOG: TableDefinition<u64, &[u8]> = TableDefinition::new("log");
/// Lease to its time in milliseconds.
pub(super) const LEASES: TableDefinition<u64, u64> = TableDefinition::new("leases");
/// Lease and key: what is bound to a lease.
pub(super) const BOUND: TableDefinition<(u64, &[u8]), ()> = TableDefinition::new("bound");
/// Single numbers by name. Its shape never changes, as it tells the format of the rest.
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// The format of the file.
pub(super) const META_FORMAT: &str = "format";
/// The oldest revision that can be read.
pub(super) const META_FLOOR: &str = "floor";
/// The last lease granted.
pub(super) const META_LEASE: &str = "lease";
/// The generation of the journal that continues the file.
pub(super) const META_JOURNAL: &str = "journal";
/// The last group that the file holds.
pub(super) const META_GROUP: &str = "journal_group";
/// The salt of the journal that continues the file.
pub(super) const META_SALT: &str = "journal_salt";
/// 1 once every row of the state and the log has its checksum.
pub(super) const META_SUMS: &str = "row_sums";
/// The identity of the store, in two halves.
pub(super) const META_ID: [&str; 2] = ["id_0", "id_1"];
