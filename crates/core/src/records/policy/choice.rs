//! The fields of a policy that choose among a few ways.

/// What happens when more targets failed than the policy tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Every target that was moved goes back to last known good.
    #[default]
    Rollback,
    /// No further target is updated until a person decides.
    Pause,
    /// The rollout goes on to its end; the version does not become last known good.
    Continue,
}

/// What a new target version does to a rollout that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supersede {
    /// The old version is no longer dispatched, and is neither good nor bad; the new one starts at once.
    #[default]
    Replace,
    /// The rollout under way ends first.
    Finish,
    /// The new version is refused.
    Refuse,
}
