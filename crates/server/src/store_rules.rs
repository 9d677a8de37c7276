//! How a server guards against defects of a store that several servers share. Every server applies all rules; the simulator
//! disables single rules to show that each is needed.

use std::time::Duration;

/// Interval at which the world is compared with a shared store.
const RELIST_EVERY: Duration = Duration::from_secs(300);

/// The guards against defects of a shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreRules {
    /// Interval at which the world is compared with the store, since a watch may miss a change without an error.
    /// None for a store of the server's own, whose watches miss nothing.
    pub relist_every: Option<Duration>,
    /// Whether batches of a watch at or below the last applied revision are dropped, since a watch may repeat a change.
    pub drops_repeats: bool,
    /// Whether a decider's commit compares the leadership key, since a former leader may not know yet that it lost it.
    pub fences: bool,
    /// Whether a server that holds a key by a lease also looks at the key: it may be gone while the lease is renewed.
    pub confirms_keys: bool,
    /// Whether a server adopts the time of the others, and takes no part while it has another one.
    pub bounds_clocks: bool,
}

impl StoreRules {
    /// The rules for a store that is shared, or for the server's own.
    #[must_use]
    pub fn of(shares: bool) -> Self {
        Self {
            relist_every: shares.then_some(RELIST_EVERY),
            drops_repeats: true,
            fences: true,
            confirms_keys: true,
            bounds_clocks: true,
        }
    }
}
