//! How a member of an ensemble is on its node, and an OSD.

/// State of a member on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberState {
    /// Something is missing, as the reason says.
    Refused,
    /// It can be started.
    Prepared,
    /// Its program runs, and does not serve.
    Starting,
    /// It serves.
    Working,
    /// Its program does not run, or does not serve any more.
    Failed,
    /// It is stopped, and its directory is set aside.
    Left,
}

impl MemberState {
    /// Name of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Prepared => "prepared",
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Failed => "failed",
            Self::Left => "left",
        }
    }
}
