//! Rollouts in virtual time: the laws that every timeline obeys, and the cases whose figures are known beforehand.

use bellwether_core::decide::rollout::decide;
use bellwether_core::records::node::PresenceState;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::rollout::{RolloutState, RolloutWait};
use bellwether_core::rollout::board::Board;
use bellwether_core::rollout::environment::RolloutEnvironment;
use bellwether_core::trial::simulation::behaviour::{
    AssignedVersion, SimulatedResponse, TargetBehaviour, UniformBehaviour,
};
use bellwether_core::trial::simulation::fleet::SimulatedFleet;
use bellwether_core::trial::simulation::timeline::{SimulationEnd, Timeline};
use bellwether_core::trial::simulation::{Simulation, SimulationSetup, TimelineDetail};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::percent::Amount;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::{Span, Timestamp};
use proptest::prelude::*;

use crate::laws::config;

fn fleet() -> SimulatedFleet {
    let (entity, by) = ("web".parse().unwrap(), "simulation".parse().unwrap());
    let (good, wanted) = ("v1".parse().unwrap(), "v2".parse().unwrap());
    SimulatedFleet { entity, by, good, wanted, at: Timestamp::EPOCH }
}

/// A fleet of so many, every `silent`-th of which is silent.
fn setup(policy: PolicyDraft, targets: u32, silent: Option<u32>) -> SimulationSetup {
    let contact = |n| match silent {
        Some(every) if n % every == 0 => PresenceState::Unreachable,
        Some(_) | None => PresenceState::Up,
    };
    let target = |n| (TargetName::parse(&format!("node-{n:05}")).unwrap(), contact(n), Labels::default());
    SimulationSetup::of(fleet().board(&Policy::new(policy).unwrap(), (0..targets).map(target)))
}

fn draft(batch: u32, soak: u64) -> PolicyDraft {
    PolicyDraft {
        batch: Some(Amount::Count(batch)),
        soak: Some(Span::from_secs(soak)),
        ..PolicyDraft::default()
    }
}

fn lasted(timeline: &Timeline) -> u64 {
    timeline.ended.since(timeline.began).as_millis() / 1_000
}

/// So many of ten fail, each in its own way, and everybody takes another time.
struct Mixed {
    failing: u64,
}

impl TargetBehaviour for Mixed {
    fn answer(&self, assigned: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse {
        let apply = Span::from_millis(chance.below(40_000));
        if assigned.version.as_str() != "v2" || chance.below(10) >= self.failing {
            return SimulatedResponse::Succeeds { apply };
        }
        match chance.below(4) {
            0 => SimulatedResponse::Fails { apply, attempts: assigned.policy.retries + 1 },
            1 => SimulatedResponse::BecomesUnhealthy {
                apply,
                healthy_for: Span::from_millis(chance.below(30_000)),
            },
            2 => SimulatedResponse::Hangs,
            _ => SimulatedResponse::FallsSilent { after: apply },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 10, ..config() })]

    #[test]
    fn every_timeline_obeys_the_policy_and_comes_to_rest(
        batch in 1_u32..30,
        targets in 1_u32..200,
        success in 1_u8..=100,
        (failing, seed, silent) in (0_u64..11, any::<u64>(), proptest::option::of(2_u32..20)),
    ) {
        let success = format!("{success}%").parse().ok();
        let policy = PolicyDraft { success, rollback: Some(Amount::Count(batch)), ..draft(batch, 20) };
        let setup = SimulationSetup { seed, ..setup(policy, targets, silent) };
        let timeline = Simulation::run(setup.clone(), &Mixed { failing });
        prop_assert_eq!(&timeline, &Simulation::run(setup, &Mixed { failing }), "the same seed, another timeline");
        for sample in &timeline.samples {
            prop_assert!(sample.in_flight <= u64::from(batch), "{sample:?}");
            prop_assert!(sample.assigned >= sample.succeeded + sample.failed, "{sample:?}");
        }
        let rests = matches!(timeline.end, SimulationEnd::Over(_) | SimulationEnd::NeedsPerson(_));
        let nobody = matches!(timeline.end, SimulationEnd::Stuck(RolloutState::Waiting(RolloutWait::OnlyUnreachable)));
        prop_assert!(rests || nobody, "{:?}", timeline.end);
        let assigned: u64 = timeline.batches.iter().map(|batch| batch.assigned).sum();
        let most = timeline.samples.last().map_or(0, |last| last.assigned);
        prop_assert!(assigned >= most, "{assigned} assigned in batches, {most} in all");
        prop_assert!(timeline.blast.is_none_or(|blast| blast.touched <= most));
    }

