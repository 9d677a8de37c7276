//! Rollouts in virtual time: the laws that every timeline obeys, and the cases whose figures are known beforehand.

use bellwether_core::decide::rollout::decide;
use bellwether_core::records::node::Contact;
use bellwether_core::records::policy::{Draft, Policy};
use bellwether_core::records::rollout::{State, Wait};
use bellwether_core::rollout::around::Around;
use bellwether_core::rollout::board::Board;
use bellwether_core::rollout::rehearsal::behaviour::{Answer, Behaviour, Everybody, Told};
use bellwether_core::rollout::rehearsal::chance::Chance;
use bellwether_core::rollout::rehearsal::fleet::Fleet;
use bellwether_core::rollout::rehearsal::timeline::{End, Timeline};
use bellwether_core::rollout::rehearsal::{Keep, Rehearsal, Scene};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::percent::Amount;
use bellwether_core::words::time::{Span, Timestamp};
use proptest::prelude::*;

use crate::laws::config;

fn fleet() -> Fleet {
    let (entity, by) = ("web".parse().unwrap(), "rehearsal".parse().unwrap());
    let (good, wanted) = ("v1".parse().unwrap(), "v2".parse().unwrap());
    Fleet { entity, by, good, wanted, at: Timestamp::EPOCH }
}

/// A fleet of so many, every `silent`-th of which is not heard from.
fn scene(policy: Draft, targets: u32, silent: Option<u32>) -> Scene {
    let contact = |n| match silent {
        Some(every) if n % every == 0 => Contact::Unreachable,
        Some(_) | None => Contact::Up,
    };
    let target = |n| (TargetName::parse(&format!("node-{n:05}")).unwrap(), contact(n), Labels::default());
    Scene::of(fleet().board(&Policy::new(policy).unwrap(), (0..targets).map(target)))
}

fn draft(batch: u32, soak: u64) -> Draft {
    Draft { batch: Some(Amount::Count(batch)), soak: Some(Span::from_secs(soak)), ..Draft::default() }
}

fn lasted(timeline: &Timeline) -> u64 {
    timeline.ended.since(timeline.began).as_millis() / 1_000
}

/// So many of ten fail, each in its own way, and everybody takes another time.
struct Mixed {
    failing: u64,
}

