//! The store contract on every back end, and what only the embedded one has to prove.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect has failed, and a child talks to its parent"
)]

mod check;
mod child;
mod damage;
mod embedded;
mod etcd;
mod full;
mod histories;
mod kill;
mod line;
mod memory;
mod refusals;
mod reopen;
mod sweep;
mod upgrade;
mod whole;
