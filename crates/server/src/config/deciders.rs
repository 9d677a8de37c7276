//! Settings of the deciders.

use bellwether_core::decide::liveness::context::PresenceLimits;
use bellwether_core::decide::table::RetentionLimits;
use bellwether_core::rollout::environment::Watch;
use bellwether_core::words::time::{Span, Timestamp};

use crate::lease_key::TTL;
use crate::timing::SILENCE_LIMIT;

/// Settings of the deciders.
#[derive(Debug, Clone, Copy)]
pub struct DeciderSettings {
    /// How long a node may be silent.
    pub limits: PresenceLimits,
    /// What is kept, and for how long.
    pub kept: RetentionLimits,
}

impl DeciderSettings {
    /// How long a node that lost its server may still be shown as up. It is found suspect by then at the latest; the
    /// lifetime of a lease on top leaves the server that finds it time to begin, and to write it.
    const fn grace(&self) -> Span {
        self.limits.suspect.plus(self.limits.reconnect).plus(Span::from_secs(TTL.as_secs()))
    }

    /// A watch that began then.
    #[must_use]
    pub const fn watch(&self, since: Timestamp) -> Watch {
        Watch { since, grace: self.grace(), detection: self.limits.suspect.plus(SILENCE_LIMIT) }
    }
}
