//! How a member of an ensemble is on its node, and an OSD.

use bellwether_core::records::member as core;

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
