//! Nodes with an etcd on them, and a control plane that orders and hears.

pub(super) mod foreign;
mod report;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use self::foreign::ForeignAct;
use self::store::{Entry, Store};
use crate::decide::ensembles::{EnsembleDecision, EnsembleSight, EnsembleStep, MemberNode};
use crate::decide::placement::quorum::{QuorumStep, quorum};
use crate::decide::placement::{CandidateNode, CandidateNodes};
use crate::records::annotation::Annotation;
use crate::records::ensemble::{Ensemble, EnsembleMode, EnsembleService, EnsembleSize, EtcdSettings};
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::ensemble_requests::RollingAction;
use crate::records::ensemble_snapshots::SnapshotReport;
use crate::records::member::{KnownMember, MemberOrder, MemberStart, MemberTask};
use crate::words::counter::{EnsembleRevision, MemberNumber};
use crate::words::name::NodeName;
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};

/// What happens.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// So many seconds pass.
    Pass(u64),
    /// A node is cut off, or is back.
    Cut(usize, bool),
    /// The program on a node is killed.
    Kill(usize),
    /// What is on a node's disk is gone.
    Wipe(usize),
    /// A node is drained, or not any more.
    Drain(usize, bool),
    /// A person has decommissioned a node.
    Decommission(usize),
    /// Another size is wanted.
    Size(u32),
    /// Another server leads.
    Leader,
    /// A node works on what it was told before, and what it says is old, until this happens again.
    Stale(usize),
    /// A node is not heard of, or is heard of again, before anybody calls it unreachable.
    Suspect(usize, bool),
    /// A node lacks what a member needs, or does not any more.
    Lack(usize, bool),
    /// The program on a node does not run, or may again.
    Break(usize, bool),
    /// A person wants all members restarted, or defragmented.
    Roll(RollingAction),
    /// A person wants another member in the place of that of a node.
    Replace(usize),
    /// Something happens to a member of the store that is not of the ensemble.
    Foreign(ForeignAct, usize),
}

#[derive(Debug, Default)]
struct Host {
    cut_since: Option<Timestamp>,
    is_stale: bool,
    is_drained: bool,
    lacks: bool,
    is_suspect: bool,
    is_running: bool,
    /// The member whose directory is there, and whether it was started, and has data.
    directory: Option<(MemberNumber, bool, bool)>,
    order: Option<MemberOrder>,
    known: Option<KnownMember>,
    removed: Option<MemberNumber>,
    snapshot: Option<SnapshotReport>,
    restarted: Option<Timestamp>,
    defragmented: Option<Timestamp>,
    /// Until when it is being defragmented, in seconds; zero if it is not.
    busy_until: u64,
    is_broken: bool,
}

fn url(node: &NodeName) -> String {
    format!("http://{node}:2380")
}

/// The nodes, the store on them, and the control plane.
#[derive(Debug)]
pub(super) struct Installation {
    pub(super) ensemble: Ensemble,
    pub(super) members: EnsembleMembers,
    pub(super) store: Store,
    /// How often a store was founded.
    pub(super) bootstraps: usize,
    /// The time, in seconds.
    pub(super) now: u64,
    hosts: BTreeMap<NodeName, Host>,
    listening_since: Timestamp,
    given: BTreeSet<MemberNumber>,
    /// The members that were restarted or defragmented, in this order.
    pub(super) restarted: Vec<MemberNumber>,
    /// Those of them that led.
    pub(super) restarted_as_leader: Vec<MemberNumber>,
}

impl Installation {
    pub(super) fn new(nodes: usize, size: EnsembleSize) -> Self {
        let settings = EtcdSettings { client_port: 2379, peer_port: 2380, tls: true };
        Self::of(nodes, size, EnsembleService::Etcd(settings))
    }

    pub(super) fn of(nodes: usize, size: EnsembleSize, service: EnsembleService) -> Self {
        let annotation = Annotation::of("ann".parse().unwrap(), Timestamp::EPOCH);
        let ensemble = Ensemble {
            name: "db".parse().unwrap(),
            revision: EnsembleRevision::new(1),
            service: service.clone(),
            size,
            filter: Selector::all(),
            spread: None,
            failover_after: Span::from_secs(30),
            join_within: Span::from_secs(60),
            mode: EnsembleMode::Managed,
            snapshots: crate::records::ensemble_snapshots::SnapshotPolicy::default(),
            restore: None,
            adopt: None,
            labels: crate::words::label::Labels::default(),
            annotation,
        };
        Self {
            members: EnsembleMembers::none(ensemble.name.clone(), service, Timestamp::from_millis(1)),
            store: Store { admits_by_itself: ensemble.service.admits_by_itself(), ..Store::default() },
            ensemble,
            bootstraps: 0,
            now: 100,
            hosts: (0..nodes).map(|n| (format!("n-{n}").parse().unwrap(), Host::default())).collect(),
            listening_since: Timestamp::EPOCH,
            given: BTreeSet::new(),
            restarted: Vec::new(),
            restarted_as_leader: Vec::new(),
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now * 1_000)
    }

