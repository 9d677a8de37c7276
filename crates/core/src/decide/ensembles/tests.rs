mod adoption;
mod independent;
mod model;
mod outage;
mod redis;
mod replace;
mod restore;
mod rolling;
mod snapshots;

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use self::model::{Act, Installation};
use super::EnsembleStep;
use crate::decide::placement::quorum::{QuorumStep, QuorumWait};
use crate::records::ensemble::{CephSettings, EnsembleMode, EnsembleService, EnsembleSize};
use crate::records::ensemble_requests::RollingAction;

const CEPH: EnsembleService =
    EnsembleService::Ceph(CephSettings { port: 3300, replicas: 3, devices: BTreeSet::new() });

#[test]
fn the_first_member_serves_before_the_second_is_added_and_each_votes_before_the_next() {
    let mut installation = Installation::new(5, EnsembleSize::Number(1));
    installation.settle();
    assert_eq!(installation.store.voters(), 1);
    for size in [3, 5] {
        installation.ensemble.size = EnsembleSize::Number(size);
        installation.settle();
        assert_eq!(installation.store.voters(), size as usize, "{:?}", installation.members);
    }
    installation.ensemble.size = EnsembleSize::Number(1);
    installation.settle();
    assert_eq!(installation.store.voters(), 1);
    assert_eq!(installation.members.members.len(), 1, "what left is forgotten: {:?}", installation.members);
    assert_eq!(installation.bootstraps, 1);
}

#[test]
fn a_member_that_lost_its_data_is_replaced_after_its_time_and_never_started_as_the_first() {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    installation.settle();
    let before = installation.members.clone();
    let (wiped, member) = before.members.first_key_value().expect("it has members");
    let host = (0..4).find(|host| installation.name(*host) == member.node).expect("the node is there");
    installation.act(&Act::Wipe(host));
    installation.pass(20);
    assert_eq!(installation.members, before, "it may be back");
    installation.settle();
    let after = &installation.members.members;
    assert_eq!((after.len(), installation.store.voters(), installation.bootstraps), (3, 3, 1));
    let next = before.last.next();
    assert!(!after.contains_key(wiped) && after.contains_key(&next), "{after:?}");
}

#[test]
fn a_member_that_lost_its_data_is_replaced_on_its_own_node_if_there_is_no_other() {
    let mut installation = Installation::new(3, EnsembleSize::Number(3));
    installation.settle();
    installation.act(&Act::Wipe(0));
    installation.settle();
    let numbers: Vec<u64> = installation.members.members.keys().map(|number| number.get()).collect();
    assert_eq!((installation.store.working(), numbers.len(), numbers.last()), (3, 3, Some(&4)));
}

#[test]
fn a_first_that_was_never_started_does_not_keep_another_from_being_the_first() {
    let mut installation = Installation::new(3, EnsembleSize::Number(1));
    installation.control();
    let node = installation.members.members.values().next().map(|member| member.node.clone());
    let node = node.expect("one is ordered");
    installation.cut_node(&node, true);
    installation.pass(200);
    assert_eq!((installation.bootstraps, installation.store.voters()), (1, 1), "{:?}", installation.members);
    assert!(installation.members.members.values().any(|member| member.node != node));
}

#[test]
fn a_node_that_refuses_a_member_is_passed_over_and_kept_waiting_for_if_there_is_no_other() {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    let lacking = installation.name(0);
    installation.act(&Act::Lack(0, true));
    installation.settle();
    let is_there = |installation: &Installation| {
        installation.members.members.values().any(|member| member.node == lacking)
    };
    assert_eq!((installation.store.voters(), is_there(&installation)), (3, false));
    assert!(installation.now < 100 + 60, "nobody waits until it would have joined: {}", installation.now);
    installation.ensemble.size = EnsembleSize::Number(4);
    installation.pass(500);
    let last = installation.members.last;
    installation.pass(500);
    assert_eq!((installation.store.voters(), is_there(&installation)), (3, true));
    assert_eq!(installation.members.last, last, "it is not ordered again and again");
    installation.act(&Act::Lack(0, false));
    installation.settle();
    assert_eq!((installation.store.voters(), installation.members.refused.len()), (4, 0));
}