impl Behaviour for Mixed {
    fn answer(&self, told: &Told<'_>, chance: &mut Chance) -> Answer {
        let apply = Span::from_millis(chance.below(40_000));
        if told.version.as_str() != "v2" || chance.below(10) >= self.failing {
            return Answer::Succeeds { apply };
        }
        match chance.below(4) {
            0 => Answer::Fails { apply, attempts: told.policy.retries + 1 },
            1 => Answer::Sickens { apply, healthy_for: Span::from_millis(chance.below(30_000)) },
            2 => Answer::Hangs,
            _ => Answer::FallsSilent { after: apply },
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
        let policy = Draft { success, rollback: Some(Amount::Count(batch)), ..draft(batch, 20) };
        let scene = Scene { seed, ..scene(policy, targets, silent) };
        let timeline = Rehearsal::run(scene.clone(), &Mixed { failing });
        prop_assert_eq!(&timeline, &Rehearsal::run(scene, &Mixed { failing }), "the same seed, another timeline");
        for sample in &timeline.samples {
            prop_assert!(sample.in_flight <= u64::from(batch), "{sample:?}");
            prop_assert!(sample.told >= sample.succeeded + sample.failed, "{sample:?}");
        }
        let rests = matches!(timeline.end, End::Over(_) | End::NeedsPerson(_));
        let nobody = matches!(timeline.end, End::Stuck(State::Waiting(Wait::OnlyUnreachable)));
        prop_assert!(rests || nobody, "{:?}", timeline.end);
        let told: u64 = timeline.batches.iter().map(|batch| batch.told).sum();
        let most = timeline.samples.last().map_or(0, |last| last.told);
        prop_assert!(told >= most, "{told} told in batches, {most} in all");
        prop_assert!(timeline.blast.is_none_or(|blast| blast.touched <= most));
    }

    #[test]
    fn when_all_succeed_alike_every_batch_takes_its_apply_and_soak(
        batch in 1_u32..40,
        targets in 1_u32..300,
        apply in 1_u64..100,
        soak in 0_u64..100,
    ) {
        let everybody = Everybody::succeeds(Span::from_secs(apply));
        let timeline = Rehearsal::run(scene(draft(batch, soak), targets, None), &everybody);
        prop_assert_eq!(&timeline.end, &End::Over(State::Succeeded));
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
        let policy = || Draft { failures, success, ..draft(batch, 30) };
        let apply = Span::from_secs(10);
        let everybody = if late {
            Everybody::fails_at_last(apply, &Policy::new(policy()).unwrap())
        } else {
            Everybody::fails_at_once(apply)
        };
        let timeline = Rehearsal::run(scene(policy(), targets, None), &everybody);
        prop_assert_eq!(&timeline.end, &End::Over(State::RolledBack));
        let blast = timeline.blast.unwrap();
        prop_assert!(blast.touched <= u64::from(batch + tolerated), "{:?}", blast);
        prop_assert!(blast.touched >= u64::from(batch.min(targets)), "the first batch is told at once");
        let last = timeline.samples.last().unwrap();
        prop_assert_eq!(last.running, 0, "everybody is off it again");
        prop_assert_eq!(blast.longest > Span::ZERO, late, "only who ran it ran it for a while");
    }
}

#[test]
fn a_check_that_fails_after_the_soak_is_late_and_counted() {
    struct After(u64);
    impl Behaviour for After {
        fn answer(&self, told: &Told<'_>, _: &mut Chance) -> Answer {
            let (apply, healthy_for) = (Span::from_secs(10), Span::from_secs(self.0));
            match told.version.as_str() {
                "v2" => Answer::Sickens { apply, healthy_for },
                _ => Answer::Succeeds { apply },
            }
        }
    }
    let soaked = Rehearsal::run(scene(draft(10, 60), 10, None), &After(59));
    assert_eq!((&soaked.end, soaked.late), (&End::Over(State::RolledBack), 0));
    let missed = Rehearsal::run(scene(draft(10, 60), 10, None), &After(61));
    assert_eq!((&missed.end, missed.late), (&End::Over(State::Succeeded), 10));
    // The first batch fails while the second soaks: too late for itself, in time for the rest.
    let noticed = Rehearsal::run(scene(draft(5, 60), 10, None), &After(90));
    assert_eq!((&noticed.end, noticed.late), (&End::Over(State::RolledBack), 0));
    assert_eq!(noticed.blast.unwrap().touched, 10);
}

#[test]
fn what_waits_for_a_person_or_for_nothing_ends_and_says_so() {
    let everybody = Everybody::succeeds(Span::from_secs(10));
    let end = |scene| Rehearsal::run(scene, &everybody).end;
    assert_eq!(end(scene(draft(0, 60), 10, None)), End::Stuck(State::Waiting(Wait::BatchIsZero)));
    assert_eq!(end(scene(draft(5, 60), 0, None)), End::Stuck(State::Waiting(Wait::NoTargets)));
    let horizon = Span::from_secs(100);
    let short = Rehearsal::run(Scene { horizon, ..scene(draft(1, 60), 10, None) }, &everybody);
    assert_eq!((&short.end, lasted(&short)), (&End::Horizon(State::Running), 100));
    let silent = end(scene(draft(5, 60), 10, Some(2)));
    assert!(matches!(silent, End::NeedsPerson(State::Paused(_))), "{silent:?}");
}

#[test]
fn a_rehearsal_that_is_stopped_says_how_far_it_got() {
    let everybody = Everybody::succeeds(Span::from_secs(10));
    let mut rehearsal = Rehearsal::begin(scene(draft(5, 60), 20, None), &everybody);
    for _ in 0..3 {
        assert!(rehearsal.step(&everybody));
    }
    assert_eq!((rehearsal.sample().told, rehearsal.sample().succeeded), (10, 5));
    let timeline = rehearsal.timeline();
    assert_eq!((&timeline.end, lasted(&timeline)), (&End::Horizon(State::Running), 70));
}

#[test]
fn a_rollout_that_is_under_way_goes_on_where_it_is() {
    let everybody = Everybody::succeeds(Span::from_secs(10));
    let scene = scene(draft(5, 60), 20, None);
    let board = begun(&scene.board);
    let timeline = Rehearsal::run(Scene { board, ..scene.clone() }, &everybody);
    let whole = Rehearsal::run(scene, &everybody);
    assert_eq!((&timeline.end, lasted(&timeline)), (&whole.end, lasted(&whole)));
    assert_eq!(timeline.samples.last(), whole.samples.last());
}

/// The board after the first pass: a batch is told and nobody has answered.
fn begun(board: &Board) -> Board {
    let verdict = decide(board, &Around::default(), Timestamp::EPOCH);
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
    let keep = Keep { samples: 16, batches: 4 };
    let scene = Scene { keep, ..scene(draft(1, 1), 200, None) };
    let timeline = Rehearsal::run(scene, &Everybody::succeeds(Span::from_secs(1)));
    assert!(timeline.samples.len() <= 16 && timeline.samples.len() >= 8, "{}", timeline.samples.len());
    assert_eq!((timeline.batches.len(), timeline.batches_opened), (4, 200));
    assert!(timeline.batches.iter().all(|batch| batch.told == 1), "{:?}", timeline.batches);
    let first = timeline.batches[0].names.clone().unwrap();
    assert_eq!((first.0.as_str(), first.1.as_str()), ("node-00000", "node-00000"));
    assert_eq!(timeline.samples.last().unwrap().running, 200);
}
