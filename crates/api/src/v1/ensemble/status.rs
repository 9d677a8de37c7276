//! The state of ensembles in answers: their members, what is to happen to them, and which nodes may have none.

use bellwether_core::decide::ensembles::failing::counts;
use bellwether_core::decide::ensembles::health::health;
use bellwether_core::decide::ensembles::osds::explain;
use bellwether_core::decide::ensembles::osds::known::known;
use bellwether_core::decide::ensembles::plan::{EnsemblePlan, PlannedStep};
use bellwether_core::records::ensemble_members as core;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::world::fleet::Fleet;
use serde::{Deserialize, Serialize};

use super::adoption::ForeignMember;
use super::members::EnsembleMember;
use super::osds::EnsembleOsd;
use super::requests::RequestedChange;
use super::snapshots::EnsembleSnapshots;
use crate::word::words;

words! {
    /// A change of the members of an ensemble.
    EnsembleAction {
        /// A new member joins.
        Add = "add",
        /// The first member is founded from a snapshot.
        Restore = "restore",
        /// A member that was ordered before joins.
        Join = "join",
        /// A member is removed.
        Remove = "remove",
        /// A member leaves whose removal began before.
        Leave = "leave",
        /// A member becomes the primary.
        Promote = "promote",
        /// The primary hands over to a member.
        HandOver = "hand_over",
        /// A member follows another one, or nobody any more.
        Follow = "follow",
        /// A device is taken for a new OSD; the number is that of the OSD.
        TakeDevice = "take_device",
        /// An OSD that was ordered before joins.
        JoinOsd = "join_osd",
        /// What an OSD has goes to others.
        EmptyOsd = "empty_osd",
        /// An OSD that was emptied gets data again.
        FillOsd = "fill_osd",
        /// An OSD that is empty is stopped and forgotten.
        RemoveOsd = "remove_osd",
    }
}

/// The members of an ensemble, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleStatus {
    /// Number of members that there are to be now.
    pub wanted: u64,
    /// Number of members that vote, or that are the primary or a replica.
    pub voting: u64,
    /// Number of those that serve, as far as is known.
    pub working: u64,
    /// Whether it is as it is to be, and all of its members serve.
    pub is_complete: bool,
    /// Whether it is held: what is recorded of its members may be older than they are, as after a restore of the control plane.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held: bool,
    /// The members, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<EnsembleMember>,
    /// Members of the store that are not of the ensemble, where it was adopted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignMember>,
    /// The OSDs of Ceph, by number, also those that were removed and whose devices are not taken again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub osds: Vec<EnsembleOsd>,
    /// The changes that are to come, one after the other, as if each succeeded. A list of ensembles leaves them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<EnsembleStep>,
    /// What is waited for after these changes; absent if nothing. A list of ensembles leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// What people asked to be done with members, and is not done yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestedChange>,
    /// Snapshots of its data; absent if none was ever asked for or taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<EnsembleSnapshots>,
    /// The devices that the ensemble names and no OSD has, as far as the caller may read their nodes. A list of ensembles leaves them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_devices: Vec<RefusedDevice>,
    /// Number of nodes that match the filter and may have no new member. A list of ensembles leaves it out.
    #[serde(default, skip_serializing_if = "crate::shape::is_zero")]
    pub refused: u64,
    /// The first 100 of these nodes by name, as far as the caller may read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<EnsembleRefusal>,
}

/// A change of the members of an ensemble that is to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleStep {
    /// The change.
    pub action: EnsembleAction,
    /// Number of the member, or of the OSD.
    pub member: u64,
    /// Name of its node.
    pub node: String,
    /// The change in one line, with its reason.
    pub text: String,
}

/// A node that matches the filter of an ensemble and may have no new member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleRefusal {
    /// Name of the node.
    pub node: String,
    /// Why it may have none.
    pub reason: String,
}

/// A device that an ensemble names and no OSD has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RefusedDevice {
    /// Serial number of the device.
    pub device: String,
    /// Name of the node that has it; absent if none offers it, or several do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Why it is not taken.
    pub reason: String,
}

impl RefusedDevice {
    /// The devices of nodes that `is_seen` picks.
    pub fn seen(devices: Vec<explain::RefusedDevice>, is_seen: impl Fn(&str) -> bool) -> Vec<Self> {
        let is_seen =
            |device: &explain::RefusedDevice| device.node.as_ref().is_none_or(|node| is_seen(node.as_str()));
        let seen = devices.into_iter().filter(is_seen);
        seen.map(|explain::RefusedDevice { serial, node, reason }| Self {
            device: serial.to_string(),
            node: node.map(|node| node.to_string()),
            reason,
        })
        .collect()
    }

