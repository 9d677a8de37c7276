//! Times of a handover that all stores share.

use std::time::Duration;

/// Longest time that a follower is asked: one that is slower is no good leader.
pub(super) const FOLLOWER_LIMIT: Duration = Duration::from_secs(2);

/// Time between two looks at a handover that is under way.
pub(super) const LOOK: Duration = Duration::from_millis(50);
