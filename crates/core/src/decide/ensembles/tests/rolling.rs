use std::vec::Vec;

use super::CEPH;
use super::model::{Act, Installation};
use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_requests::RollingAction;
use crate::words::time::Span;

fn settled(size: u32) -> Installation {
    left_alone(Installation::new(6, EnsembleSize::Number(size)))
}

/// Its dead members are long left alone.
fn left_alone(mut installation: Installation) -> Installation {
    installation.ensemble.failover_after = Span::from_secs(10_000);
    installation.settle();
    installation
}

#[test]
fn one_after_the_other_is_restarted_the_leader_last_after_another_one_leads() {
    for size in [1, 2, 3, 5] {
        let mut installation = settled(size);
        let leader = installation.leader().expect("one leads");
        installation.ask_roll(RollingAction::Restart);
        for _ in 0..200 {
            installation.pass(1);
            let away = size as usize - installation.store.working();
            assert!(away <= 1, "{installation:?}");
            // Another server goes on with it.
            installation.act(&Act::Leader);
        }
        let restarted = installation.restarted.clone();
        assert_eq!(restarted.len(), size as usize, "each once: {restarted:?}");
        assert_eq!(restarted.last(), Some(&leader), "{restarted:?}");
        assert!(size == 1 || installation.leader() != Some(leader));
        assert!(installation.restarted_as_leader.is_empty() || size == 1);
        assert_eq!(installation.members.requests.rolling, None);
        assert_eq!(installation.decide().members, installation.members, "at rest nothing is written");
    }
}

#[test]
fn of_monitors_the_leader_is_last_and_goes_as_such_since_nobody_can_be_told_to_lead() {
    for size in [1, 2, 3, 5] {
        let mut installation = left_alone(Installation::of(6, EnsembleSize::Number(size), CEPH));
        let leader = installation.leader().expect("one leads");
        installation.ask_roll(RollingAction::Restart);
        for _ in 0..200 {
            installation.pass(1);
            assert!(installation.store.working() + 1 >= size as usize, "{installation:?}");
            assert_eq!(installation.members.change, None, "nothing is changed in the store");
            installation.act(&Act::Leader);
        }
        let restarted = installation.restarted.clone();
        assert_eq!((restarted.len(), restarted.last()), (size as usize, Some(&leader)), "{restarted:?}");
        assert_eq!(installation.restarted_as_leader, [leader]);
        assert_eq!(installation.members.requests.rolling, None);
        assert_eq!(installation.decide().members, installation.members, "at rest nothing is written");
    }
}

#[test]
fn one_that_does_not_work_is_first_and_the_others_wait_until_it_does() {
    let mut installation = settled(3);
    let nodes: Vec<_> = installation.members.members.values().map(|member| member.node.clone()).collect();
    let host = (0..6).find(|host| installation.name(*host) == nodes[2]).expect("the node is there");
    installation.act(&Act::Break(host, true));
    installation.pass(5);
    installation.ask_roll(RollingAction::Restart);
    installation.pass(100);
    assert_eq!(installation.restarted.iter().map(|number| number.get()).collect::<Vec<_>>(), [3]);
    assert_eq!(installation.store.working(), 2, "no other one is stopped");
    installation.act(&Act::Break(host, false));
    installation.pass(100);
    assert_eq!(installation.restarted.len(), 3);
    assert_eq!((installation.store.working(), installation.members.requests.rolling.clone()), (3, None));
}

#[test]
fn nobody_is_restarted_while_another_node_is_away_and_who_is_replaced_meanwhile_is_not_waited_for() {
    let mut installation = settled(3);
    let nodes: Vec<_> = installation.members.members.values().map(|member| member.node.clone()).collect();
    installation.cut_node(&nodes[1], true);
    installation.pass(5);
    installation.ask_roll(RollingAction::Restart);
    installation.pass(500);
    assert!(installation.restarted.is_empty());
    installation.ensemble.failover_after = Span::from_secs(30);
    installation.pass(200);
    let restarted: Vec<u64> = installation.restarted.iter().map(|number| number.get()).collect();
    assert_eq!((restarted.len(), installation.members.requests.rolling.clone()), (2, None));
    assert!(!restarted.contains(&2) && !restarted.contains(&4), "a new one runs the new program");
}

#[test]
fn one_that_is_defragmented_for_longer_than_anybody_waits_is_not_replaced_and_the_leader_is_last() {
    for size in [1, 3, 5] {
        let mut installation = Installation::new(6, EnsembleSize::Number(size));
        installation.settle();
        let (leader, before) =
            (installation.leader().expect("one leads"), installation.members.members.clone());
        installation.ask_roll(RollingAction::Defragment);
        for _ in 0..600 {
            installation.pass(1);
            assert!(installation.store.working() + 1 >= size as usize, "{installation:?}");
            assert_eq!(installation.members.members.len(), before.len(), "nobody is replaced");
            installation.act(&Act::Leader);
        }
        let defragmented = installation.restarted.clone();
        assert_eq!((defragmented.len(), defragmented.last()), (size as usize, Some(&leader)));
        assert!(installation.restarted_as_leader.is_empty() || size == 1);
        assert_eq!(installation.members.requests.rolling, None);
        assert_eq!(installation.decide().members, installation.members, "at rest nothing is written");
    }
}

#[test]
fn one_that_does_not_work_is_not_defragmented_and_neither_are_the_others_before_it_does() {
    let mut installation = settled(3);
    let nodes: Vec<_> = installation.members.members.values().map(|member| member.node.clone()).collect();
    let host = (0..6).find(|host| installation.name(*host) == nodes[2]).expect("the node is there");
    installation.act(&Act::Break(host, true));
    installation.pass(5);
    installation.ask_roll(RollingAction::Defragment);
    installation.pass(200);
    assert!(installation.restarted.is_empty());
    installation.act(&Act::Break(host, false));
    installation.pass(400);
    assert_eq!((installation.restarted.len(), &installation.members.requests.rolling), (3, &None));
}

#[test]
fn one_in_the_middle_of_its_defragmentation_is_not_replaced_though_that_is_withdrawn() {
    let mut installation = Installation::new(6, EnsembleSize::Number(3));
    installation.settle();
    let before = installation.members.members.clone();
    installation.ask_roll(RollingAction::Defragment);
    installation.pass(5);
    assert_eq!((installation.restarted.len(), installation.store.working()), (1, 2));
    installation.members.requests.rolling = None;
    for _ in 0..100 {
        installation.pass(1);
        assert_eq!(installation.members.members.len(), before.len(), "nobody is replaced");
    }
    assert_eq!((installation.restarted.len(), installation.store.working()), (1, 3));
}
