use std::format;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::decide::placement::CandidateNode;

const NODES: usize = 6;

/// Nodes with programs, and what is recorded of the members.
#[derive(Debug)]
struct World {
    spec: IndependentSpec,
    places: CandidateNodes,
    members: IndependentMembers,
    last: MemberNumber,
    now: Timestamp,
}

#[derive(Debug, Clone)]
enum Act {
    Size(u32),
    Drain(usize, bool),
    Refuse(usize, bool),
    Silence(usize, bool),
    Gone(usize),
    Work,
    Pass(u64),
}

fn node(number: usize) -> NodeName {
    format!("n-{number}").parse().unwrap()
}

impl World {
    fn new(size: u32) -> Self {
        let place = || CandidateNode { matches: true, ..CandidateNode::default() };
        Self {
            spec: IndependentSpec {
                name: "web".into(),
                size: EnsembleSize::Number(size),
                failover_after: Span::from_secs(60),
                join_within: Span::from_secs(60),
            },
            places: (0..NODES).map(|number| (node(number), place())).collect(),
            members: IndependentMembers::new(),
            last: MemberNumber::ZERO,
            now: Timestamp::EPOCH.plus(Span::from_secs(1_000)),
        }
    }

    fn of(&mut self, number: usize) -> Option<&mut IndependentMember> {
        self.members.values_mut().find(|member| member.node == node(number))
    }

    fn working(&self) -> usize {
        self.members.values().filter(|member| member.works()).count()
    }

    /// All changes that wait for nothing, each as it is to be; what is waited for then.
    fn decide(&mut self) -> IndependentStep {
        for _ in 0..100 {
            let step = next_step(&self.spec, &self.places, &self.members, self.now);
            match &step {
                IndependentStep::Add(on) => {
                    assert!(self.places[on].is_eligible());
                    assert!(self.members.values().all(|member| member.node != *on), "one on each node");
                    self.last = self.last.next();
                    let state = IndependentState::Joining { since: self.now };
                    self.members.insert(self.last, IndependentMember { node: on.clone(), state });
                    let drained = self.members.values().filter(|member| self.places[&member.node].is_drained);
                    assert!(self.members.len() <= self.spec.wanted() + drained.count());
                }
                IndependentStep::Remove(number, reason) => {
                    let before = self.working();
                    let member = self.members.remove(number).unwrap();
                    let is_kept = !member.works() || self.working() >= self.spec.wanted();
                    assert!(is_kept, "of {before} that work, one is removed: {reason:?}");
                    if *reason == RemovalReason::Refused {
                        self.places.get_mut(&member.node).unwrap().refusal = Some("refused".into());
                    }
                }
                IndependentStep::Rest | IndependentStep::Wait(_) => return step,
            }
        }
        panic!("it does not come to an end: {self:?}");
    }

    fn act(&mut self, act: &Act) {
        let now = self.now;
        match act {
            Act::Size(size) => self.spec.size = EnsembleSize::Number(*size),
            Act::Drain(on, is) => self.places.get_mut(&node(*on)).unwrap().is_drained = *is,
            Act::Refuse(on, is) => {
                self.places.get_mut(&node(*on)).unwrap().refusal = is.then(|| "refused".into());
            }
            Act::Silence(on, is) => {
                if let Some(member) = self.of(*on) {
                    member.state = match (member.state, is) {
                        (IndependentState::Working, true) => IndependentState::Silent { since: now },
                        (IndependentState::Silent { .. }, false) => IndependentState::Working,
                        (IndependentState::Joining { .. }, true) => IndependentState::Refused,
                        (IndependentState::Refused, false) => IndependentState::Joining { since: now },
                        (state, _) => state,
                    };
                }
            }
            Act::Gone(on) => {
                if let Some(member) = self.of(*on) {
                    member.state = IndependentState::Silent { since: Timestamp::EPOCH };
                }
            }
            Act::Work => {
                for member in self.members.values_mut() {
                    if matches!(member.state, IndependentState::Joining { .. }) {
                        member.state = IndependentState::Working;
                    }
                }
            }
            Act::Pass(seconds) => self.now = self.now.plus(Span::from_secs(*seconds)),
        }
    }

    fn settle(&mut self) -> IndependentStep {
        for _ in 0..4 {
            self.decide();
            self.act(&Act::Work);
        }
        self.decide()
    }
}

fn number(number: u64) -> MemberNumber {
    MemberNumber::new(number)
}

