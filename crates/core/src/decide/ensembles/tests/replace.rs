use std::vec::Vec;

use super::CEPH;
use super::model::{Act, Installation};
use crate::decide::ensembles::EnsembleStep;
use crate::decide::placement::quorum::{QuorumStep, QuorumWait};
use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_members::{MemberPhase, RemovalReason};
use crate::words::name::NodeName;
use crate::words::time::Span;

/// An ensemble of three whose dead members are long left alone, and the node of its second member.
fn settled(nodes: usize, size: u32) -> (Installation, NodeName) {
    left_alone(Installation::new(nodes, EnsembleSize::Number(size)))
}

fn left_alone(mut installation: Installation) -> (Installation, NodeName) {
    let is_one = installation.ensemble.size == EnsembleSize::Number(1);
    (installation.now, installation.ensemble.failover_after) = (1_000_000, Span::from_secs(100_000));
    installation.settle();
    let members = installation.members.members.values();
    let node = members.map(|member| member.node.clone()).nth(usize::from(!is_one)).expect("it has members");
    (installation, node)
}

#[test]
fn a_member_that_works_leaves_once_another_one_votes_in_its_place() {
    for size in [1, 3] {
        let (mut installation, node) = settled(4, size);
        installation.ask_for_another(&node);
        let mut most = 0;
        while !installation.members.requests.replace.is_empty() {
            installation.pass(1);
            assert!(installation.store.working() >= size as usize, "{installation:?}");
            most = most.max(installation.store.voters());
            // Another leader goes on with it.
            installation.act(&Act::Leader);
        }
        assert_eq!(most, size as usize + 1);
        installation.settle();
        assert_eq!(installation.store.working(), size as usize);
        assert!(installation.members.members.values().all(|member| member.node != node));
    }
}

#[test]
fn a_member_that_does_not_work_is_removed_first_and_sooner_than_by_itself() {
    let (mut installation, node) = settled(4, 3);
    installation.cut_node(&node, true);
    installation.pass(20);
    installation.ask_for_another(&node);
    let step = installation.decide().step;
    assert!(
        matches!(step, EnsembleStep::Quorum(QuorumStep::Wait(QuorumWait::Silent { .. }))),
        "it may be back: {step:?}"
    );
    installation.pass(20);
    let phases: Vec<_> = installation.members.members.values().map(|member| member.phase.removal()).collect();
    assert!(phases.contains(&Some(RemovalReason::Replaced)), "{phases:?}");
    installation.settle();
    assert_eq!((installation.store.working(), installation.store.voters()), (3, 3));
    assert!(installation.members.requests.replace.is_empty());
}

#[test]
fn a_member_that_lost_its_data_gets_its_own_node_again_only_if_there_is_no_other() {
    for nodes in [3, 4] {
        let (mut installation, node) = settled(nodes, 3);
        let host = (0..nodes).find(|host| installation.name(*host) == node).expect("the node is there");
        installation.act(&Act::Wipe(host));
        installation.ask_for_another(&node);
        installation.settle();
        assert_eq!(installation.store.working(), 3, "{installation:?}");
        let is_there = installation.members.members.values().any(|member| member.node == node);
        assert_eq!(is_there, nodes == 3);
    }
}

#[test]
fn with_no_other_node_a_member_that_works_stays() {
    let (mut installation, node) = settled(3, 3);
    installation.ask_for_another(&node);
    let before = installation.members.clone();
    installation.pass(1_000);
    assert_eq!(installation.members, before);
    let step = installation.decide().step;
    assert_eq!(step, EnsembleStep::Quorum(QuorumStep::Wait(QuorumWait::NoRoom { missing: 1 })));
}

#[test]
fn a_new_member_that_votes_and_has_not_said_that_it_works_is_not_the_one_that_leaves() {
    let (mut installation, node) = settled(4, 3);
    installation.ask_for_another(&node);
    let joining = |installation: &Installation| {
        let mut members = installation.members.members.iter();
        let found = members.find(|(_, member)| matches!(member.phase, MemberPhase::Joining(_)));
        found.map(|(number, member)| (*number, member.node.clone()))
    };
    while joining(&installation).is_none() {
        installation.pass(1);
    }
    let (number, new) = joining(&installation).unwrap();
    let index = (0..4).find(|index| installation.name(*index) == new).unwrap();
    // Another member tells of it before its own node does.
    installation.act(&Act::Stale(index));
    installation.pass(5);
    assert_eq!(installation.store.voters(), 4);
    let last = installation.members.last;
    installation.act(&Act::Stale(index));
    installation.settle();
    assert_eq!((installation.members.last, installation.store.voters()), (last, 3));
    assert!(installation.members.members.contains_key(&number), "{:?}", installation.members);
    assert!(installation.members.of_node(&node).is_none());
}

#[test]
fn a_monitor_leaves_once_another_one_has_its_place_whether_it_works_or_not() {
    for is_away in [false, true] {
        let (mut installation, node) = left_alone(Installation::of(5, EnsembleSize::Number(3), CEPH));
        installation.cut_node(&node, is_away);
        installation.pass(40);
        assert_eq!(installation.store.voters(), 3, "it may be back");
        installation.ask_for_another(&node);
        let mut most = 0;
        while !installation.members.requests.replace.is_empty() {
            installation.pass(1);
            assert!(installation.store.working() >= 3 - usize::from(is_away), "{installation:?}");
            most = most.max(installation.store.voters());
            assert!(installation.now < 1_002_000, "it is replaced: {installation:?}");
        }
        assert_eq!(most, 4, "the other one joined first");
        installation.cut_node(&node, false);
        installation.settle();
        assert_eq!((installation.store.working(), installation.store.voters()), (3, 3));
        assert!(installation.members.of_node(&node).is_none());
        assert!(installation.members.refused.is_empty(), "its node may have another one");
    }
}
