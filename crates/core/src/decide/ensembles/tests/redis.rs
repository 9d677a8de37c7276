//! Histories of an ensemble of Redis: machines, agents and processes die, are cut off and come back while a client writes.

mod act;
mod agents;
mod cut_off;
mod decommissioned;
mod model;
mod outage;
mod replace;

use std::vec::Vec;

use proptest::prelude::*;

use self::act::Act;
use self::model::Machines;
use crate::decide::ensembles::EnsembleStep;
use crate::decide::placement::primary::{PrimaryStep, PrimaryWait};
use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_members::{MemberPhase, RemovalReason};

/// What is waited for.
fn wait(machines: &Machines) -> Option<PrimaryWait> {
    let EnsembleStep::Primary(PrimaryStep::Wait(wait)) = machines.decide().step else { return None };
    Some(wait)
}

fn three() -> Machines {
    let mut machines = Machines::new(4, 3, 1);
    machines.settle();
    assert_eq!(machines.serving(), 3);
    machines.act(&Act::Write);
    machines.pass(1);
    assert_eq!(machines.acknowledged(), 1);
    machines
}

#[test]
fn members_come_one_after_the_other_and_follow_the_first() {
    let mut machines = Machines::new(5, 1, 1);
    for size in [1, 3, 5, 2] {
        machines.ensemble.size = EnsembleSize::Number(size);
        machines.settle();
        assert_eq!((machines.serving(), machines.members.members.len()), (size as usize, size as usize));
        assert_eq!(machines.primary_host(), Some(0), "the primary stays");
    }
}

#[test]
fn a_primary_that_is_started_anew_is_followed_by_a_replica_at_once_and_the_next_one_waits_for_a_person() {
    let mut machines = three();
    machines.act(&Act::Restart(0));
    machines.pass(5);
    let second = machines.primary_host().unwrap();
    assert_ne!(second, 0);
    machines.settle();
    machines.act(&Act::Restart(second));
    machines.pass(5);
    let step = machines.decide().step;
    assert!(matches!(step, EnsembleStep::Primary(PrimaryStep::Wait(PrimaryWait::Quiet { .. }))), "{step:?}");
    machines.members.lead.failed_over = None;
    machines.settle();
    assert_ne!(machines.primary_host().unwrap(), second);
    assert!(machines.is_all_there());
}

#[test]
fn a_primary_whose_program_ended_is_followed_at_once_also_if_it_is_not_started_again() {
    let mut machines = three();
    machines.act(&Act::End(0, 1_000));
    machines.pass(5);
    assert_ne!(machines.primary_host().unwrap(), 0);
    assert!(machines.is_all_there());
}

#[test]
fn after_a_power_failure_of_all_the_former_primary_goes_on_with_what_is_on_its_disk() {
    let mut machines = three();
    let primary = machines.primary_host();
    for host in 0..4 {
        machines.act(&Act::Restart(host));
    }
    machines.settle();
    assert_eq!((machines.primary_host(), machines.is_all_there()), (primary, true));
}

#[test]
fn a_former_primary_that_has_lost_writes_does_not_empty_those_that_have_them() {
    let mut machines = three();
    for host in 0..4 {
        machines.act(&Act::Restart(host));
    }
    machines.forget(0);
    machines.pass(60);
    let step = machines.decide().step;
    assert!(
        matches!(step, EnsembleStep::Primary(PrimaryStep::Wait(PrimaryWait::OthersHaveMore(_)))),
        "{step:?}"
    );
    assert!(machines.is_somewhere() && machines.members.lead.is_held);
}

#[test]
fn a_silent_replica_is_replaced_after_its_time_unless_it_still_gets_data() {
    let mut machines = three();
    let replica = (0..4).find(|host| machines.is_replica(*host)).unwrap();
    machines.act(&Act::Cut(replica));
    machines.pass(60);
    let step = machines.decide().step;
    assert!(
        matches!(step, EnsembleStep::Primary(PrimaryStep::Wait(PrimaryWait::LeaverStreams(_)))),
        "{step:?}"
    );
    assert!(!machines.members.lead.is_held, "the primary works");
    machines.act(&Act::Isolate(replica));
    machines.pass(60);
    let removed = machines
        .members
        .members
        .values()
        .any(|member| member.phase == MemberPhase::Removed(RemovalReason::Dead));
    assert!(removed && machines.serving() == 3, "{:?}", machines.members.members);
    machines.act(&Act::Heal(replica));
    machines.settle();
    assert!(machines.is_all_there());
}

