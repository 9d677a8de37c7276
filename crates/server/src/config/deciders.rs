//! Settings of the deciders.

use bellwether_core::decide::liveness::context::PresenceLimits;

/// Settings of the deciders.
#[derive(Debug, Clone, Copy)]
pub struct DeciderSettings {
    /// How long a node may be silent.
    pub limits: PresenceLimits,
    /// Events kept per namespace.
    pub events_kept: u64,
}
