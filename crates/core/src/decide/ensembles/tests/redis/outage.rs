//! An outage of all machines that have a member: who is back later than another one has its time from then on.

use super::act::Act;
use super::model::Machines;
use super::{three, wait};
use crate::decide::placement::primary::PrimaryWait;
use crate::records::ensemble_members::{MemberPhase, RemovalReason};
use crate::words::counter::MemberNumber;

/// All of three were away for long, and the first ones are back.
fn back(first: &[usize]) -> Machines {
    let mut machines = three();
    (0..3).for_each(|host| machines.act(&Act::Isolate(host)));
    machines.pass(200);
    first.iter().for_each(|host| machines.act(&Act::Heal(*host)));
    machines.pass(20);
    machines
}

#[test]
fn a_replica_that_is_back_later_than_the_others_is_replaced_after_its_time_and_not_before() {
    let mut machines = back(&[0, 1]);
    let last = MemberNumber::ZERO.next().next().next();
    assert_eq!(machines.members.last, last, "the third may be back, too: {:?}", machines.members);
    assert_eq!((machines.primary_host(), machines.serving()), (Some(0), 3), "{:?}", machines.members);
    machines.pass(100);
    assert_eq!(machines.members.members[&last].phase, MemberPhase::Removed(RemovalReason::Dead));
    assert_eq!(machines.serving(), 3);
    assert!(machines.is_all_there());
}

#[test]
fn a_primary_that_is_back_later_than_its_replicas_is_followed_after_its_time_and_not_before() {
    let mut machines = back(&[1, 2]);
    assert_eq!(machines.members.lead.primary.map(|number| number.get()), Some(1), "it may be back, too");
    machines.act(&Act::Heal(0));
    machines.settle();
    assert_eq!((machines.primary_host(), machines.is_all_there()), (Some(0), true));
    let mut machines = back(&[1, 2]);
    machines.pass(100);
    assert!(machines.primary_host().is_some_and(|host| host != 0), "{:?}", machines.members);
    assert!(machines.is_all_there());
}

#[test]
fn replicas_that_were_started_anew_while_the_primary_is_away_are_not_said_to_be_away() {
    let mut machines = three();
    (0..3).for_each(|host| machines.act(&Act::Restart(host)));
    machines.act(&Act::Isolate(0));
    machines.pass(200);
    let Some(PrimaryWait::TooFewReached { reached: 0, silent, anew, .. }) = wait(&machines) else {
        panic!("{:?}", wait(&machines))
    };
    assert_eq!((silent.len(), anew.len()), (0, 2));
}

#[test]
fn a_primary_that_has_lost_all_of_its_replicas_gets_a_new_one_that_copies_its_data() {
    let mut machines = three();
    machines.act(&Act::Isolate(1));
    machines.act(&Act::Isolate(2));
    machines.act(&Act::Write);
    machines.pass(300);
    let before = machines.acknowledged();
    machines.act(&Act::Write);
    machines.act(&Act::Copy(3));
    machines.pass(1);
    assert_eq!(machines.acknowledged(), before + 1, "{:?}", machines.members);
    assert!(matches!(wait(&machines), Some(PrimaryWait::NoRoom { missing: 1 })), "for the other one");
    [1, 2].iter().for_each(|host| machines.act(&Act::Heal(*host)));
    machines.settle();
    assert!(machines.serving() == 3 && machines.is_all_there());
}
