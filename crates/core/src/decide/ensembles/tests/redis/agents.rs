//! What the agents of the machines do and report.

use std::string::ToString;
use std::vec::Vec;

use super::model::{Host, Machines, restart, url};
use crate::local::member::replication::{ReplicationStep, next};
use crate::records::member::{
    KnownMember, MemberReport, MemberState, MemberTask, Replication, ReplicationOrder,
};
use crate::words::name::NodeName;

impl Machines {
    /// An agent does what it was told last, also while it is cut off.
    pub(super) fn work(&mut self, name: &NodeName) {
        let (first, second) = (self.new_history(), self.new_history());
        let said = self.said(name);
        let host = self.hosts.get_mut(name).unwrap();
        let Some(order) = host.order.clone() else { return };
        if host.number.is_some_and(|number| number != order.number) || order.task == MemberTask::Leave {
            *host = Host {
                order: host.order.take(),
                known: host.known.take(),
                cut_since: host.cut_since,
                is_isolated: host.is_isolated,
                is_drained: host.is_drained,
                is_full: host.is_full,
                refuses: host.refuses,
                ..Host::default()
            };
        }
        if order.task == MemberTask::Leave {
            return;
        }
        host.number = Some(order.number);
        if host.down > 0 {
            host.down -= 1;
            return;
        }
        if let MemberTask::Run(_) = order.task
            && !host.is_running
        {
            restart(host, first);
            host.is_running = true;
            return;
        }
        if host.is_running && order.restart > host.restarted {
            self.restarts.push((order.number, host.is_primary));
            host.restarted = order.restart;
            restart(host, first);
            return;
        }
        let Some((ordered, said)) = order.replication.as_ref().zip(said) else { return };
        let named = |url: &str| url.strip_prefix("redis://").map(|name| name.parse().unwrap());
        match next(ordered, &said) {
            ReplicationStep::Done | ReplicationStep::Wait(_) => {}
            ReplicationStep::Promote => {
                (host.former, host.history) = (Some(host.history), second);
                (host.is_primary, host.follows) = (true, None);
            }
            ReplicationStep::Follow(of) => (host.is_primary, host.follows) = (false, named(&of)),
            ReplicationStep::Detach => (host.is_primary, host.follows) = (false, None),
            ReplicationStep::HandOver(to) => {
                let to: NodeName = named(&to).unwrap();
                self.hand_over(name, &to, second);
            }
        }
    }

    /// As `FAILOVER TO` does it: the replica has all before they change places.
    fn hand_over(&mut self, from: &NodeName, to: &NodeName, history: u64) {
        if self.streams(to).as_ref() != Some(from) {
            return;
        }
        self.copy(to);
        let replica = self.hosts.get_mut(to).unwrap();
        (replica.former, replica.history) = (Some(replica.history), history);
        (replica.is_primary, replica.follows) = (true, None);
        let host = self.hosts.get_mut(from).unwrap();
        (host.is_primary, host.follows) = (false, Some(to.clone()));
    }

    fn said(&self, name: &NodeName) -> Option<Replication> {
        let host = self.hosts.get(name).filter(|host| host.is_running)?;
        let tells = host.order.as_ref().is_some_and(|order| order.tells_position);
        let replicas = self.hosts.keys().filter(|other| self.streams(other).as_ref() == Some(name));
        let is_detached = !host.is_primary && host.follows.is_none();
        Some(Replication {
            is_primary: host.is_primary,
            follows: host.follows.as_ref().map(url),
            // It is connected once it has copied.
            streams: self.streams(name).is_some_and(|of| self.hosts[&of].history == host.history),
            is_whole: true,
            history: host.history.to_string(),
            former: host.former.map(|former| former.to_string()),
            offset: (tells || is_detached).then_some(host.log.len() as u64),
            replicas: if host.is_primary { replicas.map(url).collect() } else { Vec::new() },
            run: host.run.to_string(),
            cannot_store: host.is_full,
            keys: Some(host.log.len() as u64).filter(|_| !host.is_primary && self.streams(name).is_none()),
            takes_over: host
                .order
                .as_ref()
                .is_some_and(|order| matches!(order.replication, Some(ReplicationOrder::TakeOver { .. }))),
        })
    }

    pub(super) fn report(&mut self, name: &NodeName) {
        let (at, identity, said) = (self.at(), self.members.identity.clone(), self.said(name));
        let host = self.hosts.get_mut(name).unwrap();
        let Some(order) = host.order.clone().filter(|_| host.cut_since.is_none()) else { return };
        let state = match (&order.task, host.is_running) {
            (MemberTask::Leave, _) => MemberState::Left,
            (MemberTask::Prepare, _) => MemberState::Prepared,
            (MemberTask::Run(_), true) => MemberState::Working,
            (MemberTask::Run(_), false) => MemberState::Failed,
        };
        let report = MemberReport {
            peer_url: url(name),
            restarted: host.restarted,
            defragmented: None,
            defragments: false,
            has_ended: host.down > 0,
            replication: said.filter(|_| state == MemberState::Working),
            ..MemberReport::of(order.number, identity, state)
        };
        let before = host.known.take();
        let is_same = before.as_ref().is_some_and(|before| before.report.state == state);
        let since = before.filter(|_| is_same).map_or(at, |before| before.since);
        host.known = Some(KnownMember { report, since });
    }
}