#[test]
fn a_primary_that_is_cut_off_with_its_machine_is_followed_and_comes_back_as_a_replica() {
    let mut machines = three();
    machines.act(&Act::Isolate(0));
    machines.pass(20);
    assert_eq!(machines.members.lead.primary.map(|number| number.get()), Some(1), "it may be back");
    machines.pass(30);
    assert_ne!(machines.primary_host(), Some(0));
    machines.act(&Act::Heal(0));
    machines.settle();
    assert_ne!(machines.primary_host(), Some(0));
    assert!(machines.is_all_there() && machines.serving() == 3);
}

#[test]
fn a_primary_that_is_lost_with_its_first_write_on_its_first_replica_is_followed_by_that() {
    let mut machines = Machines::new(3, 1, 1);
    machines.settle();
    let primary = machines.primary_host().unwrap();
    machines.ensemble.size = EnsembleSize::Number(2);
    let follows = |machines: &Machines| (0..3).find(|host| machines.is_replica(*host));
    while follows(&machines).is_none() {
        machines.pass(1);
    }
    // It has begun another history, and has not told.
    let replica = follows(&machines).unwrap();
    for act in [Act::Copy(replica), Act::Write, Act::Copy(replica)] {
        machines.act(&act);
    }
    machines.tell(replica);
    machines.act(&Act::Isolate(primary));
    machines.control();
    assert_eq!(machines.acknowledged(), 1);
    machines.pass(60);
    assert_eq!((machines.primary_host(), machines.is_all_there()), (Some(replica), true));
}

#[test]
fn a_primary_that_cannot_write_to_its_disk_hands_over_after_a_time_and_only_to_one_that_can() {
    let mut machines = three();
    let full = machines.primary_host().unwrap();
    machines.act(&Act::Fill(full));
    machines.pass(5);
    let waits = |machines: &Machines| {
        let step = machines.decide().step;
        let EnsembleStep::Primary(PrimaryStep::Wait(PrimaryWait::Blocked { until, .. })) = step else {
            return None;
        };
        Some(until.is_some())
    };
    assert_eq!((machines.primary_host(), waits(&machines)), (Some(full), Some(true)));
    machines.settle();
    let next = machines.primary_host().unwrap();
    assert!(next != full && machines.is_all_there() && machines.members.lead.blocked_since.is_none());
    // Nobody else has room either.
    for host in (0..3).filter(|host| *host != full) {
        machines.act(&Act::Fill(host));
    }
    machines.pass(120);
    assert_eq!((machines.primary_host(), waits(&machines)), (Some(next), Some(false)));
    machines.act(&Act::Fill(next));
    machines.settle();
    assert_eq!((machines.primary_host(), machines.members.lead.blocked_since), (Some(next), None));
}

#[test]
fn a_primary_whose_agent_can_store_no_order_on_its_full_disk_is_left_by_its_replicas_after_a_time() {
    let mut machines = three();
    let full = machines.primary_host().unwrap();
    machines.act(&Act::FillAll(full));
    machines.pass(5);
    assert_eq!(machines.primary_host(), Some(full), "it may find room");
    machines.pass(120);
    let next = machines.primary_host().unwrap();
    assert!(next != full && machines.is_all_there() && machines.events.contains(&"ensemble.primary_changed"));
    assert!(machines.members.lead.failed_over.is_some(), "it has not handed over");
    // With room it follows.
    machines.act(&Act::Fill(full));
    machines.settle();
    assert_eq!((machines.primary_host(), machines.serving()), (Some(next), 3));
    assert!(machines.is_all_there());
}

#[test]
fn of_one_that_is_scaled_to_its_primary_alone_the_replica_with_the_last_write_stays_until_another_one_has_it()
{
    let mut machines = Machines::new(3, 3, 1);
    machines.settle();
    // One replica is cut off from its peers, and the agent of the other one, which has the write, is silent.
    for act in [Act::CutPeers(2), Act::Cut(1), Act::Write] {
        machines.act(&act);
    }
    machines.pass(1);
    assert_eq!((machines.primary_host(), machines.acknowledged()), (Some(0), 1));
    for act in [Act::CutPeers(1), Act::Size(1)] {
        machines.act(&act);
    }
    machines.pass(60);
    assert!(matches!(wait(&machines), Some(PrimaryWait::Copies(_))), "{:?}", wait(&machines));
    machines.act(&Act::Restart(0));
    machines.pass(5);
    assert!(matches!(wait(&machines), Some(PrimaryWait::TooFewReached { .. })), "{:?}", wait(&machines));
    machines.mend();
    machines.settle();
    assert!(machines.is_all_there() && machines.serving() == 1, "{:?}", machines.members);
}

