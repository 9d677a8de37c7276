use super::act::Act;
use super::model::Machines;
use super::{three, wait};
use crate::decide::placement::primary::PrimaryWait;
use crate::records::ensemble::EnsembleService;
use crate::words::time::Span;

/// Three members whose silent ones are long left alone; the agent of the primary is dead, and its Redis lives.
fn without_agent() -> Machines {
    let mut machines = three();
    (machines.now, machines.ensemble.failover_after) = (1_000_000, Span::from_secs(100_000));
    assert_eq!(machines.primary_host(), Some(0));
    machines.act(&Act::Cut(0));
    machines.pass(60);
    machines
}

#[test]
fn the_replicas_of_a_primary_whose_node_was_decommissioned_leave_it_though_it_serves_and_one_takes_over() {
    let mut machines = without_agent();
    machines.act(&Act::Write);
    machines.pass(1);
    assert_eq!((machines.primary_host(), machines.acknowledged()), (Some(0), 2), "it serves");
    machines.act(&Act::Write);
    machines.act(&Act::Copy(2));
    let before = machines.acknowledged();
    machines.act(&Act::Decommission(0));
    machines.settle();
    assert!(machines.primary_host().is_some_and(|host| host != 0), "{:?}", machines.members);
    assert!(machines.serving() == 3 && machines.is_all_there() && machines.acknowledged() >= before);
    assert!((1..4).all(|host| machines.has_all(host)), "it is whole on the other machines");
    assert!(machines.members.members.keys().all(|number| number.get() != 1));
    // It goes on, and nobody follows it.
    let former = machines.hosts.keys().next().unwrap().clone();
    assert!(machines.hosts[&former].is_primary);
    assert!(machines.hosts.values().all(|host| host.follows.as_ref() != Some(&former)));
}

#[test]
fn without_that_its_replicas_stay_however_long() {
    let mut machines = without_agent();
    machines.ensemble.failover_after = Span::from_secs(30);
    machines.pass(1_000);
    assert!(matches!(wait(&machines), Some(PrimaryWait::StillStreams(replicas)) if replicas.len() == 2));
    assert!(machines.members.lead.is_held && machines.primary_host() == Some(0));
}

#[test]
fn the_quiet_hour_after_a_failover_keeps_no_replica_at_the_primary_of_a_node_that_was_decommissioned() {
    let mut machines = without_agent();
    machines.members.lead.failed_over = Some(machines.at());
    machines.act(&Act::Decommission(0));
    machines.settle();
    assert!(machines.primary_host().is_some_and(|host| host != 0), "{:?}", wait(&machines));
    assert!(machines.is_all_there() && machines.serving() == 3);
}

#[test]
fn too_few_replicas_that_are_reached_keep_it_back_also_then() {
    let mut machines = without_agent();
    let replicas: std::vec::Vec<usize> = (1..4).filter(|host| machines.is_replica(*host)).collect();
    machines.act(&Act::Cut(replicas[1]));
    machines.pass(1);
    machines.act(&Act::Decommission(0));
    // What is written now is on the other one alone, and is acknowledged.
    machines.act(&Act::Write);
    machines.act(&Act::Copy(replicas[1]));
    machines.pass(200);
    let too_few = wait(&machines);
    assert!(matches!(too_few, Some(PrimaryWait::TooFewReached { reached: 1, needed: 2, .. })), "{too_few:?}");
    assert_eq!(machines.primary_host(), Some(0), "nobody took over");
    machines.act(&Act::Heal(replicas[1]));
    machines.settle();
    assert!(machines.primary_host().is_some_and(|host| host != 0), "{:?}", wait(&machines));
    assert!(machines.is_all_there() && machines.serving() == 3);
}

#[test]
fn a_primary_that_is_lost_with_its_machine_is_followed_at_once_if_that_was_decommissioned() {
    let mut machines = without_agent();
    machines.act(&Act::Isolate(0));
    machines.pass(60);
    assert_eq!(machines.members.lead.primary.map(|number| number.get()), Some(1), "it may be back");
    machines.act(&Act::Decommission(0));
    machines.pass(5);
    assert!(machines.primary_host().is_some_and(|host| host != 0), "{:?}", wait(&machines));
    machines.settle();
    assert!(machines.is_all_there() && machines.serving() == 3);
}

#[test]
fn one_that_was_alone_is_not_followed_by_one_without_its_data() {
    let mut machines = Machines::new(3, 1, 1);
    machines.settle();
    machines.act(&Act::Write);
    machines.act(&Act::Cut(0));
    machines.pass(60);
    machines.act(&Act::Decommission(0));
    machines.pass(500);
    assert!(matches!(wait(&machines), Some(PrimaryWait::TooFewReached { reached: 0, .. })));
    assert!(machines.members.lead.is_held && machines.members.lead.primary.is_some());
    let EnsembleService::Redis(redis) = &machines.members.service else { panic!("it is a Redis") };
    assert_eq!(redis.min_replicas, 0, "what it had taken nobody else has");
}