    /// The device and the reason in one line.
    #[must_use]
    pub fn line(&self) -> String {
        format!("device {} is not taken: {}", self.device, self.reason)
    }
}

impl EnsembleStatus {
    /// The members of an ensemble of which so many are wanted, without what is to happen to them.
    #[must_use]
    pub fn of(wanted: usize, members: Option<&core::EnsembleMembers>, fleet: &Fleet) -> Self {
        let requests = members.map(RequestedChange::all).unwrap_or_default();
        let snapshots = members.map(EnsembleSnapshots::named);
        let all = members.into_iter().flat_map(|of| of.members.iter().map(move |member| (of, member)));
        let shape = |(of, (number, member)): (&core::EnsembleMembers, (&MemberNumber, &core::Member))| {
            EnsembleMember::of(of, (*number, member), health(fleet, of, *number))
        };
        let osds = members.map(|members| known(fleet, members)).unwrap_or_default();
        let osds: Vec<_> = osds.into_iter().map(EnsembleOsd::from).collect();
        let adoption = members.and_then(|members| members.adoption.as_ref());
        let foreign = adoption.map(ForeignMember::all).unwrap_or_default();
        let is_held = members.is_some_and(|members| members.is_held(fleet.epoch));
        let counted = members.map(|members| counts(fleet, members)).unwrap_or_default();
        let members: Vec<_> = all.map(shape).collect();
        Self {
            wanted: wanted as u64,
            voting: counted.members as u64,
            working: counted.working as u64,
            is_complete: counted.working == wanted
                && members.len() == wanted
                && osds.iter().all(EnsembleOsd::is_well),
            is_held,
            members,
            foreign,
            osds,
            requests,
            snapshots: snapshots.filter(|snapshots| !snapshots.is_empty()),
            ..Self::default()
        }
    }

    /// The members of an ensemble, with what is to happen to them. Of the nodes that may have none only those that `is_seen` picks, so
    /// many at most.
    #[must_use]
    pub fn planned(
        plan: &EnsemblePlan,
        (members, fleet): (Option<&core::EnsembleMembers>, &Fleet),
        is_seen: impl Fn(&str) -> bool,
        most: usize,
    ) -> Self {
        let status = Self::of(plan.wanted, members, fleet);
        let refusals = plan.refusals.iter().filter(|(node, _)| is_seen(node.as_str()));
        let refusals =
            refusals.map(|(node, reason)| EnsembleRefusal { node: node.to_string(), reason: reason.clone() });
        Self {
            is_complete: status.is_complete && plan.steps.is_empty() && plan.waiting.is_none(),
            steps: plan.steps.iter().map(EnsembleStep::from).collect(),
            waiting: plan.waiting.clone(),
            refused: plan.refusals.len() as u64,
            refusals: refusals.take(most).collect(),
            ..status
        }
    }
}

impl From<&PlannedStep> for EnsembleStep {
    fn from(from: &PlannedStep) -> Self {
        let (action, member, node) = match from {
            PlannedStep::Add(member, node) => (EnsembleAction::Add, member, node),
            PlannedStep::Restore(member, node, _) => (EnsembleAction::Restore, member, node),
            PlannedStep::Join(member, node) => (EnsembleAction::Join, member, node),
            PlannedStep::Remove(member, node, _) => (EnsembleAction::Remove, member, node),
            PlannedStep::Leave(member, node) => (EnsembleAction::Leave, member, node),
            PlannedStep::Promote(member, node, _) => (EnsembleAction::Promote, member, node),
            PlannedStep::Follow(member, node, _) => (EnsembleAction::Follow, member, node),
            PlannedStep::HandOver(member, node) => (EnsembleAction::HandOver, member, node),
            PlannedStep::TakeDevice(osd, node, _) => (EnsembleAction::TakeDevice, osd, node),
            PlannedStep::JoinOsd(osd, node) => (EnsembleAction::JoinOsd, osd, node),
            PlannedStep::EmptyOsd(osd, node) => (EnsembleAction::EmptyOsd, osd, node),
            PlannedStep::FillOsd(osd, node) => (EnsembleAction::FillOsd, osd, node),
            PlannedStep::RemoveOsd(osd, node) => (EnsembleAction::RemoveOsd, osd, node),
        };
        Self { action, member: member.get(), node: node.to_string(), text: from.line() }
    }
}
