//! Histories that random tests of the laws have found, each as it was.

use bellwether_core::records::policy::ordering::PolicyStage;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::rollout::observation::PresenceState;
use bellwether_core::words::percent::{Amount, Percent};

use crate::acts::Act;
use crate::laws::{is_withdrawn, step};
use crate::world::World;

/// A target that was given up, and is heard of again, has its assignment already: to count it as in flight again makes nothing
/// unavailable.
#[test]
fn a_target_that_returns_in_flight_makes_nothing_unavailable() {
    let policy = PolicyDraft {
        batch: Some(Amount::Count(3)),
        max_unavailable: Some(Amount::Count(2)),
        success: Percent::new(1),
        unreachable: Some(Amount::Count(1)),
        soak: "7s".parse().ok(),
        deadline: "8s".parse().ok(),
        fail_fast: Some(false),
        ..PolicyDraft::default()
    };
    let mut world = World::new();
    world.set_policy(Policy::new(policy).unwrap());
    for target in 0..3 {
        world.act(&Act::Join(target, 1));
    }
    let silent = Act::Contact(4, PresenceState::Suspect);
    let (long, short) = (Act::Time(8), Act::Time(1));
    let end = [Act::Pause, Act::ComplyAll, Act::Fail(2), Act::Resume];
    for act in [Act::Join(4, 0), silent, Act::Start(2), long, short].iter().chain(&end) {
        step(&mut world, act);
    }
    assert_eq!(world.in_flight(), 3);
}

#[test]
fn a_target_that_is_held_when_it_is_heard_of_again_has_been_updated_in_its_stage() {
    let stage = |upto, approve| PolicyStage { upto, approve };
    let policy = PolicyDraft {
        batch: Some(Amount::Count(2)),
        stages: Some(vec![
            stage(Amount::Count(2), false),
            stage(Amount::Share(Percent::new(100).unwrap()), true),
        ]),
        success: Percent::new(1),
        unreachable: Some(Amount::Count(0)),
        soak: "1s".parse().ok(),
        deadline: "2s".parse().ok(),
        fail_fast: Some(false),
        ..PolicyDraft::default()
    };
    let mut world = World::new();
    world.set_policy(Policy::new(policy).unwrap());
    world.act(&Act::Join(0, 1));
    let lost = [Act::Start(2), Act::Time(2), Act::Time(1), Act::Held(0, true)];
    for act in lost.iter().chain(&[Act::Join(1, 0), Act::ComplyAll, Act::Join(2, 0)]) {
        step(&mut world, act);
    }
    assert_eq!(world.states.len(), 2, "the third one is of the next stage");
}

#[test]
fn what_a_target_has_not_begun_is_withdrawn_when_its_rollout_is_aborted_under_a_freeze_that_stops() {
    let policy = PolicyDraft {
        batch: Some(Amount::Count(2)),
        success: Percent::new(1),
        soak: "0s".parse().ok(),
        deadline: "1s".parse().ok(),
        ..PolicyDraft::default()
    };
    let mut world = World::new();
    world.set_policy(Policy::new(policy).unwrap());
    for target in 0..2 {
        world.act(&Act::Join(target, 1));
    }
    for act in [Act::Start(2), Act::Waits(0), Act::Freeze(0, true), Act::Abort] {
        step(&mut world, &act);
    }
    let withdrawn = world.states.iter().filter(|(name, state)| is_withdrawn(&world, name, state));
    assert_eq!(withdrawn.count(), 1);
}
