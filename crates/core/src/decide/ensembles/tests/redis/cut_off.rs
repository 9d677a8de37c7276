//! Members that are heard of, and cut off from each other.

use super::act::Act;
use super::model::Machines;
use super::{three, wait};
use crate::decide::placement::primary::PrimaryWait;

/// What was told of connections.
fn told(machines: &Machines) -> std::vec::Vec<&str> {
    let of = ["ensemble.member_cut_off", "ensemble.member_reconnected"];
    machines.events.iter().copied().filter(|kind| of.contains(kind)).collect()
}

#[test]
fn a_primary_that_is_cut_off_from_its_replicas_alone_is_followed_after_its_time_and_comes_back_as_a_replica()
{
    let mut machines = three();
    let former = machines.primary_host().unwrap();
    machines.act(&Act::CutPeers(former));
    machines.pass(20);
    assert_eq!(machines.primary_host(), Some(former), "it may be connected again");
    assert!(matches!(wait(&machines), Some(PrimaryWait::Alone { until: Some(_), .. })));
    machines.act(&Act::Write);
    machines.pass(20);
    assert!(machines.primary_host().is_some_and(|host| host != former) && machines.is_all_there());
    machines.act(&Act::Heal(former));
    machines.settle();
    assert!(machines.is_replica(former) && machines.serving() == 3 && machines.is_all_there());
    assert!(machines.members.lead.cut_off.is_empty());
}

#[test]
fn a_primary_that_is_connected_again_in_time_goes_on() {
    let mut machines = three();
    let primary = machines.primary_host().unwrap();
    for _ in 0..3 {
        machines.act(&Act::CutPeers(primary));
        machines.pass(20);
        machines.act(&Act::Heal(primary));
        machines.pass(5);
    }
    machines.settle();
    assert!(machines.primary_host() == Some(primary) && machines.members.lead.failed_over.is_none());
}

#[test]
fn nobody_takes_over_from_a_primary_that_is_cut_off_within_an_hour_of_the_last_time() {
    let mut machines = three();
    let first = machines.primary_host().unwrap();
    machines.act(&Act::CutPeers(first));
    machines.pass(60);
    machines.act(&Act::Heal(first));
    machines.settle();
    let second = machines.primary_host().unwrap();
    machines.act(&Act::CutPeers(second));
    machines.pass(300);
    assert_eq!(machines.primary_host(), Some(second));
    let quiet = machines.members.lead.failed_over.unwrap();
    assert!(matches!(wait(&machines), Some(PrimaryWait::Alone { until: Some(until), .. }) if until > quiet));
    machines.act(&Act::Acknowledge);
    machines.pass(10);
    assert!(machines.primary_host().is_some_and(|host| host != second) && machines.is_all_there());
}

#[test]
fn a_replica_that_is_cut_off_alone_is_replaced_once_another_one_has_the_data() {
    let mut machines = three();
    let replica = (0..4).find(|host| machines.is_replica(*host)).unwrap();
    let primary = machines.primary_host();
    machines.act(&Act::CutPeers(replica));
    machines.pass(20);
    assert!(matches!(wait(&machines), Some(PrimaryWait::Silent { .. })), "{:?}", machines.decide().step);
    machines.act(&Act::Write);
    machines.pass(60);
    let phases: std::vec::Vec<_> =
        machines.members.members.values().map(|member| (&member.node, &member.phase)).collect();
    assert!(machines.serving() == 3 && !machines.is_replica(replica), "{phases:?}");
    assert!(machines.primary_host() == primary && machines.is_all_there());
}

#[test]
fn with_no_other_machine_a_replica_that_is_cut_off_stays() {
    let mut machines = Machines::new(3, 3, 1);
    machines.settle();
    let replica = (0..3).find(|host| machines.is_replica(*host)).unwrap();
    machines.events.clear();
    machines.act(&Act::CutPeers(replica));
    machines.pass(100);
    assert!(machines.serving() == 3 && machines.is_replica(replica));
    assert_eq!(told(&machines), ["ensemble.member_cut_off"]);
    assert_eq!(wait(&machines), Some(PrimaryWait::NoRoom { missing: 1 }));
    machines.act(&Act::Heal(replica));
    machines.settle();
    assert!(machines.is_replica(replica) && machines.members.lead.cut_off.is_empty());
    assert_eq!(told(&machines), ["ensemble.member_cut_off", "ensemble.member_reconnected"]);
}

#[test]
fn if_all_are_cut_off_from_each_other_no_member_is_replaced_and_no_write_is_lost() {
    let mut machines = three();
    (0..4).for_each(|host| machines.act(&Act::CutPeers(host)));
    machines.pass(200);
    assert_eq!((machines.serving(), machines.members.members.len()), (3, 3));
    (0..4).for_each(|host| machines.act(&Act::Heal(host)));
    machines.settle();
    assert!(machines.primary_host().is_some() && machines.is_all_there() && machines.serving() == 3);
}
