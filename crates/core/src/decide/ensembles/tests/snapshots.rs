use std::collections::BTreeSet;
use std::vec::Vec;

use super::model::{Act, Installation};
use crate::records::annotation::Annotation;
use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_snapshots::{EnsembleSnapshots, SnapshotPolicy};
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};

fn settled(every: Option<Span>, keep: u32) -> Installation {
    let mut installation = Installation::new(4, EnsembleSize::Number(3));
    installation.settle();
    installation.ensemble.snapshots = SnapshotPolicy { every, keep };
    installation
}

fn asked(installation: &mut Installation) {
    let by = Annotation::of("ann".parse().unwrap(), Timestamp::from_millis(installation.now * 1_000));
    installation.members.snapshots.requested = Some(by);
}

fn numbers(snapshots: &EnsembleSnapshots) -> Vec<u64> {
    snapshots.taken.iter().map(|taken| taken.id.number.get()).collect()
}

/// The node of the member that takes one.
fn taker(installation: &Installation) -> NodeName {
    let ordered = installation.members.snapshots.ordered.as_ref().expect("one is ordered");
    installation.members.members[&ordered.by].node.clone()
}

#[test]
fn what_somebody_asks_for_is_taken_once_by_a_follower_and_only_the_latest_are_kept() {
    let mut installation = settled(None, 2);
    installation.pass(1_000);
    assert_eq!(installation.members.snapshots, EnsembleSnapshots::default());
    for _ in 0..4 {
        asked(&mut installation);
        installation.control();
        let by = installation.members.snapshots.ordered.clone().expect("it is ordered").by;
        let nodes = installation.members.orders().collect::<Vec<_>>();
        let taking: Vec<_> = nodes.iter().filter(|(_, order)| order.snapshots.take.is_some()).collect();
        assert!(taking.len() == 1 && taking[0].1.number == by);
        assert_ne!(by.get(), 1, "the first leads");
        installation.pass(5);
    }
    let snapshots = &installation.members.snapshots;
    assert_eq!((numbers(snapshots), snapshots.requested.clone()), ([3, 4].to_vec(), None));
    for (node, order) in installation.members.orders() {
        let kept: Vec<_> = snapshots.taken.iter().filter(|taken| taken.node == *node).collect();
        assert_eq!(order.snapshots.kept.len(), kept.len());
    }
}

#[test]
fn scheduled_ones_are_taken_in_time_and_lie_on_several_nodes() {
    let mut installation = settled(Some(Span::from_secs(100)), 4);
    installation.pass(1_000);
    let snapshots = &installation.members.snapshots;
    assert_eq!(snapshots.taken.len(), 4);
    assert!((9..=10).contains(&snapshots.last.get()), "{snapshots:?}");
    let nodes: BTreeSet<_> = snapshots.taken.iter().map(|taken| taken.node.clone()).collect();
    assert_eq!(nodes.len(), 2, "the leader is spared");
    let between = snapshots.taken.windows(2).map(|two| two[1].id.at.since(two[0].id.at));
    assert!(between.into_iter().all(|time| time == Span::from_secs(100)), "{snapshots:?}");
}

#[test]
fn one_that_fails_is_told_and_tried_again_and_one_whose_member_is_gone_is_taken_by_another() {
    let mut installation = settled(Some(Span::from_secs(10_000)), 4);
    installation.pass(5);
    assert_eq!(numbers(&installation.members.snapshots), [1]);
    (0..4).for_each(|host| installation.act(&Act::Lack(host, true)));
    asked(&mut installation);
    installation.pass(5);
    let failure = installation.members.snapshots.failure.clone().expect("it failed");
    assert_eq!((failure.id.number.get(), failure.reason.as_str()), (2, "no space left"));
    (0..4).for_each(|host| installation.act(&Act::Lack(host, false)));
    installation.pass(600);
    let snapshots = &installation.members.snapshots;
    assert_eq!((numbers(snapshots), snapshots.failure.clone()), ([1, 3].to_vec(), None));

    asked(&mut installation);
    installation.control();
    let node = taker(&installation);
    installation.cut_node(&node, true);
    installation.pass(70);
    assert!(installation.members.snapshots.failure.is_some());
    asked(&mut installation);
    installation.pass(5);
    let last = installation.members.snapshots.taken.last().expect("another one took it");
    assert!(last.node != node && last.id.number.get() == 5, "{last:?}");
}

#[test]
fn while_nobody_works_the_wish_waits() {
    let mut installation = settled(None, 2);
    (0..4).for_each(|host| installation.act(&Act::Suspect(host, true)));
    asked(&mut installation);
    installation.pass(20);
    assert!(installation.members.snapshots.requested.is_some());
    installation.mend();
    installation.pass(20);
    assert_eq!(numbers(&installation.members.snapshots), [1]);
}
