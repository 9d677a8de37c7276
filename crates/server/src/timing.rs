//! One time for all servers. A starting server adopts the time of the others, and time never goes back behind the newest event
//! ([`start`]). From then on every server measures the others ([`peers`]), judges its own time ([`judge`]) and steers it towards
//! what most of their system clocks show ([`keeper`]). One that starts alone, long after it ran last, waits until something speaks for
//! its clock ([`last_time`]). Without this, a new leader with a different clock would end soaks early or
//! extend deadlines, and two servers would each give the same lock.

pub mod judge;
pub mod keeper;
pub(crate) mod last_time;
pub mod peers;
pub mod start;

use bellwether_core::words::time::Span;

/// Longest silence on an agent's connection. Agents ping every 6 s: one ping may be lost and the next one late. Together with
/// the time that a node may be silent it is below the 30 s within which a cut connection is to be found.
pub(crate) const SILENCE_LIMIT: Span = Span::from_secs(14);
