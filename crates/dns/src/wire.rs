//! Messages as bytes: reads queries and writes answers. Pure, and safe on any input.

pub(crate) mod code;
pub(crate) mod query;
pub(crate) mod records;
pub(crate) mod reply;

/// Longest answer over UDP, in bytes, whatever the client accepts: it fits into the smallest IPv6 packet (DNS flag day
/// 2020), so that answers are not fragmented.
pub(crate) const MAX_UDP_BYTES: u16 = 1_232;

/// Longest answer for a client without EDNS (RFC 1035), in bytes.
pub(crate) const PLAIN_UDP_BYTES: u16 = 512;

/// Longest message over TCP, in bytes.
pub(crate) const MAX_TCP_BYTES: u16 = u16::MAX;

/// Length of a message's header, in bytes.
pub(crate) const HEAD_BYTES: usize = 12;
