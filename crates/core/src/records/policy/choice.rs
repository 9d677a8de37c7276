//! The fields of a policy that choose among a few alternatives.

/// What happens when more targets failed than the policy tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Every target that was updated is rolled back to last known good.
    #[default]
    Rollback,
    /// No further target is updated until a person resumes or rolls back.
    Pause,
    /// The rollout goes on to its end; the version becomes last known good only if no more failures than tolerated are left
    /// by then.
    Continue,
}

/// What a newly requested version does to a rollout in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supersede {
    /// The rollout in progress ends as superseded, its version neither good nor bad; the new one starts at
    /// once.
    #[default]
    Replace,
    /// The rollout in progress ends first.
    Finish,
    /// The request for the new version is refused.
    Refuse,
}
