//! Whether a member of an ensemble serves, as it is decided.

use bellwether_core::decide::ensembles::health;
use bellwether_core::records::member::MemberState;

use super::members::MemberHealth;

impl From<health::MemberHealth<'_>> for MemberHealth {
    fn from(from: health::MemberHealth<'_>) -> Self {
        match from {
            health::MemberHealth::Decommissioned => Self::Decommissioned,
            health::MemberHealth::Suspect => Self::Suspect,
            health::MemberHealth::Unreachable => Self::Unreachable,
            health::MemberHealth::Unknown => Self::Unknown,
            health::MemberHealth::Reported(report) => match report.state {
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