    pub(super) fn name(&self, number: usize) -> NodeName {
        self.hosts.keys().nth(number % self.hosts.len()).unwrap().clone()
    }

    fn host(&mut self, number: usize) -> &mut Host {
        let name = self.name(number);
        self.hosts.get_mut(&name).unwrap()
    }

    pub(super) fn cut_node(&mut self, node: &NodeName, is_cut: bool) {
        let at = self.at();
        let host = self.hosts.get_mut(node).unwrap();
        host.cut_since = is_cut.then(|| host.cut_since.unwrap_or(at));
    }

    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::Pass(seconds) => self.pass(*seconds),
            Act::Cut(node, is_cut) => {
                let name = self.name(*node);
                self.cut_node(&name, *is_cut);
            }
            Act::Kill(node) => self.host(*node).is_running = false,
            Act::Wipe(node) => {
                let host = self.host(*node);
                host.is_running = false;
                if let Some((_, _, has_data)) = &mut host.directory {
                    *has_data = false;
                }
            }
            Act::Drain(node, is_drained) => self.host(*node).is_drained = *is_drained,
            Act::Decommission(node) => {
                let name = self.name(*node);
                if self.hosts.len() > 1 {
                    self.hosts.remove(&name);
                }
            }
            Act::Size(size) => self.ensemble.size = EnsembleSize::Number(*size),
            Act::Leader => self.listening_since = self.at(),
            Act::Stale(node) => {
                let host = self.host(*node);
                host.is_stale = !host.is_stale;
            }
            Act::Suspect(node, is_suspect) => self.host(*node).is_suspect = *is_suspect,
            Act::Lack(node, lacks) => self.host(*node).lacks = *lacks,
            Act::Break(node, is_broken) => {
                let host = self.host(*node);
                (host.is_broken, host.is_running) = (*is_broken, false);
            }
            Act::Roll(action) => self.ask_roll(*action),
            Act::Replace(node) => {
                let name = self.name(*node);
                self.ask_for_another(&name);
            }
            Act::Foreign(act, which) => self.foreign(*act, *which),
        }
    }

    /// All that can be mended is, and nobody wants what no node can have.
    pub(super) fn mend(&mut self) {
        for host in self.hosts.values_mut() {
            (host.cut_since, host.is_stale, host.is_drained, host.lacks) = (None, false, false, false);
            (host.is_suspect, host.is_broken) = (false, false);
        }
        if self.hosts.len() <= self.wanted() {
            self.members.requests.replace.clear();
        }
        self.store.mend_foreign();
    }

    /// Whether no quorum of the store can ever come back.
    pub(super) fn is_lost(&mut self) -> bool {
        self.seen();
        self.store.voters() > 0 && self.store.of(&self.store.whole) < quorum(self.store.voters())
    }

    /// Number of members that there can be.
    pub(super) fn wanted(&self) -> usize {
        self.ensemble.size.wanted(self.hosts.len(), 0).min(self.hosts.len())
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            self.work_only_orders();
            self.report_all();
            self.control();
        }
    }

    /// Goes on until nothing is to be done.
    pub(super) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..4_000 {
            let before = self.members.clone();
            self.pass(1);
            self.ask_for_lost();
            quiet = if self.members == before { quiet + 1 } else { 0 };
            // Longer than anybody waits for anything.
            if quiet > 300 {
                return;
            }
            let is_at_rest = self.decide().step == EnsembleStep::Quorum(QuorumStep::Rest);
            let is_clean = self.members.members.values().all(|member| member.phase.as_str() == "voting");
            // While one is gone for good and no node can take its place, nobody is restarted.
            let is_done =
                self.members.requests.rolling.is_none() || self.store.working() < self.store.voters();
            if is_at_rest && is_clean && is_done && !self.has_removals() {
                return;
            }
        }
    }

    pub(super) fn decide(&self) -> EnsembleDecision {
        let nodes = self.nodes();
        let mut places = CandidateNodes::new();
        for (name, host) in &self.hosts {
            let is_lost = host.cut_since.is_some() || host.is_suspect;
            let refusal = is_lost.then(|| "it is not heard of".to_string());
            let place = CandidateNode { domain: None, matches: true, refusal, is_drained: host.is_drained };
            places.insert(name.clone(), place);
        }
        self.sight(&nodes).decide(&places)
    }

    fn nodes(&self) -> BTreeMap<NodeName, MemberNode<'_>> {
        let mut nodes = BTreeMap::new();
        for (name, host) in &self.hosts {
            let (unreachable_since, known) = (host.cut_since, host.known.as_ref());
            let (is_suspect, refuses_orders) = (host.is_suspect, false);
            nodes.insert(name.clone(), MemberNode { unreachable_since, is_suspect, refuses_orders, known });
        }
        nodes
    }

    fn sight<'a>(&'a self, nodes: &'a BTreeMap<NodeName, MemberNode<'a>>) -> EnsembleSight<'a> {
        EnsembleSight {
            ensemble: &self.ensemble,
            members: &self.members,
            nodes,
            is_stopped: false,
            listening_since: self.listening_since,
            now: self.at(),
        }
    }

    /// The control plane decides, and tells the nodes that it reaches.
    pub(super) fn control(&mut self) {
        let decision = self.decide();
        for number in decision.members.members.keys() {
            if !self.members.members.contains_key(number) {
                assert!(self.given.insert(*number), "number {number} is given twice");
            }
        }
        self.members = decision.members;
        let orders: BTreeMap<_, _> =
            self.members.orders().map(|(node, order)| (node.clone(), order)).collect();
        for (name, host) in &mut self.hosts {
            if host.cut_since.is_none() && !host.is_stale && !host.is_suspect {
                host.order = orders.get(name).cloned();
            }
        }
    }

    /// Every node does what it was told last.
    pub(super) fn work_only_orders(&mut self) {
        let names: Vec<NodeName> = self.hosts.keys().cloned().collect();
        for name in &names {
            if !self.roll(name) {
                self.work(name);
            }
            self.seen();
        }
        for name in &names {
            let host = self.hosts.get(name).unwrap();
            let change = host.order.as_ref().and_then(|order| order.change.clone());
            let own = self.own_id(name).filter(|id| self.store.entries[id].votes);
            let serves = own.is_some_and(|id| self.store.alive.contains(&id));
            if let Some(change) = change.filter(|_| serves || self.reads_outside(name)) {
                let removed = self.store.change(&change);
                self.seen();
                let host = self.hosts.get_mut(name).unwrap();
                host.removed = removed.or(host.removed);
            }
        }
    }

    fn work(&mut self, name: &NodeName) {
        let listed = self.own_id(name);
        let urls: BTreeSet<String> = self.store.entries.values().map(|entry| entry.url.clone()).collect();
        let founded = self.hosts.values().any(|host| host.directory.is_some_and(|(_, _, has_data)| has_data));
        let host = self.hosts.get_mut(name).unwrap();
        let Some(order) = host.order.clone() else { return };
        let is_other = host.directory.is_some_and(|(number, _, _)| number != order.number);
        if is_other || order.task == MemberTask::Leave {
            let has_data = host.directory.is_some_and(|(_, _, has_data)| has_data);
            let is_counted = listed.is_some() && has_data && self.members.has_store();
            assert!(!is_counted, "the data of a member that the store counts are set aside");
            (host.directory, host.is_running) = (None, false);
        }
        host.take_snapshot(&order);
        let (_, was_started, has_data) = *host.directory.get_or_insert((order.number, false, false));
        match &order.task {
            MemberTask::Prepare => {}
            MemberTask::Leave => host.directory = None,
            // Such a store takes whoever runs, wherever it has a quorum.
            MemberTask::Run(MemberStart::Join(_))
                if self.store.admits_by_itself && was_started == has_data =>
            {
                let is_let_in = listed.is_none() && self.store.has_quorum() && host.is_heard();
                host.directory = Some((order.number, true, true));
                host.is_running = !host.is_broken && (listed.is_some() || is_let_in);
                if host.is_running && is_let_in {
                    let (node, url) = (name.clone(), url(name));
                    self.store.insert(Entry { node, url, number: order.number, votes: true });
                }
            }
            MemberTask::Run(_) if has_data => host.is_running = listed.is_some() && !host.is_broken,
            MemberTask::Run(MemberStart::First) if !was_started => {
                assert!(
                    !founded && order.adoption.is_none(),
                    "a second store is founded beside one that has data"
                );
                host.directory = Some((order.number, true, true));
                host.is_running = true;
                self.bootstraps += 1;
                self.store.entries.clear();
                self.store.insert(Entry {
                    node: name.clone(),
                    url: url(name),
                    number: order.number,
                    votes: true,
                });
            }
            MemberTask::Run(MemberStart::Join(initial)) if !was_started && listed.is_some() => {
                let given: BTreeSet<String> = initial.values().cloned().collect();
                // etcd ends when they differ.
                let reads_itself = order.adoption.is_some() && self.store.has_quorum();
                if given == urls || reads_itself {
                    host.directory = Some((order.number, true, true));
                    host.is_running = true;
                }
            }
            MemberTask::Run(_) => host.is_running = false,
        }
    }
}
