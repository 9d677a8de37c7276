//! Machines with a Redis each, agents that carry out orders, and a client.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use super::act::Act;
use crate::decide::ensembles::{EnsembleDecision, EnsembleSight, EnsembleStep, MemberNode};
use crate::decide::placement::primary::PrimaryStep;
use crate::decide::placement::{CandidateNode, CandidateNodes};
use crate::records::annotation::Annotation;
use crate::records::ensemble::{Ensemble, EnsembleMode, EnsembleService, EnsembleSize, RedisSettings};
use crate::records::ensemble_members::{EnsembleMembers, MemberPhase};
use crate::records::ensemble_requests::RollingRequest;
use crate::records::ensemble_snapshots::SnapshotPolicy;
use crate::records::member::{KnownMember, MemberOrder};
use crate::words::counter::{EnsembleRevision, MemberNumber};
use crate::words::name::NodeName;
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};

/// A Redis and its agent.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    pub(super) order: Option<MemberOrder>,
    pub(super) known: Option<KnownMember>,
    pub(super) cut_since: Option<Timestamp>,
    pub(super) is_isolated: bool,
    pub(super) is_drained: bool,
    /// Whether it was decommissioned.
    pub(super) is_gone: bool,
    /// Whether its disk is full.
    pub(super) is_full: bool,
    /// Its agent cannot store an order, as its disk is full, too.
    pub(super) refuses: bool,
    /// The member whose directory is here.
    pub(super) number: Option<MemberNumber>,
    pub(super) is_running: bool,
    /// Seconds until its process is started anew.
    pub(super) down: u64,
    pub(super) is_primary: bool,
    pub(super) follows: Option<NodeName>,
    pub(super) history: u64,
    pub(super) former: Option<u64>,
    /// Whether another one has got data of its history.
    pub(super) has_backlog: bool,
    pub(super) run: u64,
    /// The restart that it made last.
    pub(super) restarted: Option<Timestamp>,
    pub(super) log: Vec<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Machines {
    pub(super) ensemble: Ensemble,
    pub(super) members: EnsembleMembers,
    pub(super) hosts: BTreeMap<NodeName, Host>,
    /// The members that were restarted on request, each with whether it was the primary then.
    pub(super) restarts: Vec<(MemberNumber, bool)>,
    /// The time, in seconds.
    pub(super) now: u64,
    histories: u64,
    writes: u64,
    acknowledged: BTreeSet<u64>,
    given: BTreeSet<MemberNumber>,
    /// The kinds of what was told.
    pub(super) events: Vec<&'static str>,
}

pub(super) fn url(node: &NodeName) -> String {
    format!("redis://{node}")
}

impl Machines {
    pub(super) fn new(nodes: usize, size: u32, min_replicas: u32) -> Self {
        let service = EnsembleService::Redis(RedisSettings {
            port: 6379,
            min_replicas,
            tls: true,
            password_secrets: Vec::new(),
        });
        let ensemble = Ensemble {
            name: "cache".parse().unwrap(),
            revision: EnsembleRevision::new(1),
            service: service.clone(),
            size: EnsembleSize::Number(size),
            filter: Selector::all(),
            spread: None,
            snapshots: SnapshotPolicy::default(),
            restore: None,
            adopt: None,
            failover_after: Span::from_secs(30),
            join_within: Span::from_secs(60),
            mode: EnsembleMode::Managed,
            labels: crate::words::label::Labels::default(),
            annotation: Annotation::of("ann".parse().unwrap(), Timestamp::EPOCH),
        };
        let members = EnsembleMembers::none(ensemble.name.clone(), service, Timestamp::from_millis(1));
        let host = |n| (format!("n-{n}").parse().unwrap(), Host::default());
        Self {
            ensemble,
            members,
            hosts: (0..nodes).map(host).collect(),
            now: 100,
            histories: 0,
            writes: 0,
            acknowledged: BTreeSet::new(),
            restarts: Vec::new(),
            given: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    pub(super) fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now * 1_000)
    }

    fn name(&self, number: usize) -> NodeName {
        self.hosts.keys().nth(number % self.hosts.len()).unwrap().clone()
    }

    fn host(&mut self, number: usize) -> &mut Host {
        let name = self.name(number);
        self.hosts.get_mut(&name).unwrap()
    }