    #[test]
    fn when_all_succeed_alike_every_batch_takes_its_apply_and_soak(
        batch in 1_u32..40,
        targets in 1_u32..300,
        apply in 1_u64..100,
        soak in 0_u64..100,
    ) {
        let everybody = UniformBehaviour::succeeds(Span::from_secs(apply));
        let timeline = Simulation::run(setup(draft(batch, soak), targets, None), &everybody);
        prop_assert_eq!(&timeline.end, &SimulationEnd::Over(RolloutState::Succeeded));
        let batches = u64::from(targets.div_ceil(batch));
        prop_assert_eq!(lasted(&timeline), batches * (apply + soak));
        prop_assert_eq!(timeline.batches_opened, batches);
        prop_assert_eq!(timeline.most_in_flight, u64::from(batch.min(targets)));
    }

    #[test]
    fn a_bad_version_touches_no_more_than_a_batch_and_what_is_tolerated(
        batch in 1_u32..40,
        targets in 1_u32..300,
        tolerated in 0_u32..20,
        late in any::<bool>(),
    ) {
        let failures = (tolerated > 0).then_some(Amount::Count(tolerated));
        let success = (tolerated > 0).then(|| "1%".parse().unwrap());
        let policy = || PolicyDraft { failures, success, ..draft(batch, 30) };
        let apply = Span::from_secs(10);
        let everybody = if late {
            UniformBehaviour::fails_at_last(apply, &Policy::new(policy()).unwrap())
        } else {
            UniformBehaviour::fails_at_once(apply)
        };
        let timeline = Simulation::run(setup(policy(), targets, None), &everybody);
        prop_assert_eq!(&timeline.end, &SimulationEnd::Over(RolloutState::RolledBack));
        let blast = timeline.blast.unwrap();
        prop_assert!(blast.touched <= u64::from(batch + tolerated), "{:?}", blast);
        prop_assert!(blast.touched >= u64::from(batch.min(targets)), "the first batch is dispatched at once");
        let last = timeline.samples.last().unwrap();
        prop_assert_eq!(last.running, 0, "everybody is off it again");
        prop_assert_eq!(blast.longest > Span::ZERO, late, "only who ran it ran it for a while");
    }
}

#[test]
fn a_check_that_fails_after_the_soak_is_late_and_counted() {
    struct After(u64);
    impl TargetBehaviour for After {
        fn answer(&self, assigned: &AssignedVersion<'_>, _: &mut RandomStream) -> SimulatedResponse {
            let (apply, healthy_for) = (Span::from_secs(10), Span::from_secs(self.0));
            match assigned.version.as_str() {
                "v2" => SimulatedResponse::BecomesUnhealthy { apply, healthy_for },
                _ => SimulatedResponse::Succeeds { apply },
            }
        }
    }
    let soaked = Simulation::run(setup(draft(10, 60), 10, None), &After(59));
    assert_eq!((&soaked.end, soaked.late), (&SimulationEnd::Over(RolloutState::RolledBack), 0));
    let missed = Simulation::run(setup(draft(10, 60), 10, None), &After(61));
    assert_eq!((&missed.end, missed.late), (&SimulationEnd::Over(RolloutState::Succeeded), 10));
    // The first batch fails while the second soaks: too late for itself, in time for the rest.
    let noticed = Simulation::run(setup(draft(5, 60), 10, None), &After(90));
    assert_eq!((&noticed.end, noticed.late), (&SimulationEnd::Over(RolloutState::RolledBack), 0));
    assert_eq!(noticed.blast.unwrap().touched, 10);
}

