//! Whether a member of an ensemble serves, as it is decided.

use bellwether_core::decide::ensembles::plan;
use bellwether_core::records::member::MemberState;

use super::members::MemberHealth;

impl From<plan::MemberHealth<'_>> for MemberHealth {
    fn from(from: plan::MemberHealth<'_>) -> Self {
        match from {
            plan::MemberHealth::Decommissioned => Self::Decommissioned,
            plan::MemberHealth::Suspect => Self::Suspect,
            plan::MemberHealth::Unreachable => Self::Unreachable,
            plan::MemberHealth::Unknown => Self::Unknown,
            plan::MemberHealth::Reported(report) => match report.state {
                MemberState::Refused => Self::Refused,
                MemberState::Prepared => Self::Prepared,
                MemberState::Starting => Self::Starting,
                MemberState::Working => Self::Working,
                MemberState::Failed => Self::Failed,
                MemberState::Left => Self::Left,
            },
        }
    }
}