#[test]
fn of_three_two_that_are_cut_off_are_left_alone_however_long() {
    let mut installation = Installation::new(5, EnsembleSize::Number(3));
    installation.settle();
    let before = installation.members.clone();
    let nodes: Vec<_> = before.members.values().map(|member| member.node.clone()).collect();
    for node in nodes.iter().skip(1) {
        installation.cut_node(node, true);
    }
    installation.pass(10_000);
    assert_eq!(installation.members.members, before.members);
    let step = installation.decide().step;
    assert!(
        matches!(
            step,
            EnsembleStep::Quorum(QuorumStep::Wait(QuorumWait::QuorumLost { working: 0, voters: 3, .. }))
        ),
        "{step:?}"
    );
}

#[test]
fn one_that_works_and_lacks_the_others_is_not_removed_before_these_are_known_to_be_gone() {
    let mut installation = Installation::new(5, EnsembleSize::Number(3));
    installation.settle();
    let before = installation.members.clone();
    let nodes: Vec<_> = before.members.values().map(|member| member.node.clone()).collect();
    for number in 0..5 {
        let is_cut_off = nodes.iter().skip(1).any(|node| *node == installation.name(number));
        installation.act(&Act::Suspect(number, is_cut_off));
    }
    installation.pass(200);
    assert_eq!(installation.members.members, before.members);
    for node in nodes.iter().skip(1) {
        installation.cut_node(node, true);
    }
    installation.pass(10_000);
    assert_eq!(installation.members.members, before.members);
}

#[test]
fn a_list_from_before_a_member_voted_does_not_say_that_it_is_not_counted() {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    installation.settle();
    let (number, newest) = installation.members.members.last_key_value().expect("it has members");
    let (number, newest) = (*number, newest.clone());
    installation.cut_node(&newest.node, true);
    installation.report_old_lists(&newest.store_id.expect("it has an id"));
    let phase = installation.decide().members.members.get(&number).map(|member| member.phase.as_str());
    assert_eq!(phase, Some("voting"));
}

#[test]
fn an_ensemble_that_has_served_is_never_founded_again_whoever_is_left_of_it() {
    let mut installation = Installation::new(3, EnsembleSize::Number(1));
    installation.settle();
    let node = installation.members.members.values().map(|member| member.node.clone()).next();
    installation.cut_node(&node.expect("it has a member"), true);
    installation.members.members.clear();
    installation.pass(500);
    assert_eq!(installation.bootstraps, 1);
}

#[test]
fn a_store_that_a_person_founded_anew_from_one_member_is_believed_and_grows_again() {
    let mut installation = Installation::new(5, EnsembleSize::Number(3));
    installation.settle();
    let nodes: Vec<_> = installation.members.members.values().map(|member| member.node.clone()).collect();
    nodes.iter().skip(1).for_each(|node| installation.cut_node(node, true));
    installation.pass(200);
    assert_eq!(installation.store.voters(), 3, "nobody removes what nobody can");
    installation.found_anew(&nodes[0]);
    installation.pass(200);
    let voting = |installation: &Installation| {
        installation.members.members.values().filter(|member| member.phase.as_str() == "voting").count()
    };
    assert_eq!((installation.store.voters(), voting(&installation)), (3, 3), "{:?}", installation.members);
    nodes.iter().for_each(|node| installation.cut_node(node, false));
    installation.settle();
    assert_eq!((installation.store.working(), installation.bootstraps), (3, 1));
}

