//! Ordered bytes with revisions, compare-and-commit, watches and leases.
//!
//! A [`Store`] keeps values under ordered keys and promises five things: reads at a revision; a commit of
//! several changes guarded by compares; every change after a revision, in order and without gaps, or the
//! answer "compacted"; leases whose end deletes what is bound to them; and that an acknowledged commit is
//! durable. It knows nothing of what the bytes mean.
//!
//! Three back ends keep the promises: memory ([`Store::memory`]), one directory on this machine
//! ([`Store::embedded`]), and etcd, which several servers share ([`Store::etcd`]). The contract asks for nothing
//! that etcd 3.4 does not give, and the suite in `conformance` (feature `testing`) holds every back end to it.

mod as_of;
mod backend;
mod check;
#[cfg(feature = "testing")]
pub mod conformance;
mod embedded;
mod entry;
mod error;
mod etcd;
mod feed;
mod health;
mod history;
mod judge;
mod lease;
mod limits;
mod memory;
mod range;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod txn;
mod watch;

pub use check::{StoreCheck, StoreFinding};
pub use entry::{Entry, Keys, LeaseId, Page, Revision};
pub use error::{Limit, OpenError, Refusal, StoreError};
pub use etcd::{Compaction, EtcdIdentity, EtcdSettings, remembered_members};
pub use health::{Condition, CutTail, Health, JournalCut};
pub use limits::{
    MAX_OPS, MAX_PAGE, MAX_PAGE_BYTES, MAX_TTL, MAX_TXN_BYTES, MIN_TTL, RETAINED_BYTES, RETAINED_COMMITS,
};
pub use range::Range;
pub use store::Store;
pub use txn::{CommitOutcome, Compare, FailedCompare, Op, Txn};
pub use watch::{Batch, Change, Watch, WatchError};
