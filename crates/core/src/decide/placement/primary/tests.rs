mod model;

use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use self::model::{FAILOVER, Model, QUIET, at};
use super::*;
use crate::decide::placement::EnsembleSize;

fn number(number: u64) -> MemberNumber {
    MemberNumber::new(number)
}

/// Three members under writes, of which one must have each.
fn three(nodes: usize) -> Model {
    let mut model = Model::new(nodes, 3, 1);
    assert_eq!(model.settle(), PrimaryStep::Rest);
    assert_eq!((model.record.primary, model.members.len()), (Some(number(1)), 3));
    model.write();
    model.settle();
    model
}

#[test]
fn a_dead_primary_is_followed_by_the_replica_with_most_of_its_history() {
    let mut model = three(3);
    model.write();
    model.copies(2);
    assert_eq!(model.acknowledged, 2);
    model.change(0, |process| process.is_dead = true);
    let until = at(model.now).plus(FAILOVER);
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::Silent { member: number(1), until }));
    model.now += 30;
    let steps: Vec<PrimaryStep> = (0..2).map(|_| model.act()).collect();
    let both = [number(2), number(3)].to_vec();
    let expected = [PrimaryStep::Follow(both, None), PrimaryStep::Promote(number(3))];
    assert_eq!(steps, expected);
    model.change(0, |process| process.is_dead = false);
    model.settle();
    assert!(model.members.values().all(|(_, process, _)| process.follows.is_none_or(|of| of == number(3))));
    // The next one within the hour is a person's to order.
    model.change(2, |process| process.is_dead = true);
    model.now += 60;
    let until = model.record.failed_over.unwrap().plus(QUIET);
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::Quiet { until }));
    model.record.failed_over = None;
    assert_eq!(model.act(), PrimaryStep::Follow([number(1), number(2)].to_vec(), None));
}

#[test]
fn a_replica_that_still_streams_keeps_its_primary() {
    let mut model = three(3);
    model.change(0, |process| process.agent_is_dead = true);
    model.now += 1_000;
    let both = [number(2), number(3)].to_vec();
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::StillStreams(both)));
}

#[test]
fn nobody_takes_over_while_an_acknowledged_write_may_be_on_none_of_those_that_are_reached() {
    let mut model = three(3);
    model.change(2, |process| process.agent_is_dead = true);
    model.change(0, |process| process.is_dead = true);
    model.now += 1_000;
    let silent = [number(3)].to_vec();
    let anew = Vec::new();
    let too_few = PrimaryWait::TooFewReached { reached: 1, needed: 2, silent, anew, is_back: false };
    assert_eq!(model.act(), PrimaryStep::Wait(too_few));
    model.change(2, |process| process.agent_is_dead = false);
    assert_eq!(model.act(), PrimaryStep::Follow([number(2), number(3)].to_vec(), None));
}

#[test]
fn a_foreign_history_never_takes_over_however_far_it_is() {
    let mut model = three(3);
    for which in [1, 2] {
        model.change(which, |process| (process.history, process.offset) = (99, 1_000));
    }
    model.change(0, |process| process.is_dead = true);
    model.now += 1_000;
    let steps: Vec<PrimaryStep> = (0..2).map(|_| model.act()).collect();
    assert_eq!(steps[1], PrimaryStep::Wait(PrimaryWait::NoCandidate));
}

#[test]
fn a_replica_is_removed_once_others_have_what_it_has() {
    let mut model = three(4);
    model.write();
    model.copies(1);
    model.spec.size = EnsembleSize::Number(2);
    model.change(1, |process| process.agent_is_dead = true);
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::LeaverStreams(number(2))));
    model.change(1, |process| process.is_dead = true);
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::Copies(number(2))));
    model.copies(2);
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::Copies(number(2))), "it may be told of later");
    model.now += 30;
    assert_eq!(model.act(), PrimaryStep::Remove(number(2), RemovalReason::Surplus));
}

#[test]
fn a_drained_replica_is_replaced_and_a_drained_primary_hands_over_before() {
    let mut model = three(4);
    let node = model.members[&number(2)].0.clone();
    model.places.get_mut(&node).unwrap().is_drained = true;
    assert_eq!(model.settle(), PrimaryStep::Rest);
    assert!(!model.members.contains_key(&number(2)) && model.members.len() == 3);
    let node = model.members[&number(1)].0.clone();
    model.places.get_mut(&node).unwrap().is_drained = true;
    model.places.values_mut().for_each(|place| place.refusal = Some("full".to_string()));
    assert_eq!(model.act(), PrimaryStep::HandOver(number(3)));
    assert_eq!(model.settle(), PrimaryStep::Wait(PrimaryWait::NoRoom { missing: 1 }));
    model.places.values_mut().for_each(|place| (place.refusal, place.is_drained) = (None, false));
    assert_eq!((model.settle(), model.record.primary), (PrimaryStep::Rest, Some(number(3))));
    model.record.handover = Some(number(4));
    assert_eq!(model.act(), PrimaryStep::HandOver(number(4)));
}