#[test]
fn a_list_without_a_member_is_no_evidence_that_it_was_removed() {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    installation.settle();
    installation.ensemble.size = EnsembleSize::Number(1);
    installation.control();
    let leaving = installation.members.members.iter().find(|(_, member)| member.phase.as_str() == "leaving");
    let (number, member) = leaving.map(|(number, member)| (*number, member.clone())).expect("one leaves");
    let id = member.store_id.expect("it has an id");
    let phase = |installation: &Installation| {
        installation.decide().members.members.get(&number).map(|member| member.phase.as_str())
    };
    installation.report_old_lists(&id);
    assert_eq!(phase(&installation), Some("leaving"), "they may be from before it was added");
    installation.work_only_orders();
    installation.report_all();
    assert_eq!(phase(&installation), Some("removed"), "the one that removed it says so");
}

#[test]
fn an_outage_of_the_control_plane_replaces_nobody() {
    let mut installation = Installation::new(5, EnsembleSize::Number(3));
    installation.settle();
    let before = installation.members.clone();
    let node = before.members.values().map(|member| member.node.clone()).next();
    if let Some(node) = &node {
        installation.cut_node(node, true);
    }
    // Nobody listened meanwhile, and the next leader has just begun to.
    installation.now += 100_000;
    installation.act(&Act::Leader);
    installation.pass(1);
    assert_eq!(installation.members, before);
}

#[test]
fn the_first_that_is_never_heard_of_again_keeps_others_from_being_the_first() {
    let mut installation = Installation::new(3, EnsembleSize::Number(3));
    // It is ordered to be the first, and does it, and nobody hears of it.
    for _ in 0..50 {
        installation.work_only_orders();
        if installation.bootstraps > 0 {
            break;
        }
        installation.report_all();
        installation.control();
    }
    let node = installation.members.members.values().next().map(|member| member.node.clone());
    if let Some(node) = &node {
        installation.cut_node(node, true);
    }
    installation.pass(10_000);
    assert_eq!((installation.bootstraps, installation.members.members.len()), (1, 1));
    if let Some(node) = &node {
        installation.cut_node(node, false);
    }
    installation.settle();
    assert_eq!((installation.bootstraps, installation.store.voters()), (1, 3), "{:?}", installation.members);
}

#[test]
fn an_ensemble_that_is_not_managed_is_left_as_it_is() {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    installation.settle();
    let before = installation.members.clone();
    installation.ensemble.mode = EnsembleMode::Unmanaged;
    installation.ensemble.size = EnsembleSize::Number(1);
    installation.pass(1_000);
    assert_eq!(installation.members, before);
}

#[test]
fn a_change_that_has_begun_is_not_made_while_the_ensemble_is_not_managed() {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    installation.settle();
    installation.ensemble.size = EnsembleSize::Number(1);
    installation.control();
    assert!(installation.members.members.values().any(|member| member.phase.as_str() == "leaving"));
    installation.ensemble.mode = EnsembleMode::Unmanaged;
    installation.control();
    installation.pass(1_000);
    assert_eq!(installation.store.voters(), 3);
    installation.ensemble.mode = EnsembleMode::Managed;
    installation.settle();
    assert_eq!(installation.store.voters(), 1);
}

#[test]
fn a_member_that_joins_by_itself_does_so_before_the_one_leaves_whose_place_it_takes() {
    let mut installation = Installation::of(5, EnsembleSize::Quorum, CEPH);
    installation.settle();
    assert_eq!((installation.store.voters(), installation.bootstraps), (3, 1));
    let (first, member) = installation.members.members.first_key_value().expect("it has members");
    let (first, node) = (*first, member.node.clone());
    installation.cut_node(&node, true);
    installation.pass(29);
    assert_eq!(installation.members.last.get(), 3, "it may be back");
    let mut most = 0;
    for _ in 0..60 {
        installation.pass(1);
        most = most.max(installation.store.voters());
        assert!(installation.store.working() >= 2);
    }
    let after = &installation.members.members;
    assert!(most == 4 && installation.store.voters() == 3, "{after:?}");
    assert!(after[&first].phase.as_str() == "removed", "its node is to stop it: {after:?}");
    installation.cut_node(&node, false);
    installation.settle();
    assert_eq!((installation.store.working(), installation.members.last.get()), (3, 4));
}

