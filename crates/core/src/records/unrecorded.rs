//! Members of ensembles that a node has and that it is not ordered to have: what the control plane has recorded does not name them, as after a restore of
//! an older backup, or because their ensemble was deleted while the node was not heard of.

use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

/// A member that its node has, and that no order names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrecordedMember {
    /// Its number.
    pub number: MemberNumber,
    /// Identity of its ensemble.
    pub identity: String,
    /// Whether its program runs.
    pub runs: bool,
    /// The address of its node at which others reach it.
    pub address: IpAddr,
    /// Since when it is reported, by the server's clock.
    pub since: Timestamp,
}

impl UnrecordedMember {
    /// One that its agent sees; since when it is reported, the server knows.
    #[must_use]
    pub const fn seen(number: MemberNumber, identity: String, runs: bool, address: IpAddr) -> Self {
        Self { number, identity, runs, address, since: Timestamp::EPOCH }
    }

    /// What it is, in words that fit after its name.
    #[must_use]
    pub fn line(&self) -> String {
        let does = if self.runs { "it runs" } else { "it does not run" };
        format!(
            "is not recorded: {does}, and its directory stays; see the guide on ensembles, \"Members that are not recorded\""
        )
    }
}
