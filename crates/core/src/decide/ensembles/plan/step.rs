//! A change of a plan.

use alloc::format;
use alloc::string::String;

use crate::records::ensemble_members::RemovalReason;
use crate::words::counter::MemberNumber;
use crate::words::name::{DeviceSerial, NodeName};

/// Most changes of a plan: replacing all members takes twice as many as there may be.
pub(super) const MAX_STEPS: usize = 32;

/// A change of the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedStep {
    /// A new member joins, on this node.
    Add(MemberNumber, NodeName),
    /// The first member is founded from a snapshot, on this node.
    Restore(MemberNumber, NodeName, String),
    /// A member that was ordered before joins.
    Join(MemberNumber, NodeName),
    /// A member is removed.
    Remove(MemberNumber, NodeName, RemovalReason),
    /// A member leaves whose removal began before.
    Leave(MemberNumber, NodeName),
    /// A member becomes the primary, or does so again after it was started anew.
    Promote(MemberNumber, NodeName, bool),
    /// The primary hands over to this member.
    HandOver(MemberNumber, NodeName),
    /// A member follows another one, or nobody any more.
    Follow(MemberNumber, NodeName, Option<MemberNumber>),
    /// A device is taken for a new OSD.
    TakeDevice(MemberNumber, NodeName, DeviceSerial),
    /// An OSD that was ordered before joins.
    JoinOsd(MemberNumber, NodeName),
    /// What an OSD has goes to others.
    EmptyOsd(MemberNumber, NodeName),
    /// An OSD that was emptied gets data again.
    FillOsd(MemberNumber, NodeName),
    /// An OSD that is empty is stopped and forgotten.
    RemoveOsd(MemberNumber, NodeName),
}

impl PlannedStep {
    /// The change, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Add(number, node) => format!("member {number} is added on node {node}"),
            Self::Restore(number, node, snapshot) => {
                format!("member {number} is founded on node {node} from snapshot {snapshot}")
            }
            Self::Join(number, node) => format!("member {number} on node {node} joins, as was ordered"),
            Self::TakeDevice(number, node, serial) => {
                format!("OSD {number} is made of device {serial} on node {node}, which is overwritten")
            }
            Self::JoinOsd(number, node) => format!("OSD {number} on node {node} joins, as was ordered"),
            Self::EmptyOsd(number, node) => {
                format!("OSD {number} on node {node} is emptied: its data go to others")
            }
            Self::FillOsd(number, node) => format!("OSD {number} on node {node} gets data again"),
            Self::RemoveOsd(number, node) => {
                format!(
                    "OSD {number} on node {node} is stopped and forgotten; what is on its device stays there"
                )
            }
            Self::Remove(number, node, reason) => {
                format!("member {number} on node {node} is removed: {}", reason.describe())
            }
            Self::Leave(number, node) => format!("member {number} on node {node} leaves, as was ordered"),
            Self::Promote(number, node, false) => {
                format!("member {number} on node {node} becomes the primary")
            }
            Self::Promote(number, node, true) => {
                format!("member {number} on node {node} becomes the primary, which it was ordered to be")
            }
            Self::Follow(number, node, Some(of)) => {
                format!("member {number} on node {node} follows member {of}")
            }
            Self::Follow(number, node, None) => {
                format!(
                    "member {number} on node {node} follows nobody, before another one is the primary or it leaves"
                )
            }
            Self::HandOver(number, node) => {
                format!("the primary hands over to member {number} on node {node}")
            }
        }
    }
}

/// The verb of so many.
pub(super) const fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