    pub(super) fn new_history(&mut self) -> u64 {
        self.histories += 1;
        self.histories
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    pub(super) fn serving(&self) -> usize {
        self.members.members.values().filter(|member| member.phase == MemberPhase::Serving).count()
    }

    /// In the order of names, the machine whose Redis is the primary that is recorded.
    pub(super) fn primary_host(&self) -> Option<usize> {
        let number = self.members.lead.primary.filter(|_| self.members.lead.promotion.is_none())?;
        let member = self.members.members.get(&number)?;
        self.hosts.iter().position(|(name, host)| *name == member.node && host.is_primary)
    }

    pub(super) fn is_replica(&self, number: usize) -> bool {
        let host = &self.hosts[&self.name(number)];
        host.is_running && host.follows.is_some()
    }

    /// Whether the primary has all that was acknowledged.
    pub(super) fn is_all_there(&self) -> bool {
        let primary = self.primary_host().map(|host| &self.hosts[&self.name(host)]);
        primary.is_some_and(|primary| self.acknowledged.iter().all(|write| primary.log.contains(write)))
    }

    /// Whether a machine has all that was acknowledged.
    pub(super) fn has_all(&self, number: usize) -> bool {
        let host = &self.hosts[&self.name(number)];
        self.acknowledged.iter().all(|write| host.log.contains(write))
    }

    /// Whether each write that was acknowledged is on some machine.
    pub(super) fn is_somewhere(&self) -> bool {
        self.acknowledged.iter().all(|write| self.hosts.values().any(|host| host.log.contains(write)))
    }

    /// The disk of a machine has lost what was written.
    pub(super) fn forget(&mut self, host: usize) {
        self.host(host).log.clear();
    }

    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::Write => self.write(),
            Act::Copy(host) => self.copy(&self.name(*host)),
            Act::Restart(host) => {
                let history = self.new_history();
                restart(self.host(*host), history);
            }
            Act::End(host, seconds) => {
                let host = self.host(*host);
                if host.is_running {
                    (host.is_running, host.down) = (false, *seconds);
                }
            }
            Act::Cut(host) => self.cut(*host),
            Act::Isolate(host) => {
                self.cut(*host);
                self.host(*host).is_isolated = true;
            }
            Act::CutPeers(host) => self.host(*host).is_isolated = true,
            Act::Heal(host) => self.heal(&self.name(*host)),
            Act::Decommission(host) => self.host(*host).is_gone = true,
            Act::Drain(host) => self.host(*host).is_drained ^= true,
            Act::Fill(host) => {
                let host = self.host(*host);
                host.is_full ^= true;
                host.refuses &= host.is_full;
            }
            Act::FillAll(host) => {
                let host = self.host(*host);
                (host.is_full, host.refuses) = (true, true);
            }
            Act::Size(size) => self.ensemble.size = EnsembleSize::Number(*size),
            Act::Acknowledge => self.members.lead.failed_over = None,
            Act::HandOver(host) => {
                let to = self.members.of_node(&self.name(*host)).map(|(number, _)| number);
                let to = to.filter(|to| self.members.lead.had_data.contains(to));
                let to = to.filter(|to| self.members.lead.primary != Some(*to));
                self.members.lead.handover = self.members.lead.handover.or(to);
            }
            Act::Withdraw if self.members.lead.is_handover_known => {}
            Act::Withdraw => self.members.lead.handover = None,
            Act::RestartAll => {
                let annotation = Annotation::of("ann".parse().unwrap(), self.at());
                let left = self.members.members.keys().copied().collect();
                self.members.requests.rolling =
                    Some(RollingRequest::restart(annotation, left, BTreeSet::new()));
            }
            Act::Replace(host) => {
                let (node, asked) = (self.name(*host), Annotation::of("ann".parse().unwrap(), self.at()));
                let member = self.members.of_node(&node);
                let serving = member.filter(|(_, member)| member.phase == MemberPhase::Serving);
                if let Some(number) = serving.map(|(number, _)| number) {
                    self.members.requests.replace.insert(number, asked);
                }
            }
            Act::Pass(seconds) => self.pass(*seconds),
        }
    }

    fn cut(&mut self, number: usize) {
        let at = self.at();
        self.host(number).cut_since.get_or_insert(at);
    }

    /// Its agent hears of its orders before its Redis is connected again.
    fn heal(&mut self, name: &NodeName) {
        let orders: BTreeMap<_, _> =
            self.members.orders().map(|(node, order)| (node.clone(), order)).collect();
        let host = self.hosts.get_mut(name).unwrap();
        (host.cut_since, host.order) = (None, orders.get(name).cloned());
        self.work(name);
        self.hosts.get_mut(name).unwrap().is_isolated = false;
    }

    /// All machines are back, and a person has looked.
    pub(super) fn mend(&mut self) {
        for name in self.hosts.keys().cloned().collect::<Vec<_>>() {
            self.heal(&name);
            let host = self.hosts.get_mut(&name).unwrap();
            (host.is_drained, host.is_full, host.refuses) = (false, false, false);
        }
        self.members.lead.failed_over = None;
    }

    fn write(&mut self) {
        self.writes += 1;
        let write = self.writes;
        let takes = |host: &&mut Host| host.is_running && host.is_primary && !host.is_full;
        for host in self.hosts.values_mut().filter(takes) {
            host.log.push(write);
        }
    }

    /// Whether data come to a machine from another one.
    pub(super) fn streams(&self, name: &NodeName) -> Option<NodeName> {
        let host = &self.hosts[name];
        let of = host.follows.clone().filter(|_| host.is_running && !host.is_isolated)?;
        let source = &self.hosts[&of];
        // Each knows those that its agent was told of, and no others.
        let knows = |order: &MemberOrder| host.number.is_some_and(|number| order.peers.contains(&number));
        let gives = source.is_running && !source.is_isolated && source.order.as_ref().is_some_and(knows);
        // A replica gives on what it gets, and one of nobody gives nothing.
        let has = source.is_primary || (source.follows.as_ref() != Some(name) && self.streams(&of).is_some());
        (gives && has).then_some(of)
    }

    pub(super) fn copy(&mut self, name: &NodeName) {
        let Some(of) = self.streams(name) else { return };
        let other = self.new_history();
        let source = self.hosts.get_mut(&of).unwrap();
        if !source.has_backlog {
            (source.history, source.former, source.has_backlog) = (other, None, true);
        }
        let (history, former, log) = {
            let source = &self.hosts[&of];
            (source.history, source.former, source.log.clone())
        };
        let replica = self.hosts.get_mut(name).unwrap();
        (replica.history, replica.former, replica.log) = (history, former, log);
        replica.has_backlog = true;
        self.acknowledge(&of);
    }

    /// A primary acknowledges what as many of its replicas have as its settings say.
    fn acknowledge(&mut self, of: &NodeName) {
        let primary = &self.hosts[of];
        let service = primary.order.as_ref().map(|order| order.service.clone());
        let Some(EnsembleService::Redis(redis)) = service.filter(|_| primary.is_primary) else { return };
        if redis.min_replicas == 0 {
            return;
        }
        let replicas = self.hosts.iter().filter(|(name, _)| self.streams(name).as_ref() == Some(of));
        let replicas: Vec<&Vec<u64>> = replicas.map(|(_, host)| &host.log).collect();
        let has = |write: &u64| replicas.iter().filter(|log| log.contains(write)).count();
        let known: Vec<u64> =
            primary.log.iter().copied().filter(|write| has(write) >= redis.min_replicas as usize).collect();
        self.acknowledged.extend(known);
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            for name in self.hosts.keys().cloned().collect::<Vec<_>>() {
                self.copy(&name);
                self.work(&name);
                self.report(&name);
            }
            self.control();
        }
    }

    /// Goes on until nothing is to be done, or a person is waited for.
    pub(super) fn settle(&mut self) {
        for _ in 0..1_000 {
            self.pass(1);
            let is_at_rest = self.decide().step == EnsembleStep::Primary(PrimaryStep::Rest);
            let is_clean = self.members.members.values().all(|member| member.phase == MemberPhase::Serving);
            let is_copied = self.hosts.values().all(|host| {
                !host.is_running || host.is_primary || host.history == self.histories_of_primary()
            });
            if is_at_rest && is_clean && is_copied && self.members.requests.rolling.is_none() {
                return;
            }
        }
    }

    fn histories_of_primary(&self) -> u64 {
        self.primary_host().map_or(0, |host| self.hosts[&self.name(host)].history)
    }

    pub(super) fn decide(&self) -> EnsembleDecision {
        let mut nodes = BTreeMap::new();
        let mut places = CandidateNodes::new();
        for (name, host) in self.hosts.iter().filter(|(_, host)| !host.is_gone) {
            let (unreachable_since, known) = (host.cut_since, host.known.as_ref());
            nodes.insert(
                name.clone(),
                MemberNode { unreachable_since, is_suspect: false, refuses_orders: host.refuses, known },
            );
            let refusal = host.cut_since.map(|_| "it is not heard of".to_string());
            let place = CandidateNode { domain: None, matches: true, refusal, is_drained: host.is_drained };
            places.insert(name.clone(), place);
        }
        let sight = EnsembleSight {
            ensemble: &self.ensemble,
            members: &self.members,
            nodes: &nodes,
            is_stopped: false,
            listening_since: Timestamp::EPOCH,
            now: self.at(),
        };
        sight.decide(&places)
    }

    /// The agent of a machine reports.
    pub(super) fn tell(&mut self, host: usize) {
        self.report(&self.name(host));
    }

    /// The control plane decides, and tells the machines that it reaches.
    pub(super) fn control(&mut self) {
        let decision = self.decide();
        for number in decision.members.members.keys() {
            if !self.members.members.contains_key(number) {
                assert!(self.given.insert(*number), "number {number} is given twice");
            }
        }
        self.members = decision.members;
        self.events.extend(decision.events.iter().map(|event| event.kind));
        let orders: BTreeMap<_, _> =
            self.members.orders().map(|(node, order)| (node.clone(), order)).collect();
        for (name, host) in
            self.hosts.iter_mut().filter(|(_, host)| host.cut_since.is_none() && !host.refuses)
        {
            host.order = orders.get(name).cloned();
        }
    }
}

/// A process begins as a replica of nobody, with what is on its disk, in a history that nobody knows.
pub(super) fn restart(host: &mut Host, history: u64) {
    (host.is_primary, host.follows) = (false, None);
    (host.history, host.former, host.run, host.has_backlog) = (history, None, history, false);
}