#[test]
fn a_primary_on_a_drained_node_hands_over_and_leaves() {
    let mut machines = three();
    machines.act(&Act::Drain(0));
    machines.settle();
    assert_ne!(machines.primary_host(), Some(0));
    assert!(
        machines.is_all_there() && machines.serving() == 3 && machines.members.lead.failed_over.is_none()
    );
}

#[test]
fn of_a_restart_on_request_the_primary_is_last_after_it_has_handed_over_and_one_that_is_alone_goes_on() {
    let mut machines = three();
    let primary = machines.members.lead.primary;
    machines.act(&Act::RestartAll);
    machines.settle();
    let restarted: Vec<_> = machines.restarts.iter().map(|(number, _)| Some(*number)).collect();
    assert_eq!((restarted.len(), restarted.last()), (3, Some(&primary)), "{restarted:?}");
    assert!(machines.restarts.iter().all(|(_, was_primary)| !was_primary));
    assert!(
        machines.is_all_there() && machines.serving() == 3 && machines.members.lead.failed_over.is_none()
    );
    assert_ne!(machines.members.lead.primary, primary);

    let mut machines = Machines::new(3, 1, 0);
    machines.settle();
    machines.act(&Act::Write);
    machines.act(&Act::RestartAll);
    machines.settle();
    assert_eq!((machines.restarts.len(), machines.serving()), (1, 1));
    assert!(machines.primary_host().is_some() && machines.is_all_there());
}

fn act() -> impl Strategy<Value = Act> {
    let host = || 0_usize..5;
    let quiet = prop_oneof![
        6 => Just(Act::Write),
        5 => host().prop_map(Act::Copy),
        6 => (1_u64..4).prop_map(Act::Pass),
        2 => (20_u64..45).prop_map(Act::Pass),
    ];
    let loud = prop_oneof![
        2 => host().prop_map(Act::Restart),
        2 => (host(), 1_u64..40).prop_map(|(host, seconds)| Act::End(host, seconds)),
        2 => host().prop_map(Act::Cut),
        3 => prop_oneof![2 => host().prop_map(Act::Isolate), 1 => host().prop_map(Act::CutPeers)],
        3 => host().prop_map(Act::Heal),
        2 => prop_oneof![host().prop_map(Act::Drain), host().prop_map(Act::Fill), host().prop_map(Act::FillAll)],
        1 => (1_u32..6).prop_map(Act::Size),
        1 => Just(Act::Acknowledge),
        2 => prop_oneof![host().prop_map(Act::HandOver), Just(Act::Withdraw)],
        3 => prop_oneof![1 => Just(Act::RestartAll), 2 => host().prop_map(Act::Replace)],
    ];
    prop_oneof![3 => quiet, 1 => loud]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]

    /// Whatever happens to machines, agents and processes, no write is lost that as many replicas had as it needed; a second pass writes
    /// nothing, and no number is given twice.
    #[test]
    fn no_write_that_a_replica_had_is_lost(
        nodes in 3_usize..6,
        size in 2_u32..5,
        acts in proptest::collection::vec(act(), 1..80),
    ) {
        let mut machines = Machines::new(nodes, size, 1);
        machines.settle();
        for act in &acts {
            machines.act(act);
        }
        machines.mend();
        machines.settle();
        let step = machines.decide().step;
        if let EnsembleStep::Primary(PrimaryStep::Wait(PrimaryWait::OthersHaveMore(_))) = step {
            // A person names the one to go on with, and nothing has been overwritten.
            prop_assert!(machines.is_somewhere(), "{:?}", machines.members);
            return Ok(());
        }
        prop_assert!(machines.primary_host().is_some(), "{step:?}");
        let (replace, restart) = (&machines.members.requests.replace, &machines.members.requests.rolling);
        let waits = matches!(&step, EnsembleStep::Primary(PrimaryStep::Wait(
            PrimaryWait::NoRoom { .. } | PrimaryWait::NoSuccessor(_))));
        prop_assert!(replace.is_empty() && restart.is_none() || waits, "{replace:?}, {restart:?} and {step:?}");
        prop_assert!(machines.is_all_there(), "{:?}", machines.members);
        let again: Vec<_> = machines.decide().events;
        prop_assert!(again.is_empty() && machines.decide().members == machines.members);
    }
}
