//! How a member of an ensemble is on its node, and an OSD.

use bellwether_core::decide::ensembles::plan;
use bellwether_core::records::member as core;

use super::members::MemberHealth;
use crate::word::words;

words! {
    /// State of a member on its node.
    MemberState = core::MemberState {
        /// Something is missing, as the reason says.
        Refused = "refused",
        /// It can be started.
        Prepared = "prepared",
        /// Its program runs, and does not serve.
        Starting = "starting",
        /// It serves.
        Working = "working",
        /// Its program does not run, or does not serve any more.
        Failed = "failed",
        /// It is stopped, and its directory is set aside.
        Left = "left",
    }
}

impl From<plan::MemberHealth<'_>> for MemberHealth {
    fn from(from: plan::MemberHealth<'_>) -> Self {
        match from {
            plan::MemberHealth::Decommissioned => Self::Decommissioned,
            plan::MemberHealth::Suspect => Self::Suspect,
            plan::MemberHealth::Unreachable => Self::Unreachable,
            plan::MemberHealth::Unknown => Self::Unknown,
            plan::MemberHealth::Reported(report) => match report.state {
                core::MemberState::Refused => Self::Refused,
                core::MemberState::Prepared => Self::Prepared,
                core::MemberState::Starting => Self::Starting,
                core::MemberState::Working => Self::Working,
                core::MemberState::Failed => Self::Failed,
                core::MemberState::Left => Self::Left,
            },
        }
    }
}
