//! Settings of the deciders.

use bellwether_core::decide::liveness::context::PresenceLimits;
use bellwether_core::decide::table::RetentionLimits;

/// Settings of the deciders.
#[derive(Debug, Clone, Copy)]
pub struct DeciderSettings {
    /// How long a node may be silent.
    pub limits: PresenceLimits,
    /// What is kept, and for how long.
    pub kept: RetentionLimits,
}
