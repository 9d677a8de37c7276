use std::format;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::decide::placement::CandidateNode;

const FAILOVER: Span = Span::from_secs(30);
const JOIN: Span = Span::from_secs(60);

fn spec(size: EnsembleSize, replaces: ReplaceOrder) -> QuorumSpec {
    QuorumSpec {
        name: "db".to_string(),
        size,
        failover_after: FAILOVER,
        join_within: JOIN,
        replaces,
        others: OtherVoters::default(),
    }
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

/// Nodes with an ensemble on them, as a store and its manager would change them.
#[derive(Debug, Clone)]
struct Model {
    spec: QuorumSpec,
    places: CandidateNodes,
    members: Voters,
    /// When each node fell silent.
    silent: BTreeMap<NodeName, u64>,
    last: MemberNumber,
    now: u64,
}

impl Model {
    fn new(nodes: usize, size: EnsembleSize) -> Self {
        Self::of(nodes, spec(size, ReplaceOrder::RemoveFirst))
    }

    fn of(nodes: usize, spec: QuorumSpec) -> Self {
        let place = |number: usize| {
            let domain = Some(format!("rack-{}", number % 3));
            let name = format!("n-{number}").parse().unwrap();
            (name, CandidateNode { domain, matches: true, ..CandidateNode::default() })
        };
        Self {
            spec,
            places: (0..nodes).map(place).collect(),
            members: Voters::new(),
            silent: BTreeMap::new(),
            last: MemberNumber::ZERO,
            now: 0,
        }
    }

    fn node(&self, number: usize) -> NodeName {
        self.places.keys().nth(number % self.places.len()).unwrap().clone()
    }

    fn falls_silent(&mut self, node: &NodeName) {
        self.silent.entry(node.clone()).or_insert(self.now);
        self.seen();
    }

    fn is_back(&mut self, node: &NodeName) {
        self.silent.remove(node);
        self.seen();
    }

    fn drained(&mut self, node: &NodeName, is_drained: bool) {
        self.places.get_mut(node).unwrap().is_drained = is_drained;
    }

    /// What is known of members and nodes follows what they do.
    fn seen(&mut self) {
        for (name, place) in &mut self.places {
            place.refusal = self.silent.contains_key(name).then(|| "it is unreachable".to_string());
        }
        for voter in self.members.values_mut() {
            voter.state = match (voter.state, self.silent.get(&voter.node)) {
                (VoterState::Joining { since }, _) => VoterState::Joining { since },
                (VoterState::Leaving, _) => VoterState::Leaving,
                (_, Some(since)) => VoterState::Silent { since: at(*since) },
                (_, None) => VoterState::Working,
            };
        }
    }

    fn working(&self) -> usize {
        self.members.values().filter(|voter| voter.state == VoterState::Working).count()
    }

    fn voters(&self) -> usize {
        let joins = |voter: &&Voter| !matches!(voter.state, VoterState::Joining { .. });
        self.members.values().filter(joins).count()
    }

    fn step(&self) -> QuorumStep {
        next_step(&self.spec, &self.places, &self.members, at(self.now))
    }

    /// Decides and does what is decided; laws are checked.
    fn act(&mut self) -> QuorumStep {
        let step = self.step();
        assert_eq!(step, self.step(), "it decides the same again");
        let has_quorum = self.voters() == 0 || self.working() >= quorum(self.voters());
        let under_way =
            self.members.values().filter(|voter| matches!(voter.state, VoterState::Joining { .. })).count();
        match &step {
            QuorumStep::Add(node) => {
                assert!(has_quorum && under_way == 0 && self.places[node].is_eligible());
                assert!(self.members.values().all(|voter| voter.node != *node));
                let is_taken = self.spec.replaces == ReplaceOrder::JoinFirst
                    || self.members.values().all(|voter| !voter.is_silent());
                assert!(is_taken, "the store would refuse");
                self.last = self.last.next();
                let joining = VoterState::Joining { since: at(self.now) };
                self.members.insert(self.last, Voter { node: node.clone(), state: joining });
            }
            QuorumStep::Remove(number, RemovalReason::NotJoined) => drop(self.members.remove(number)),
            QuorumStep::Remove(number, _) => {
                assert!(has_quorum && under_way == 0);
                self.members.remove(number).expect("only a member is removed");
                assert!(self.working() >= quorum(self.voters()), "our own hand took the quorum");
            }
            QuorumStep::Wait(_) | QuorumStep::Rest => {}
        }
        self.seen();
        step
    }

    /// What was ordered joins if its node works.
    fn joins(&mut self) {
        for voter in self.members.values_mut() {
            if matches!(voter.state, VoterState::Joining { .. }) && !self.silent.contains_key(&voter.node) {
                voter.state = VoterState::Working;
            }
        }
        self.seen();
    }

    /// Acts until nothing changes any more.
    fn settle(&mut self) -> QuorumStep {
        for _ in 0..200 {
            self.now += 1;
            self.joins();
            let step = self.act();
            if matches!(step, QuorumStep::Rest | QuorumStep::Wait(_)) && self.voters() == self.members.len() {
                return step;
            }
        }
        panic!("it does not come to rest: {self:?}");
    }
}

#[test]
fn it_grows_and_shrinks_one_at_a_time() {
    let mut model = Model::new(5, EnsembleSize::Number(1));
    for (size, voters) in [(1, 1), (3, 3), (5, 5), (3, 3), (1, 1)] {
        model.spec.size = EnsembleSize::Number(size);
        assert_eq!((model.settle(), model.working()), (QuorumStep::Rest, voters));
    }
    assert_eq!(model.last, MemberNumber::new(5));
    model.spec.size = EnsembleSize::Number(7);
    assert_eq!(model.settle(), QuorumStep::Wait(QuorumWait::NoRoom { missing: 2 }));
}

#[test]
fn of_three_one_that_is_silent_is_replaced_after_its_time_and_exactly_once() {
    let mut model = Model::new(4, EnsembleSize::Quorum);
    model.settle();
    let (first, voter) =
        model.members.first_key_value().map(|(number, voter)| (*number, voter.clone())).unwrap();
    model.falls_silent(&voter.node);
    let until = at(model.now).plus(FAILOVER);
    assert_eq!(model.act(), QuorumStep::Wait(QuorumWait::Silent { member: first, until }));
    model.now += 29;
    assert_eq!(model.act(), QuorumStep::Wait(QuorumWait::Silent { member: first, until }));
    model.now += 1;
    assert_eq!(model.act(), QuorumStep::Remove(first, RemovalReason::Dead));
    assert_eq!(model.settle(), QuorumStep::Rest);
    assert_eq!((model.working(), model.last), (3, MemberNumber::new(4)));
    model.is_back(&voter.node);
    assert_eq!(model.settle(), QuorumStep::Rest, "who comes back is no member any more");
    assert_eq!(model.voters(), 3);
}

#[test]
fn where_a_store_takes_members_at_any_time_one_that_is_silent_leaves_after_another_one_has_joined() {
    for size in [EnsembleSize::Number(3), EnsembleSize::Quorum] {
        let mut model = Model::of(4, spec(size, ReplaceOrder::JoinFirst));
        model.settle();
        let (first, voter) =
            model.members.first_key_value().map(|(number, voter)| (*number, voter.clone())).unwrap();
        model.falls_silent(&voter.node);
        model.now += 30;
        assert!(matches!(model.act(), QuorumStep::Add(_)));
        assert_eq!(model.act(), QuorumStep::Wait(QuorumWait::Joining(MemberNumber::new(4))));
        model.joins();
        let gone = QuorumStep::Remove(first, RemovalReason::Dead);
        assert_eq!(model.act(), gone);
        assert_eq!((model.settle(), model.working(), model.voters()), (QuorumStep::Rest, 3, 3));
        // Without another node its own gets the next one, after it was removed.
        let second = model.members.values().next().map(|voter| voter.node.clone()).unwrap();
        model.falls_silent(&second);
        model.places.get_mut(&second).unwrap().refusal = None;
        model.places.get_mut(&voter.node).unwrap().refusal = Some("it is away".to_string());
        model.now += 30;
        let dead = model.step();
        assert!(matches!(dead, QuorumStep::Remove(_, RemovalReason::Dead)), "{dead:?}");
    }
}

#[test]
fn of_three_two_that_are_silent_leave_everything_as_it_is() {
    let mut model = Model::new(6, EnsembleSize::Number(3));
    model.settle();
    let nodes: Vec<NodeName> = model.members.values().take(2).map(|voter| voter.node.clone()).collect();
    nodes.iter().for_each(|node| model.falls_silent(node));
    model.now += 100_000;
    let silent = vec![MemberNumber::new(1), MemberNumber::new(2)];
    let lost = QuorumStep::Wait(QuorumWait::QuorumLost { working: 1, voters: 3, silent });
    assert_eq!(model.act(), lost);
    // Not even by a person who wants fewer.
    model.spec.size = EnsembleSize::Number(1);
    assert_eq!(model.act(), lost);
}

#[test]
fn a_dead_one_stays_while_no_node_could_take_its_place() {
    let mut model = Model::new(3, EnsembleSize::Number(3));
    model.settle();
    let node = model.node(0);
    model.falls_silent(&node);
    model.now += 1_000;
    assert_eq!(model.act(), QuorumStep::Wait(QuorumWait::NoRoom { missing: 1 }));
    model.is_back(&node);
    assert_eq!(model.settle(), QuorumStep::Rest);
}

#[test]
fn a_drained_member_leaves_once_its_replacement_votes() {
    let mut model = Model::new(4, EnsembleSize::Number(3));
    model.settle();
    let node = model.members[&MemberNumber::new(2)].node.clone();
    model.drained(&node, true);
    assert!(matches!(model.act(), QuorumStep::Add(_)));
    assert_eq!(model.act(), QuorumStep::Wait(QuorumWait::Joining(MemberNumber::new(4))));
    model.joins();
    assert_eq!(model.act(), QuorumStep::Remove(MemberNumber::new(2), RemovalReason::Drained));
    let other = model.members[&MemberNumber::new(1)].node.clone();
    model.drained(&other, true);
    assert_eq!(model.act(), QuorumStep::Wait(QuorumWait::NoRoom { missing: 1 }));
}

#[test]
fn a_quorum_has_as_many_members_after_a_drain_as_before_also_with_fewer_nodes() {
    for voters in [3, 5] {
        let mut model = Model::new(8, EnsembleSize::Number(voters));
        model.settle();
        model.spec.size = EnsembleSize::Quorum;
        let nodes: Vec<NodeName> = model.members.values().take(2).map(|voter| voter.node.clone()).collect();
        nodes.iter().for_each(|node| model.drained(node, true));
        assert_eq!((model.settle(), model.voters()), (QuorumStep::Rest, voters as usize));
        assert!(model.members.values().all(|voter| !nodes.contains(&voter.node)));
        assert_eq!(model.last, MemberNumber::new(u64::from(voters) + 2), "each is replaced once");
    }
}

#[test]
fn nodes_that_the_filter_does_not_match_any_more_keep_their_members() {
    let mut model = Model::new(5, EnsembleSize::Quorum);
    model.settle();
    model.places.values_mut().for_each(|place| place.matches = false);
    assert_eq!(model.settle(), QuorumStep::Rest);
    assert_eq!(model.voters(), 3);
}

#[test]
fn what_does_not_join_in_time_is_withdrawn_and_another_one_is_tried() {
    let mut model = Model::new(4, EnsembleSize::Number(3));
    model.settle();
    model.spec.size = EnsembleSize::Number(4);
    let QuorumStep::Add(node) = model.act() else { panic!("it grows") };
    model.falls_silent(&node);
    model.now += 60;
    assert_eq!(model.act(), QuorumStep::Remove(MemberNumber::new(4), RemovalReason::NotJoined));
    model.is_back(&node);
    assert_eq!(model.settle(), QuorumStep::Rest);
    assert_eq!(model.last, MemberNumber::new(5), "a number is never used again");
}

#[derive(Debug, Clone)]
enum Act {
    Silent(usize),
    Back(usize),
    Drain(usize, bool),
    Size(u32),
    Later(u64),
    Joins,
    Step,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (0_usize..8).prop_map(Act::Silent),
        2 => (0_usize..8).prop_map(Act::Back),
        1 => (0_usize..8, any::<bool>()).prop_map(|(node, is_drained)| Act::Drain(node, is_drained)),
        1 => (1_u32..6).prop_map(Act::Size),
        2 => (1_u64..100).prop_map(Act::Later),
        3 => Just(Act::Joins),
        6 => Just(Act::Step),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1_000), ..ProptestConfig::default() })]

    /// Whatever nodes do, no step of ours takes the quorum, no number is used twice, and once all is well it comes to rest as it is to be.
    #[test]
    fn no_history_loses_the_quorum_by_our_own_hand(
        nodes in 1_usize..8,
        size in prop_oneof![Just(EnsembleSize::Quorum), (1_u32..6).prop_map(EnsembleSize::Number)],
        replaces in prop_oneof![Just(ReplaceOrder::RemoveFirst), Just(ReplaceOrder::JoinFirst)],
        acts in proptest::collection::vec(act(), 1..60),
    ) {
        let mut model = Model::of(nodes, spec(size, replaces));
        for act in acts {
            match act {
                Act::Silent(node) => model.falls_silent(&model.node(node)),
                Act::Back(node) => model.is_back(&model.node(node)),
                Act::Drain(node, is_drained) => model.drained(&model.node(node), is_drained),
                Act::Size(size) => model.spec.size = EnsembleSize::Number(size),
                Act::Later(seconds) => model.now += seconds,
                Act::Joins => model.joins(),
                Act::Step => drop(model.act()),
            }
        }
        model.silent.clear();
        let all: Vec<NodeName> = model.places.keys().cloned().collect();
        all.iter().for_each(|node| model.drained(node, false));
        model.seen();
        let end = model.settle();
        let wanted = model.spec.size.wanted(nodes, model.voters());
        if wanted <= nodes {
            prop_assert_eq!(&end, &QuorumStep::Rest);
            prop_assert_eq!(model.working(), wanted);
        } else {
            prop_assert_eq!(end, QuorumStep::Wait(QuorumWait::NoRoom { missing: wanted - nodes }));
        }
    }
}
