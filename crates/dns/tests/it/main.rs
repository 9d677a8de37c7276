//! The DNS server on real sockets, queried by the real `dig` and by raw packets.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect has failed"
)]

mod bytes;
mod clients;
mod connections;
mod dig;
mod fleet;
mod forward;
mod sizes;