#[test]
fn a_replica_that_is_lost_has_its_own_node_again_if_there_is_no_other_and_that_node_may_have_one() {
    let mut model = three(3);
    let node = model.members[&number(2)].0.clone();
    model.change(1, |process| process.is_dead = true);
    model.now += 60;
    let lost = model.clone();
    model.places.get_mut(&node).unwrap().refusal = Some("it is unreachable".to_string());
    assert_eq!(model.act(), PrimaryStep::Wait(PrimaryWait::NoRoom { missing: 1 }));
    model = lost;
    assert_eq!(model.act(), PrimaryStep::Remove(number(2), RemovalReason::Dead));
    assert_eq!(model.act(), PrimaryStep::Add(node));
}

#[test]
fn a_primary_alone_on_a_drained_node_hands_over_to_a_new_member() {
    let mut model = Model::new(2, 1, 0);
    assert_eq!(model.settle(), PrimaryStep::Rest);
    model.write();
    let node = model.members[&number(1)].0.clone();
    model.places.get_mut(&node).unwrap().is_drained = true;
    assert_eq!(model.settle(), PrimaryStep::Rest);
    let left: Vec<_> = model.members.keys().copied().collect();
    assert_eq!((left, model.primary().unwrap().offset), ([number(2)].to_vec(), 1));
}

#[test]
fn a_primary_that_was_started_anew_is_followed_by_a_replica_or_itself_if_nobody_has_its_history() {
    let mut model = three(3);
    model.write();
    let step = |members: &Instances| next_step(&model.spec, &model.places, (&model.record, members), at(0));
    let mut members = model.instances();
    members.get_mut(&number(1)).unwrap().state = InstanceState::Restarted;
    members.get_mut(&number(1)).unwrap().is_primary = false;
    let both = [number(2), number(3)].to_vec();
    assert_eq!(step(&members), PrimaryStep::Follow(both, None), "their word that they stream is an old one");
    members.get_mut(&number(2)).unwrap().is_whole = false;
    assert_eq!(step(&members), PrimaryStep::Promote(number(1)), "what one of them lacks is on its disk");
    members.get_mut(&number(3)).unwrap().is_whole = false;
    assert_eq!(step(&members), PrimaryStep::Promote(number(1)));
    members.get_mut(&number(3)).unwrap().state = InstanceState::Silent { since: at(0) };
    let (silent, anew) = ([number(3)].to_vec(), [number(2)].to_vec());
    let too_few = PrimaryWait::TooFewReached { reached: 0, needed: 2, silent, anew, is_back: true };
    assert_eq!(step(&members), PrimaryStep::Wait(too_few), "the other one may have more");
}

#[derive(Debug, Clone)]
enum Act {
    Write,
    Copies(usize),
    Dies(usize),
    AgentDies(usize),
    Back(usize),
    Later(u64),
    Acknowledge,
    Size(u32),
    Joins,
    Step,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Write),
        5 => (0_usize..6).prop_map(Act::Copies),
        1 => (0_usize..6).prop_map(Act::Dies),
        1 => (0_usize..6).prop_map(Act::AgentDies),
        2 => (0_usize..6).prop_map(Act::Back),
        2 => (1_u64..100).prop_map(Act::Later),
        1 => Just(Act::Acknowledge),
        1 => (1_u32..6).prop_map(Act::Size),
        2 => Just(Act::Joins),
        8 => Just(Act::Step),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2_000), ..ProptestConfig::default() })]

    /// Whatever processes and agents do, no promotion loses a write that as many replicas had as it needed.
    #[test]
    fn no_acknowledged_write_is_lost_by_a_promotion(
        nodes in 2_usize..6,
        size in 1_u32..6,
        writes_needed in 0_u32..4,
        acts in proptest::collection::vec(act(), 1..120),
    ) {
        let mut model = Model::new(nodes, size, writes_needed);
        model.settle();
        for act in acts {
            match act {
                Act::Write => model.write(),
                Act::Copies(which) => model.copies(which),
                Act::Dies(which) => model.change(which, |process| process.is_dead = true),
                Act::AgentDies(which) => model.change(which, |process| process.agent_is_dead = true),
                Act::Back(which) => model.change(which, |process| {
                    (process.is_dead, process.agent_is_dead) = (false, false);
                }),
                Act::Later(seconds) => model.now += seconds,
                Act::Acknowledge => model.record.failed_over = None,
                Act::Size(size) => model.spec.size = EnsembleSize::Number(size),
                Act::Joins => model.joins(),
                Act::Step => drop(model.act()),
            }
        }
    }
}