#[test]
fn what_waits_for_a_person_or_for_nothing_ends_and_says_so() {
    let everybody = UniformBehaviour::succeeds(Span::from_secs(10));
    let end = |setup| Simulation::run(setup, &everybody).end;
    assert_eq!(
        end(setup(draft(0, 60), 10, None)),
        SimulationEnd::Stuck(RolloutState::Waiting(RolloutWait::BatchIsZero))
    );
    assert_eq!(
        end(setup(draft(5, 60), 0, None)),
        SimulationEnd::Stuck(RolloutState::Waiting(RolloutWait::NoTargets))
    );
    let horizon = Span::from_secs(100);
    let short = Simulation::run(SimulationSetup { horizon, ..setup(draft(1, 60), 10, None) }, &everybody);
    assert_eq!((&short.end, lasted(&short)), (&SimulationEnd::Horizon(RolloutState::InProgress), 100));
    let silent = end(setup(draft(5, 60), 10, Some(2)));
    assert!(matches!(silent, SimulationEnd::NeedsPerson(RolloutState::Paused(_))), "{silent:?}");
}

#[test]
fn a_stopped_simulation_reports_its_progress() {
    let everybody = UniformBehaviour::succeeds(Span::from_secs(10));
    let mut simulation = Simulation::begin(setup(draft(5, 60), 20, None), &everybody);
    for _ in 0..3 {
        assert!(simulation.step(&everybody));
    }
    assert_eq!((simulation.sample().assigned, simulation.sample().succeeded), (10, 5));
    let timeline = simulation.timeline();
    assert_eq!((&timeline.end, lasted(&timeline)), (&SimulationEnd::Horizon(RolloutState::InProgress), 70));
}

#[test]
fn a_rollout_that_is_under_way_goes_on_where_it_is() {
    let everybody = UniformBehaviour::succeeds(Span::from_secs(10));
    let setup = setup(draft(5, 60), 20, None);
    let board = begun(&setup.board);
    let timeline = Simulation::run(SimulationSetup { board, ..setup.clone() }, &everybody);
    let whole = Simulation::run(setup, &everybody);
    assert_eq!((&timeline.end, lasted(&timeline)), (&whole.end, lasted(&whole)));
    assert_eq!(timeline.samples.last(), whole.samples.last());
}

/// The board after the first pass: a batch is dispatched and no target has answered.
fn begun(board: &Board) -> Board {
    let verdict = decide(board, &RolloutEnvironment::default(), Timestamp::EPOCH);
    let mut board = board.clone();
    let rollout = verdict.rollouts.into_iter().next_back().map(std::sync::Arc::new);
    board.fold_progress(std::sync::Arc::new(verdict.progress.unwrap()), rollout);
    for change in verdict.targets {
        board.fold_state(&change.target, change.state);
    }
    board
}

#[test]
fn what_is_kept_stays_within_bounds() {
    let keep = TimelineDetail { samples: 16, batches: 4 };
    let setup = SimulationSetup { keep, ..setup(draft(1, 1), 200, None) };
    let timeline = Simulation::run(setup, &UniformBehaviour::succeeds(Span::from_secs(1)));
    assert!(timeline.samples.len() <= 16 && timeline.samples.len() >= 8, "{}", timeline.samples.len());
    assert_eq!((timeline.batches.len(), timeline.batches_opened), (4, 200));
    assert!(timeline.batches.iter().all(|batch| batch.assigned == 1), "{:?}", timeline.batches);
    let first = timeline.batches[0].names.clone().unwrap();
    assert_eq!((first.0.as_str(), first.1.as_str()), ("node-00000", "node-00000"));
    assert_eq!(timeline.samples.last().unwrap().running, 200);
}
