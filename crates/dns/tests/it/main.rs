//! The DNS server on real sockets, asked by the real `dig` and by whoever sends anything.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect has failed"
)]

mod bytes;
mod connections;
mod dig;
mod fleet;
mod forward;
mod sizes;
