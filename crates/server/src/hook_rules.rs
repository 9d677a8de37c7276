//! What servers hold to because a store that several share may misbehave. Every server holds to all of it; the simulator
//! takes single rules away to see that they are needed.

use std::time::Duration;

/// How often what is shown is compared with a store that several share.
const RELIST_EVERY: Duration = Duration::from_secs(300);

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookRules {
    /// How often what is shown is compared with the store: a watch may have missed something without saying so.
    /// Never with a store of a server's own, which keeps its word.
    pub relist_every: Option<Duration>,
    /// A watch's batches at or below the last one taken in are dropped: it may tell something twice.
    pub drops_repeats: bool,
    /// A decider's commit compares the leadership: whoever lost it may not know yet.
    pub fences: bool,
}

impl HookRules {
    /// Those of a server whose store is its own, or shared.
    #[must_use]
    pub fn of(shares: bool) -> Self {
        Self { relist_every: shares.then_some(RELIST_EVERY), drops_repeats: true, fences: true }
    }
}
