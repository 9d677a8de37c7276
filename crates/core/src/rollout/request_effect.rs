//! The effect of a request for a version on the rollout in progress.

use crate::records::entity::{RequestKind, VersionRequest};
use crate::records::policy::Supersede;
use crate::records::progress::Progress;
use crate::records::rollout::{Direction, Rollout, VersionJudgement};

/// Effect of a request on the rollout in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEffect {
    /// The rollout does that already.
    AlreadyDone,
    /// The rollout ends first; the request is queued.
    Deferred,
    /// The rollout rolls back.
    RollBack,
    /// A new rollout replaces it.
    Replace,
}

/// The effect of a request on `rollout`, which is in progress, under this policy.
#[must_use]
pub fn effect(
    progress: &Progress,
    wanted: &VersionRequest,
    supersede: Supersede,
    rollout: &Rollout,
) -> RequestEffect {
    let to_good = progress.last_known_good.as_ref() == Some(&wanted.version);
    let same = rollout.version == wanted.version;
    let bad = matches!(rollout.judgement, VersionJudgement::Bad { .. });
    // A request for a version that became bad after the request does not disturb the rollout in progress.
    let refused = wanted.how != RequestKind::Retry && progress.bad(&wanted.version).is_some();
    match rollout.direction {
        Direction::RollbackFromBad | Direction::RollbackByUndo { .. } if to_good => {
            RequestEffect::AlreadyDone
        }
        Direction::RollbackFromBad | Direction::RollbackByUndo { .. } => RequestEffect::Deferred,
        Direction::Forward if same && !bad => RequestEffect::AlreadyDone,
        Direction::Forward if to_good => RequestEffect::RollBack,
        Direction::Forward => match supersede {
            Supersede::Finish | Supersede::Refuse if !bad => RequestEffect::Deferred,
            Supersede::Replace | Supersede::Finish | Supersede::Refuse if refused => RequestEffect::Deferred,
            Supersede::Replace | Supersede::Finish | Supersede::Refuse => RequestEffect::Replace,
        },
    }
}
