//! Messages as bytes: questions in, answers out. Pure; whatever bytes come in, nothing breaks and nothing is read twice.

pub(crate) mod code;
pub(crate) mod query;
pub(crate) mod records;
pub(crate) mod reply;

/// Longest answer over UDP, in bytes, whatever a client says it takes: fits into the smallest IPv6 packet (DNS flag day
/// 2020), so that nothing is sent in fragments.
pub(crate) const MAX_UDP_BYTES: u16 = 1_232;

/// What a client takes that says nothing (RFC 1035), in bytes.
pub(crate) const PLAIN_UDP_BYTES: u16 = 512;

/// Longest message over TCP, in bytes.
pub(crate) const MAX_TCP_BYTES: u16 = u16::MAX;

/// A message's first part, in bytes.
pub(crate) const HEAD_BYTES: usize = 12;
