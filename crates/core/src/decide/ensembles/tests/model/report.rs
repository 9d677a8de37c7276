//! What the nodes report of their members.

use std::string::String;
use std::vec::Vec;

use super::{Host, Installation, url};
use crate::decide::ensembles::requests::rolling_refusal;
use crate::records::annotation::Annotation;
use crate::records::ensemble_members::MemberPhase;
use crate::records::ensemble_requests::{RollingAction, RollingRequest};
use crate::records::ensemble_snapshots::{SnapshotContent, SnapshotReport};
use crate::records::member::{KnownMember, MemberOrder, MemberReport, MemberState, MemberTask};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;

impl Installation {
    /// What is known of the store is from before it had this member.
    pub(in super::super) fn report_old_lists(&mut self, id: &str) {
        let known = self.hosts.values_mut().filter_map(|host| host.known.as_mut());
        for list in known.filter_map(|known| known.report.membership.as_mut()) {
            list.members.remove(id);
        }
    }

    pub(in super::super) fn report_all(&mut self) {
        self.seen();
        let (at, identity) = (self.at(), self.members.identity.clone());
        for name in self.hosts.keys().cloned().collect::<Vec<_>>() {
            let host = &self.hosts[&name];
            let Some(order) =
                host.order.clone().filter(|_| host.cut_since.is_none() && !host.is_stale && !host.is_suspect)
            else {
                continue;
            };
            let id = self.own_id(&name).filter(|id| self.store.alive.contains(id));
            let is_serving =
                id.as_ref().is_some_and(|id| self.store.entries[id].votes) && self.store.has_quorum();
            let state = match (&order.task, host.is_running) {
                (MemberTask::Leave, _) => MemberState::Left,
                (MemberTask::Prepare, _) if host.lacks => MemberState::Refused,
                (MemberTask::Prepare, _) => MemberState::Prepared,
                (MemberTask::Run(_), true) if is_serving => MemberState::Working,
                (MemberTask::Run(_), true) => MemberState::Starting,
                (MemberTask::Run(_), false) => MemberState::Failed,
            };
            let membership = id.filter(|_| state == MemberState::Working).map(|id| self.store.list(&id));
            let outside = membership.is_none() && self.reads_outside(&name);
            let outside = outside.then(|| self.store.list("outside"));
            let report = MemberReport {
                number: order.number,
                identity: identity.clone(),
                state,
                reason: if state == MemberState::Refused { "it lacks etcd".into() } else { String::new() },
                peer_url: url(&name),
                membership,
                outside,
                removed: host.removed,
                has_ended: false,
                replication: None,
                passwords: None,
                snapshot: host.snapshot.clone(),
                restarted: host.restarted,
                defragmented: host.defragmented,
                defragments: host.busy_until > 0,
                osds: None,
                later: None,
            };
            let host = self.hosts.get_mut(&name).unwrap();
            let before = host.known.take();
            let is_same = before.as_ref().is_some_and(|before| before.report.state == state);
            let since = before.filter(|_| is_same).map_or(at, |before| before.since);
            host.known = Some(KnownMember { report, since });
        }
    }
}

impl Installation {
    /// A person wants another member in the place of that of a node, if it votes.
    pub(in super::super) fn ask_for_another(&mut self, node: &NodeName) {
        let asked = Annotation::of("ann".parse().unwrap(), self.at());
        let member = self.members.of_node(node).filter(|(_, member)| member.phase == MemberPhase::Voting);
        let number = member.map(|(number, _)| number);
        self.members.requests.replace.extend(number.map(|number| (number, asked)));
    }

    /// A person founds the store anew from the member of this node.
    pub(in super::super) fn found_anew(&mut self, node: &NodeName) {
        self.store.entries.retain(|_, entry| entry.node == *node);
    }

    /// A person wants all members restarted or defragmented, unless the other one is asked for.
    pub(in super::super) fn ask_roll(&mut self, action: RollingAction) {
        if rolling_refusal(&self.ensemble, &self.members, action).is_some() {
            return;
        }
        let annotation = Annotation::of("ann".parse().unwrap(), self.at());
        let left = self.members.members.keys().copied().collect();
        let restart = RollingRequest::restart(annotation, left, std::collections::BTreeSet::new());
        self.members.requests.rolling = Some(RollingRequest { action, ..restart });
    }

    /// The member that leads.
    pub(in super::super) fn leader(&self) -> Option<MemberNumber> {
        let leader = self.store.leader.as_ref()?;
        self.store.entries.get(leader).map(|entry| entry.number)
    }

    /// Does with the member of a node what is ordered and was not done: it is away until its node works again. Answers whether it is.
    pub(super) fn roll(&mut self, name: &NodeName) -> bool {
        self.restart(name) || self.defragment(name)
    }

    /// Its database is defragmented, for longer than anybody waits for one that does not answer.
    fn defragment(&mut self, name: &NodeName) -> bool {
        let is_leader = self.own_id(name).is_some_and(|id| self.store.leader.as_ref() == Some(&id));
        let now = self.now;
        let host = self.hosts.get_mut(name).unwrap();
        // What etcd has begun goes on, whether it is still asked for or not.
        if host.busy_until > now {
            return true;
        }
        let order = host.order.as_ref();
        let Some((number, at)) = order.and_then(|order| Some((order.number, order.defragmentation?))) else {
            host.busy_until = 0;
            return false;
        };
        if host.defragmented >= Some(at) {
            return false;
        }
        if host.busy_until == 0 {
            (host.busy_until, host.is_running) = (now + 40, false);
            self.restarted.push(number);
            self.restarted_as_leader.extend(is_leader.then_some(number));
        }
        if now >= host.busy_until {
            (host.busy_until, host.defragmented) = (0, Some(at));
            return false;
        }
        true
    }

    fn restart(&mut self, name: &NodeName) -> bool {
        let is_leader = self.own_id(name).is_some_and(|id| self.store.leader.as_ref() == Some(&id));
        let host = self.hosts.get_mut(name).unwrap();
        let Some((number, at)) = host.order.as_ref().and_then(|order| Some((order.number, order.restart?)))
        else {
            return false;
        };
        if host.restarted >= Some(at) {
            return false;
        }
        (host.restarted, host.is_running) = (Some(at), false);
        self.restarted.push(number);
        self.restarted_as_leader.extend(is_leader.then_some(number));
        true
    }
}

impl Host {
    /// Whether others reach it.
    pub(super) const fn is_heard(&self) -> bool {
        self.cut_since.is_none() && !self.is_suspect
    }

    /// Takes the snapshot that is ordered, if its member runs; one that lacks something cannot.
    pub(super) fn take_snapshot(&mut self, order: &MemberOrder) {
        let Some(id) = order.snapshots.take.filter(|_| self.is_running) else { return };
        let content = SnapshotContent { bytes: 1, revision: 1, sha256: String::new() };
        let outcome = if self.lacks { Err("no space left".into()) } else { Ok(content) };
        self.snapshot = Some(SnapshotReport { id, outcome });
    }
}