#[test]
fn all_that_are_missing_begin_at_once_and_all_that_are_too_many_leave() {
    let mut world = World::new(4);
    assert!(matches!(world.decide(), IndependentStep::Wait(IndependentWait::Joining(_))));
    assert_eq!(world.members.len(), 4);
    assert_eq!(world.settle(), IndependentStep::Rest);
    world.act(&Act::Size(1));
    assert_eq!((world.decide(), world.members.len()), (IndependentStep::Rest, 1));
    world.act(&Act::Size(8));
    assert_eq!(world.settle(), IndependentStep::Wait(IndependentWait::NoRoom { missing: 2 }));
    assert_eq!(world.working(), NODES);
}

#[test]
fn one_that_does_not_work_has_its_time_and_stays_where_no_other_node_is() {
    let mut world = World::new(2);
    world.settle();
    let first = world.members[&number(1)].node.clone();
    let on = (0..NODES).find(|number| node(*number) == first).unwrap();
    world.act(&Act::Silence(on, true));
    let until = world.now.plus(Span::from_secs(60));
    let waits = IndependentStep::Wait(IndependentWait::Silent { member: number(1), until });
    assert_eq!(world.decide(), waits);
    world.act(&Act::Pass(60));
    assert_eq!(world.settle(), IndependentStep::Rest);
    assert_eq!(world.members.keys().map(|number| number.get()).collect::<Vec<_>>(), [2, 3]);
    // Where nobody can take its place, it stays.
    let second = world.members[&number(2)].node.clone();
    let third = world.members[&number(3)].node.clone();
    for (name, place) in &mut world.places {
        place.refusal = (*name != second && *name != third).then(|| "cordoned".into());
    }
    let on = (0..NODES).find(|number| node(*number) == second).unwrap();
    world.act(&Act::Silence(on, true));
    world.act(&Act::Pass(60));
    assert_eq!(world.decide(), IndependentStep::Wait(IndependentWait::NoRoom { missing: 1 }));
    assert_eq!(world.members.len(), 2);
}

#[test]
fn where_none_works_none_is_replaced_and_one_that_is_alone_is() {
    let mut world = World::new(3);
    world.settle();
    for on in 0..NODES {
        world.act(&Act::Silence(on, true));
    }
    world.act(&Act::Pass(600));
    assert_eq!(world.decide(), IndependentStep::Wait(IndependentWait::NoneWorks));
    assert_eq!(world.members.len(), 3);
    let mut world = World::new(1);
    world.settle();
    for on in 0..NODES {
        world.act(&Act::Silence(on, true));
    }
    world.act(&Act::Pass(60));
    world.settle();
    assert_eq!((world.working(), world.members.keys().next()), (1, Some(&number(2))));
}

#[test]
fn a_drained_node_keeps_its_member_until_another_one_works() {
    let mut world = World::new(1);
    world.settle();
    let first = world.members[&number(1)].node.clone();
    let on = (0..NODES).find(|number| node(*number) == first).unwrap();
    world.act(&Act::Drain(on, true));
    assert_eq!(world.decide(), IndependentStep::Wait(IndependentWait::Joining(number(2))));
    assert_eq!((world.members.len(), world.working()), (2, 1));
    assert_eq!(world.settle(), IndependentStep::Rest);
    assert_eq!(world.members.keys().copied().collect::<Vec<_>>(), vec![number(2)]);
}

#[test]
fn a_node_that_is_gone_for_good_loses_its_member_whether_there_is_room_or_not() {
    let mut world = World::new(6);
    world.settle();
    world.act(&Act::Gone(0));
    world.places.remove(&node(0));
    assert_eq!(world.decide(), IndependentStep::Wait(IndependentWait::NoRoom { missing: 1 }));
    assert_eq!(world.members.len(), 5);
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1..7_u32).prop_map(Act::Size),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Drain(on, is)),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Refuse(on, is)),
        (0..NODES, any::<bool>()).prop_map(|(on, is)| Act::Silence(on, is)),
        (0..NODES).prop_map(Act::Gone),
        Just(Act::Work),
        (1..90_u64).prop_map(Act::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1_000), ..ProptestConfig::default() })]

    /// Never more than one on a node, never more than are wanted beside those that are drained, none that works removed while it is needed;
    /// and once all is well, as many work as are wanted, and nothing more is changed.
    #[test]
    fn whatever_happens_who_works_stays_while_it_is_needed_and_in_the_end_as_many_work_as_are_wanted(
        size in 1..7_u32,
        acts in proptest::collection::vec(act(), 1..40),
    ) {
        let mut world = World::new(size);
        for act in acts {
            world.act(&act);
            world.decide();
        }
        for on in 0..NODES {
            world.act(&Act::Drain(on, false));
            world.act(&Act::Refuse(on, false));
            world.act(&Act::Silence(on, false));
        }
        world.act(&Act::Pass(60));
        let end = world.settle();
        prop_assert_eq!(end, IndependentStep::Rest);
        prop_assert_eq!(world.working(), world.spec.wanted());
    }
}
