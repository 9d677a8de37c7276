use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use crate::decide::ensembles::{EnsembleDecision, EnsembleSight, EnsembleStep, MemberNode};
use crate::decide::placement::independent::IndependentStep;
use crate::decide::placement::{CandidateNode, CandidateNodes};
use crate::records::annotation::Annotation;
use crate::records::ensemble::{
    Ensemble, EnsembleMode, EnsembleService, EnsembleSize, IndependentSettings, Workload,
};
use crate::records::ensemble_members::{EnsembleMembers, MemberPhase};
use crate::records::ensemble_requests::RollingRequest;
use crate::records::member::{KnownMember, MemberOrder, MemberReport, MemberState, MemberTask};
use crate::words::counter::{EnsembleRevision, MemberNumber};
use crate::words::name::NodeName;
use crate::words::selector::Selector;
use crate::words::time::{Span, Timestamp};

const NODES: usize = 5;

/// A node: what its agent was told, and what was heard of it.
#[derive(Debug, Default)]
struct Host {
    order: Option<MemberOrder>,
    known: Option<KnownMember>,
    cut_since: Option<Timestamp>,
    is_gone: bool,
    is_drained: bool,
    lacks: bool,
    is_broken: bool,
    restarted: Option<Timestamp>,
}

/// Nodes, and the control plane.
#[derive(Debug)]
struct Site {
    ensemble: Ensemble,
    members: EnsembleMembers,
    hosts: BTreeMap<NodeName, Host>,
    given: BTreeSet<MemberNumber>,
    restarts: Vec<MemberNumber>,
    now: u64,
}

#[derive(Debug, Clone)]
enum Act {
    Size(u32),
    Cut(usize, bool),
    Gone(usize),
    Drain(usize, bool),
    Lack(usize, bool),
    Break(usize, bool),
    Restart,
    Pass(u64),
}

fn node(number: usize) -> NodeName {
    format!("n-{number}").parse().unwrap()
}