/// Whether a disk or a person took data.
fn is_taken(act: &Act) -> bool {
    matches!(act, Act::Wipe(_) | Act::Decommission(_))
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let node = 0_usize..7;
    let act = prop_oneof![
        8 => (1_u64..40).prop_map(Act::Pass),
        2 => (node.clone(), any::<bool>()).prop_map(|(node, cut)| Act::Cut(node, cut)),
        2 => node.clone().prop_map(Act::Kill),
        1 => node.clone().prop_map(Act::Wipe),
        2 => (node.clone(), any::<bool>()).prop_map(|(node, is)| Act::Drain(node, is)),
        2 => (1_u32..6).prop_map(Act::Size),
        1 => node.clone().prop_map(Act::Decommission),
        1 => Just(Act::Leader),
        2 => (node.clone(), any::<bool>()).prop_map(|(node, lacks)| Act::Lack(node, lacks)),
        2 => (node.clone(), any::<bool>()).prop_map(|(node, is)| Act::Suspect(node, is)),
        1 => (node.clone(), any::<bool>()).prop_map(|(node, is)| Act::Break(node, is)),
        1 => prop_oneof![Just(Act::Roll(RollingAction::Restart)), Just(Act::Roll(RollingAction::Defragment))],
        2 => node.clone().prop_map(Act::Replace),
        2 => node.prop_map(Act::Stale),
    ];
    prop::collection::vec(act, 0..60)
}

proptest! {
    /// The same where members join by themselves: it is founded once, and once all is well, all are there.
    #[test]
    fn histories_of_members_that_join_by_themselves_come_to_rest(nodes in 1_usize..7, acts in acts()) {
        let mut installation = Installation::of(nodes, EnsembleSize::Number(3), CEPH);
        for act in acts.iter().filter(|act| !matches!(act, Act::Roll(_))) {
            installation.act(act);
        }
        if installation.is_lost() {
            prop_assert!(acts.iter().any(is_taken), "it is lost by our own hand: {:?}", installation);
            return Ok(());
        }
        installation.mend();
        installation.settle();
        prop_assert_eq!(installation.store.working(), installation.wanted(), "{:?}", installation);
        // What was wiped, or broke for long, before anybody had heard that it was founded is founded again.
        let has = |is: fn(&Act) -> bool| acts.iter().any(is);
        let is_wiped = has(|act| matches!(act, Act::Wipe(_)));
        let is_unheard = has(|act| matches!(act, Act::Stale(_))) && has(|act| matches!(act, Act::Break(_, true)));
        prop_assert!(installation.bootstraps <= 1 || is_wiped || is_unheard);
        prop_assert_eq!(installation.decide().members, installation.members, "at rest nothing is written");
    }

    /// Whatever nodes do, the store is founded once, no number is given twice, and no data are set aside that the store counts on: it is
    /// lost only with data that a disk or a person took. Once all is well, all members are there, and nothing is written any more.
    #[test]
    fn histories_keep_the_quorum_and_come_to_rest(nodes in 1_usize..7, acts in acts()) {
        let mut installation = Installation::new(nodes, EnsembleSize::Number(3));
        for act in &acts {
            installation.act(act);
        }
        if installation.is_lost() {
            // A person has to see to it.
            prop_assert!(acts.iter().any(is_taken), "it is lost by our own hand: {:?}", installation);
            return Ok(());
        }
        installation.mend();
        installation.settle();
        let wanted = installation.wanted();
        // One on a node that is gone for good still counts while there is no node for its replacement.
        prop_assert_eq!(installation.store.working(), wanted, "{:?}", installation);
        let requests = &installation.members.requests;
        prop_assert!(requests.replace.is_empty(), "{:?}", installation);
        let is_whole = installation.store.working() == installation.store.voters();
        prop_assert!(!is_whole || requests.rolling.is_none(), "{:?}", installation);
        prop_assert_eq!(installation.decide().members, installation.members, "at rest nothing is written");
    }
}
