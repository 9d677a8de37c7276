//! What nodes are ordered to do for the members and the OSDs of an ensemble, by what is recorded of it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ensemble::EnsembleService;
use super::ensemble_adoption::StoreEndpoint;
use super::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use super::ensemble_requests::RollingAction;
use super::ensemble_restore::RestoreSource;
use super::ensemble_snapshots::SnapshotOrder;
use super::member::{MemberOrder, MemberStart, MemberTask, ReplicationOrder};
use super::osd::{OsdPhase, OsdsOrder};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;

impl EnsembleMembers {
    /// What each node is to do for the member that it has while it is held: who has data goes on with them, and changes nothing. One that was to join
    /// may have joined since.
    pub fn held_orders(&self) -> impl Iterator<Item = (&NodeName, MemberOrder)> {
        let is_there = |number: MemberNumber| {
            self.members.get(&number).is_some_and(|member| !matches!(member.phase, MemberPhase::Removed(_)))
        };
        self.orders().filter(move |(_, order)| is_there(order.number)).map(|(node, order)| {
            let held = MemberOrder {
                // One whose data were set aside since, or that is on another machine now, is not started as an empty one.
                task: MemberTask::Run(MemberStart::Again),
                change: None,
                replication: None,
                snapshots: SnapshotOrder::default(),
                restart: None,
                defragmentation: None,
                osds: None,
                ..order
            };
            (node, held)
        })
    }

    /// What each node is to do for the member that it has.
    pub fn orders(&self) -> impl Iterator<Item = (&NodeName, MemberOrder)> {
        self.members.iter().map(|(number, member)| {
            let change = self.change.as_ref().filter(|change| change.by == *number);
            let order = MemberOrder {
                number: *number,
                identity: self.identity.clone(),
                service: self.service.clone(),
                task: self.task(member),
                restore: self.restore_of(member),
                adoption: self.adoption.as_ref().map(|adoption| adoption.order(self.endpoints())),
                change: change.map(|change| change.change.clone()),
                replication: self.replication(*number),
                tells_position: self.lead.tells_position,
                passwords: self.passwords.clone(),
                peers: self.peers_of(*number),
                snapshots: self.snapshots.order(*number, &member.node),
                restart: self.requests.ordered(*number, RollingAction::Restart),
                defragmentation: self.requests.ordered(*number, RollingAction::Defragment),
                osds: self.osds.of_reader(*number, &self.requests),
            };
            (&member.node, order)
        })
    }

    /// Where the members of an etcd without TLS that vote serve clients.
    fn endpoints(&self) -> impl Iterator<Item = StoreEndpoint> {
        let port = match &self.service {
            EnsembleService::Etcd(etcd) => Some(etcd.client_port),
            EnsembleService::Redis(_) | EnsembleService::Ceph(_) | EnsembleService::Independent(_) => None,
        };
        let voting = self.members.values().filter(|member| member.phase == MemberPhase::Voting);
        voting.filter_map(move |member| {
            let (host, _) = member.peer_url.rsplit_once(':')?;
            format!("{host}:{}", port?).parse().ok()
        })
    }

    /// The other members that may replicate from one: those that were removed, or are cut off, may not, whether they have heard of that or not.
    #[must_use]
    pub fn peers_of(&self, number: MemberNumber) -> BTreeSet<MemberNumber> {
        let EnsembleService::Redis(_) = self.service else { return BTreeSet::new() };
        let present =
            self.members.iter().filter(|(_, member)| !matches!(member.phase, MemberPhase::Removed(_)));
        let present = present.map(|(other, _)| *other).filter(|other| *other != number);
        present.filter(|other| !self.lead.cut.contains(other)).collect()
    }

    /// What each node is to do for the OSDs that it has.
    #[must_use]
    pub fn osd_orders(&self) -> BTreeMap<NodeName, OsdsOrder> {
        let voting = self.members.values().filter(|member| member.phase == MemberPhase::Voting);
        let monitors: Vec<String> = voting.map(|member| member.peer_url.clone()).collect();
        self.osds.orders((&self.identity, &monitors), &self.requests)
    }

    /// The same while it is held: no OSD is made or taken away.
    #[must_use]
    pub fn held_osd_orders(&self) -> BTreeMap<NodeName, OsdsOrder> {
        let mut orders = self.osd_orders();
        for order in orders.values_mut() {
            order.osds.retain(|number, _| {
                self.osds.osds.get(number).is_some_and(|osd| osd.phase != OsdPhase::Removed)
            });
            order.osds.values_mut().for_each(|osd| osd.only_made = true);
        }
        orders
    }

    /// The snapshot that a member is founded from: the first one, until it serves.
    fn restore_of(&self, member: &Member) -> Option<RestoreSource> {
        let founds = matches!(member.phase, MemberPhase::Preparing | MemberPhase::Bootstrapping);
        self.restore.clone().filter(|_| founds && !self.is_bootstrapped)
    }

    /// What is to become of a member.
    fn task(&self, member: &Member) -> MemberTask {
        match (&member.phase, &self.service) {
            (MemberPhase::Preparing | MemberPhase::Adding, _) => MemberTask::Prepare,
            (MemberPhase::Bootstrapping, _) => MemberTask::Run(MemberStart::First),
            // Each begins as a replica of nobody, without data. Once it serves, one that never ran here is not begun in its place.
            (MemberPhase::Joining(_), EnsembleService::Redis(_) | EnsembleService::Independent(_)) => {
                MemberTask::Run(MemberStart::First)
            }
            (MemberPhase::Joining(initial), EnsembleService::Etcd(_) | EnsembleService::Ceph(_)) => {
                MemberTask::Run(MemberStart::Join(initial.clone()))
            }
            (MemberPhase::Voting | MemberPhase::Serving, _) => MemberTask::Run(MemberStart::Again),
            // It serves until the store does not count it any more; the first of an ensemble that never served has nobody to tell.
            (MemberPhase::Leaving(_), _) if self.has_store() => MemberTask::Run(MemberStart::Again),
            (MemberPhase::Leaving(_) | MemberPhase::Removed(_), _) => MemberTask::Leave,
        }
    }

    /// Whom a member follows, where there is a primary.
    fn replication(&self, number: MemberNumber) -> Option<ReplicationOrder> {
        let EnsembleService::Redis(_) = self.service else { return None };
        let url = |of: &MemberNumber| self.members.get(of).map(|member| member.peer_url.clone());
        if self.lead.primary == Some(number) {
            let is_due = self.lead.is_handover_known && self.lead.promotion.is_none();
            let to = self.lead.handover.as_ref().filter(|_| is_due).and_then(url);
            let promotion = self.lead.promotion.as_ref();
            let history =
                promotion.map_or_else(|| self.lead.history.clone(), |promotion| promotion.history.clone());
            return Some(
                to.map_or(ReplicationOrder::Primary { history }, |to| ReplicationOrder::HandOver { to }),
            );
        }
        let of = self.lead.follows.get(&number).and_then(url).filter(|url| !url.is_empty());
        let follows = |of| match self.lead.handover == Some(number) {
            true => ReplicationOrder::TakeOver { of },
            false => ReplicationOrder::Follow { of },
        };
        Some(of.map_or(ReplicationOrder::Nobody, follows))
    }
}