impl Site {
    fn new(size: u32) -> Self {
        let settings =
            IndependentSettings { workload: Workload::Process("web".parse().unwrap()), port: Some(80) };
        let ensemble = Ensemble {
            name: "web".parse().unwrap(),
            revision: EnsembleRevision::new(1),
            service: EnsembleService::Independent(settings),
            size: EnsembleSize::Number(size),
            filter: Selector::all(),
            spread: None,
            failover_after: Span::from_secs(30),
            join_within: Span::from_secs(60),
            mode: EnsembleMode::Managed,
            snapshots: crate::records::ensemble_snapshots::SnapshotPolicy::default(),
            restore: None,
            adopt: None,
            labels: crate::words::label::Labels::default(),
            annotation: Annotation::of("ann".parse().unwrap(), Timestamp::EPOCH),
        };
        let service = ensemble.service.clone();
        Self {
            members: EnsembleMembers::none(ensemble.name.clone(), service, Timestamp::from_millis(1)),
            ensemble,
            hosts: (0..NODES).map(|number| (node(number), Host::default())).collect(),
            given: BTreeSet::new(),
            restarts: Vec::new(),
            now: 1_000,
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::EPOCH.plus(Span::from_secs(self.now))
    }

    fn places(&self) -> CandidateNodes {
        let place = |host: &Host| CandidateNode {
            matches: true,
            refusal: host.cut_since.map(|_| String::from("it is unreachable")),
            is_drained: host.is_drained,
            ..CandidateNode::default()
        };
        let there = self.hosts.iter().filter(|(_, host)| !host.is_gone);
        there.map(|(name, host)| (name.clone(), place(host))).collect()
    }

    fn decide(&self) -> EnsembleDecision {
        let member_nodes = self.members.members.values().filter_map(|member| {
            let host = self.hosts.get(&member.node).filter(|host| !host.is_gone)?;
            let known = host.known.as_ref();
            let seen = MemberNode {
                unreachable_since: host.cut_since,
                is_suspect: false,
                refuses_orders: false,
                known,
            };
            Some((member.node.clone(), seen))
        });
        let nodes = member_nodes.collect();
        let sight = EnsembleSight {
            ensemble: &self.ensemble,
            members: &self.members,
            nodes: &nodes,
            is_stopped: false,
            listening_since: Timestamp::EPOCH,
            now: self.at(),
        };
        sight.decide(&self.places())
    }

    /// The control plane writes what it decided, until it writes nothing more.
    fn control(&mut self) {
        for _ in 0..20 {
            let decision = self.decide();
            if decision.members == self.members {
                return;
            }
            for number in decision.members.members.keys() {
                if !self.members.members.contains_key(number) {
                    assert!(self.given.insert(*number), "{number} is given twice");
                }
            }
            let is_new = |number| !self.members.members.contains_key(number);
            let vain =
                decision.members.members.iter().find(|(number, member)| {
                    is_new(*number) && matches!(member.phase, MemberPhase::Removed(_))
                });
            assert_eq!(vain, None, "one is added and removed at once");
            self.members = decision.members;
        }
        panic!("it does not come to rest: {self:?}");
    }

    /// The agents that are heard of do what they were told, and say so.
    fn agents(&mut self) {
        let at = self.at();
        let orders: BTreeMap<NodeName, MemberOrder> =
            self.members.orders().map(|(node, order)| (node.clone(), order)).collect();
        for (name, host) in
            self.hosts.iter_mut().filter(|(_, host)| host.cut_since.is_none() && !host.is_gone)
        {
            host.order = orders.get(name).cloned();
            let Some(order) = &host.order else { continue };
            let is_due = matches!(order.task, MemberTask::Run(_)) && order.restart > host.restarted;
            if is_due {
                host.restarted = order.restart;
                self.restarts.push(order.number);
            }
            let state = match (&order.task, host.is_broken || is_due) {
                (MemberTask::Leave, _) => MemberState::Left,
                (MemberTask::Prepare, _) if host.lacks => MemberState::Refused,
                (MemberTask::Prepare, _) => MemberState::Prepared,
                (MemberTask::Run(_), false) => MemberState::Working,
                (MemberTask::Run(_), true) => MemberState::Failed,
            };
            let report = MemberReport {
                reason: if state == MemberState::Refused { "it lacks it".into() } else { String::new() },
                peer_url: format!("tcp://{name}:80"),
                restarted: host.restarted,
                defragmented: None,
                defragments: false,
                ..MemberReport::of(order.number, order.identity.clone(), state)
            };
            let is_same = |known: &&KnownMember| {
                known.report.number == report.number && known.report.state == report.state
            };
            let since = host.known.as_ref().filter(is_same).map_or(at, |known| known.since);
            host.known = Some(KnownMember { report, since });
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            self.control();
            self.agents();
        }
        self.control();
    }

    fn host(&mut self, number: usize) -> &mut Host {
        self.hosts.get_mut(&node(number)).unwrap()
    }

    fn act(&mut self, act: &Act) {
        let at = self.at();
        match act {
            Act::Size(size) => self.ensemble.size = EnsembleSize::Number(*size),
            Act::Cut(number, is) => self.host(*number).cut_since = is.then_some(at),
            // It comes back as a machine that knows nothing.
            Act::Gone(number) => *self.host(*number) = Host { is_gone: true, ..Host::default() },
            Act::Drain(number, is) => self.host(*number).is_drained = *is,
            Act::Lack(number, is) => self.host(*number).lacks = *is,
            Act::Break(number, is) => self.host(*number).is_broken = *is,
            Act::Restart => {
                let annotation = Annotation::of("ann".parse().unwrap(), at);
                let left = self.members.members.keys().copied().collect();
                self.members.requests.rolling =
                    Some(RollingRequest::restart(annotation, left, BTreeSet::new()));
            }
            Act::Pass(seconds) => self.pass(*seconds),
        }
        if !matches!(act, Act::Pass(_)) {
            self.pass(1);
        }
    }

    fn serving(&self) -> Vec<&NodeName> {
        let serves = self.members.members.values().filter(|member| member.phase == MemberPhase::Serving);
        serves.map(|member| &member.node).collect()
    }
}

#[test]
fn the_first_members_have_the_first_numbers_and_serve() {
    let mut site = Site::new(3);
    site.pass(5);
    assert_eq!(site.serving().len(), 3);
    assert_eq!(site.members.members.keys().map(|number| number.get()).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_node_that_was_cut_off_and_replaced_stops_what_it_has_once_it_is_heard_of() {
    let mut site = Site::new(1);
    site.pass(5);
    let first = site.serving().first().copied().cloned().unwrap();
    let number = (0..NODES).find(|number| node(*number) == first).unwrap();
    site.act(&Act::Cut(number, true));
    site.pass(20);
    assert_eq!(site.serving(), [&first], "it may be back");
    site.pass(40);
    assert_ne!(site.serving(), [&first]);
    assert!(site.members.members.values().any(|member| matches!(member.phase, MemberPhase::Removed(_))));
    site.act(&Act::Cut(number, false));
    site.pass(5);
    assert_eq!(site.members.members.len(), 1, "what has left is forgotten");
    assert!(site.hosts[&first].known.as_ref().is_some_and(|known| known.report.state == MemberState::Left));
}

#[test]
fn one_after_the_other_is_restarted_those_that_do_not_work_first() {
    let mut site = Site::new(3);
    site.pass(5);
    let broken = site.members.members[&MemberNumber::new(2)].node.clone();
    let number = (0..NODES).find(|number| node(*number) == broken).unwrap();
    site.act(&Act::Break(number, true));
    site.act(&Act::Restart);
    site.pass(10);
    assert_eq!(site.restarts, [MemberNumber::new(2)], "the others wait until it works");
    site.act(&Act::Break(number, false));
    for _ in 0..10 {
        site.pass(1);
        let away = site.hosts.values().filter_map(|host| host.known.as_ref());
        assert!(away.filter(|known| known.report.state == MemberState::Failed).count() <= 1);
    }
    assert_eq!(site.restarts.iter().map(|number| number.get()).collect::<Vec<_>>(), [2, 1, 3]);
    assert_eq!(site.members.requests.rolling, None);
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1..6_u32).prop_map(Act::Size),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Cut(on, is)),
        (0..NODES).prop_map(Act::Gone),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Drain(on, is)),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Lack(on, is)),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Break(on, is)),
        Just(Act::Restart),
        (1..70_u64).prop_map(Act::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(300), ..ProptestConfig::default() })]

    #[test]
    fn whatever_becomes_of_the_nodes_in_the_end_as_many_serve_as_are_wanted_and_nothing_more_is_written(
        size in 1..6_u32,
        acts in proptest::collection::vec(act(), 1..25),
    ) {
        let mut site = Site::new(size);
        for act in acts {
            site.act(&act);
        }
        for host in site.hosts.values_mut() {
            (host.cut_since, host.is_gone, host.is_drained) = (None, false, false);
            (host.lacks, host.is_broken) = (false, false);
        }
        site.pass(200);
        let wanted = site.ensemble.size.wanted(0, 0);
        prop_assert_eq!(site.serving().len(), wanted, "{:?}", site.members);
        prop_assert_eq!(site.members.members.len(), wanted);
        prop_assert_eq!(&site.members.requests.rolling, &None);
        let decision = site.decide();
        prop_assert_eq!(decision.step, EnsembleStep::Independent(IndependentStep::Rest));
        prop_assert_eq!(decision.members, site.members);
    }
}
