use super::act::Act;
use super::model::Machines;
use super::three;
use crate::decide::ensembles::EnsembleStep;
use crate::decide::placement::primary::{PrimaryStep, PrimaryWait};
use crate::records::ensemble_members::{MemberPhase, RemovalReason};
use crate::words::time::Span;

/// The machine of the member with the lowest number that is a replica, or of the primary.
fn machine(machines: &Machines, is_primary: bool) -> usize {
    let found = (0..4).find(|host| match is_primary {
        true => machines.primary_host() == Some(*host),
        false => machines.is_replica(*host),
    });
    found.unwrap()
}

#[test]
fn a_replica_that_works_leaves_once_another_one_has_the_data_in_its_place() {
    let mut machines = three();
    let replica = machine(&machines, false);
    machines.act(&Act::Replace(replica));
    let mut most = 0;
    while !machines.members.requests.replace.is_empty() {
        machines.act(&Act::Write);
        machines.pass(1);
        most = most.max(machines.serving());
        let mut replicas = (0..4).filter(|host| machines.is_replica(*host));
        assert!(machines.serving() < 4 || replicas.clone().count() >= 2, "it has not left too early");
        let leaves = |member: &crate::records::ensemble_members::Member| {
            member.phase == MemberPhase::Removed(RemovalReason::Replaced)
        };
        if machines.members.members.values().any(leaves) {
            assert!(replicas.all(|host| host == replica || machines.has_all(host)));
        }
    }
    assert_eq!(most, 4);
    machines.settle();
    assert!(machines.serving() == 3 && machines.is_all_there() && !machines.is_replica(replica));
    assert_eq!(machines.members.lead.failed_over, None);
}

#[test]
fn a_primary_that_is_replaced_hands_over_first_also_where_it_is_alone() {
    for size in [1, 3] {
        let mut machines = Machines::new(4, size, 1);
        machines.settle();
        machines.act(&Act::Write);
        machines.pass(2);
        let former = machine(&machines, true);
        machines.act(&Act::Replace(former));
        machines.settle();
        assert!(machines.primary_host().is_some_and(|host| host != former), "{:?}", machines.members);
        assert!(machines.serving() == size as usize && machines.is_all_there());
        assert!(machines.members.requests.replace.is_empty() && !machines.is_replica(former));
        assert_eq!(machines.members.lead.failed_over, None, "nobody took over by force");
    }
}

#[test]
fn a_member_that_does_not_work_is_replaced_sooner_than_by_itself() {
    let mut machines = three();
    machines.ensemble.failover_after = Span::from_secs(100_000);
    let replica = machine(&machines, false);
    machines.act(&Act::Isolate(replica));
    machines.pass(60);
    assert_eq!(machines.serving(), 3, "it may be back");
    machines.act(&Act::Replace(replica));
    machines.pass(60);
    let phases: std::vec::Vec<_> =
        machines.members.members.values().map(|member| member.phase.removal()).collect();
    assert!(phases.contains(&Some(RemovalReason::Replaced)), "{phases:?}");
    assert_eq!(machines.serving(), 3);
    machines.act(&Act::Heal(replica));
    machines.settle();
    assert!(machines.is_all_there() && machines.members.requests.replace.is_empty());
}

#[test]
fn with_no_other_machine_a_replica_that_works_stays() {
    let mut machines = Machines::new(3, 3, 1);
    machines.settle();
    let replica = machine(&machines, false);
    machines.act(&Act::Replace(replica));
    machines.pass(100);
    assert_eq!((machines.serving(), machines.is_replica(replica)), (3, true));
    let step = machines.decide().step;
    assert_eq!(step, EnsembleStep::Primary(PrimaryStep::Wait(PrimaryWait::NoRoom { missing: 1 })));
}

#[test]
fn a_replica_that_still_gets_data_without_its_agent_is_disconnected_and_replaced_if_somebody_asks_for_that() {
    let mut machines = three();
    let replica = (0..4).find(|host| machines.is_replica(*host)).unwrap();
    machines.act(&Act::Cut(replica));
    machines.pass(60);
    assert_eq!(machines.serving(), 3);
    machines.act(&Act::Replace(replica));
    machines.act(&Act::Write);
    machines.pass(120);
    assert!(machines.serving() == 3 && machines.is_all_there() && machines.members.lead.cut.is_empty());
    let before = machines.acknowledged();
    // It goes on, and nothing that it gets counts.
    assert!(machines.is_replica(replica));
    machines.act(&Act::Write);
    machines.act(&Act::Copy(replica));
    assert_eq!(machines.acknowledged(), before);
}
