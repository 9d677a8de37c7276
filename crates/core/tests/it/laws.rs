//! The laws of the rollout engine, after every step of random histories: versions come and go, targets succeed, fail,
//! fall silent, are held, join and leave, people meddle, and the decider dies between any two writes.

use bellwether_core::decide::rollout::decide;
use bellwether_core::decide::rollout::verdict::RolloutVerdict;
use bellwether_core::records::policy::{OnFailure, Policy, PolicyDraft};
use bellwether_core::records::progress::{Progress, RolloutActivity};
use bellwether_core::records::report::{TargetActivity, TargetHealth};
use bellwether_core::records::rollout::{Rollout, VersionJudgement};
use bellwether_core::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use bellwether_core::rollout::observation::PresenceState;
use bellwether_core::rollout::why::{why, why_rollout};
use bellwether_core::words::name::TargetName;
use bellwether_core::words::node_data::NO_DATA;
use bellwether_core::words::percent::Amount;
use proptest::prelude::*;

use crate::acts::{Act, TARGETS, act, policy};
use crate::world::World;

impl World {
    pub(crate) fn in_flight(&self) -> u64 {
        let members = self.states.iter().filter(|(name, _)| self.observations.contains_key(*name));
        members.filter(|(_, state)| state.is_in_flight()).count() as u64
    }

    /// Failures that count for a rollout, counted without the board.
    fn failed(&self, rollout: &Rollout) -> u64 {
        self.all_failed(rollout) - self.failed_as_before(rollout)
    }

    fn all_failed(&self, rollout: &Rollout) -> u64 {
        self.states.values().filter(|state| has_failed(state, rollout)).count() as u64
    }

    /// Targets whose failure says nothing about the version, because they were failing on last known good.
    fn failed_as_before(&self, rollout: &Rollout) -> u64 {
        let members = self.states.iter().filter(|(name, _)| self.observations.contains_key(*name));
        members.filter(|(_, state)| has_failed(state, rollout) && state.failing_before.is_some()).count()
            as u64
    }

    /// Failures that the policy tolerates among the most targets of a rollout, reckoned without the engine.
    fn tolerated(&self, rollout: &Rollout) -> u64 {
        let targets = rollout.enrolled.max(self.observations.len() as u64) - self.failed_as_before(rollout);
        let needed = (targets * u64::from(self.entity.policy.success.get())).div_ceil(100).max(1);
        let left = targets.saturating_sub(needed);
        match self.entity.policy.failures {
            Some(Amount::Count(count)) => left.min(u64::from(count)),
            Some(Amount::Share(_)) | None => left,
        }
    }
}

fn has_failed(state: &TargetState, rollout: &Rollout) -> bool {
    state.rollout == rollout.number
        && matches!(state.purpose, AssignmentPurpose::Update | AssignmentPurpose::Adopted)
        && matches!(state.outcome, AssignmentOutcome::Failed { .. })
}

/// What was assigned between two worlds: targets with a newer assignment in flight.
fn dispatched<'a>(before: &World, after: &'a World) -> Vec<(&'a TargetName, &'a TargetState, bool)> {
    let mut found = Vec::new();
    for (name, state) in &after.states {
        let old = before.states.get(name);
        let number = old.map(|old| old.assignment).unwrap_or_default();
        assert!(state.assignment >= number, "{name}: an assignment number fell");
        if state.assignment > number {
            assert!(state.is_in_flight() || old.is_none_or(|old| *old != *state));
            found.push((name, state, old.is_some_and(TargetState::is_in_flight)));
        }
    }
    found
}

/// The laws that hold after any write, complete or cut short.
fn check_any(before: &World, after: &World) {
    let policy = &after.entity.policy;
    let targets = after.observations.len() as u64;
    let assigned = dispatched(before, after);
    let fresh = assigned.iter().any(|(_, state, was_flying)| state.is_in_flight() && !was_flying);
    let back = assigned.iter().any(|(_, state, _)| state.purpose == AssignmentPurpose::Rollback);
    let batch = policy.batch.of_at_least_one(targets);
    let most = if back { batch.max(policy.rollback.of_at_least_one(targets)) } else { batch };
    assert!(!fresh || after.in_flight() <= most, "{} in flight, {most} at once", after.in_flight());
    for (name, state, _) in &assigned {
        let version = Some(&state.version);
        let Progress { rolling, last_known_good, target, activity, .. } = &after.progress;
        let kept = target.as_ref().filter(|_| *activity == RolloutActivity::Continued);
        let slots = [rolling.as_ref(), last_known_good.as_ref(), kept];
        let runs = after.observations.get(*name).and_then(|observation| observation.running.as_ref());
        let adopted = !state.is_in_flight() && runs == version;
        assert!(
            adopted || is_withdrawn(after, name, state) || slots.contains(&version),
            "{name} was assigned {version:?}, neither rolling nor good: {slots:?}"
        );
    }
    let in_flight =
        assigned.iter().any(|(name, state, _)| state.is_in_flight() && !is_withdrawn(after, name, state));
    assert!(!in_flight || after.entity.hold.is_none(), "assigned while a person paused it");
    assert!(!in_flight || after.progress.clock.since.is_none(), "assigned while paused");
}

/// Whether a target is assigned what it runs, since its rollout was ended before it began anything: that starts nothing, and no pause or
/// freeze holds it back.
pub(crate) fn is_withdrawn(after: &World, name: &TargetName, state: &TargetState) -> bool {
    let runs = after.observations.get(name).and_then(|observation| observation.running.as_ref());
    after.progress.activity == RolloutActivity::Abandoned && runs == Some(&state.version)
}

/// Whether a target does not serve, or may not soon, reckoned without the engine.
fn is_unavailable(world: &World, name: &TargetName) -> bool {
    let Some(seen) = world.observations.get(name) else { return false };
    world.states.get(name).is_some_and(TargetState::is_in_flight)
        || matches!(seen.contact, PresenceState::Unreachable | PresenceState::Never)
        || matches!(seen.health, TargetHealth::Failing { .. })
        || matches!(seen.activity, TargetActivity::Failed { .. })
        || seen.running.is_none()
}

fn unavailable(world: &World) -> u64 {
    world.observations.keys().filter(|name| is_unavailable(world, name)).count() as u64
}

/// Targets that are available, and were given up before: they are in flight again on the assignment that they have.
fn returned(before: &World, after: &World) -> u64 {
    let resumed = |name: &TargetName| {
        before.states.get(name).zip(after.states.get(name)).is_some_and(|(old, new)| {
            matches!(old.outcome, AssignmentOutcome::Unreachable { .. })
                && new.is_in_flight()
                && new.assignment == old.assignment
        })
    };
    let names = before.observations.keys().filter(|name| !is_unavailable(before, name));
    names.filter(|name| resumed(name)).count() as u64
}

/// The laws of assigning targets: stages, domains, what may be unavailable, freezes.
fn check_turns(before: &World, after: &World) {
    let assigned = dispatched(before, after);
    let begins = |name, state: &TargetState| state.is_in_flight() && !is_withdrawn(after, name, state);
    let in_flight = || assigned.iter().filter(|(name, state, _)| begins(*name, state));
    let stop = after.environment.stop(&after.entity.name, after.now).is_some();
    assert!(!stop || in_flight().next().is_none(), "assigned although stopped");
    let turns: Vec<_> =
        in_flight().filter(|(_, state, _)| state.purpose == AssignmentPurpose::Update).collect();
    let frozen = after.environment.freeze(&after.entity.name, after.now).is_some();
    assert!(!frozen || turns.is_empty(), "took a turn although frozen");
    for (name, _, _) in &turns {
        let labels = &after.observations[*name].labels;
        assert!(
            after.environment.freeze_of(name, labels, &NO_DATA, after.now).is_none(),
            "{name} took a turn although frozen"
        );
    }
    let fresh: Vec<_> = turns.iter().filter(|(_, _, was_flying)| !was_flying).collect();
    if let (Some(domain), false) = (&after.entity.policy.domain, fresh.is_empty()) {
        let zone = |name: &TargetName| after.observations[name].labels.get(&domain.key).map(str::to_owned);
        let zones: std::collections::BTreeSet<_> = fresh.iter().map(|(name, _, _)| zone(name)).collect();
        assert!(zones.len() <= 1, "turns in several domains at once: {zones:?}");
    }
    let begun = |(_, _, was_flying): &(&TargetName, &TargetState, bool)| !was_flying;
    if let (Some(most), true) = (after.entity.policy.max_unavailable, in_flight().any(begun)) {
        let most = most.of_at_least_one(after.observations.len() as u64);
        let (was, is) = (unavailable(before), unavailable(after) - returned(before, after));
        assert!(is <= most.max(was), "{is} unavailable after {was}, {most} may be");
    }
    // A target that is tried again was updated before: the stage may have become smaller since, with its policy or its targets.
    let was_updated = |rollout: &Rollout, name: &TargetName| {
        before
            .states
            .get(name)
            .is_some_and(|old| old.purpose == AssignmentPurpose::Update && old.rollout == rollout.number)
    };
    if let Some(rollout) = after.active()
        && fresh.iter().any(|(name, _, _)| !was_updated(&rollout, name))
        && let Some(stage) = after.entity.policy.stages.get(rollout.stage.at as usize)
    {
        let cap = stage.upto.of_at_least_one(after.observations.len() as u64);
        let turned = |(name, state): &(&TargetName, &TargetState)| {
            let turn = matches!(state.purpose, AssignmentPurpose::Update);
            turn && state.rollout == rollout.number && after.observations.contains_key(*name)
        };
        let turned = after.states.iter().filter(turned).count() as u64;
        assert!(turned <= cap, "{turned} were updated, the stage ends at {cap}");
        assert!(!stage.approve || rollout.stage.approved > rollout.stage.at, "nobody approved the stage");
    }
}

/// The laws that hold after a whole pass.
fn check_pass(before: &World, after: &World) {
    for rollout in after.rollouts.values() {
        let active = after.progress.active() == Some(rollout.number);
        assert_eq!(rollout.is_over(), !active, "rollout {} is {}", rollout.number, rollout.state);
        assert_eq!(rollout.ended.is_some(), rollout.is_over());
    }
    assert_eq!(after.progress.rolling.is_some(), after.progress.active().is_some());
    assert!(after.states.iter().all(|(name, state)| {
        after.observations.contains_key(name) || matches!(state.outcome, AssignmentOutcome::Failed { .. })
    }));
    if let Some(rollout) = after.active()
        && matches!(after.progress.activity, RolloutActivity::RollingForward(_))
        && after.entity.policy.on_failure != OnFailure::Continue
        && !matches!(rollout.judgement, VersionJudgement::Good { .. })
    {
        let (failed, tolerated) =
            (after.failed(&rollout), after.tolerated(&rollout).max(rollout.waived.failed));
        let turned = |(_, state, _): &(&TargetName, &TargetState, bool)| {
            state.purpose == AssignmentPurpose::Update && state.is_in_flight()
        };
        let turns = dispatched(before, after).into_iter().filter(turned).count();
        assert!(
            failed <= tolerated || turns == 0,
            "{failed} failed, {tolerated} tolerated, {turns} assigned"
        );
    }
    if after.progress.last_known_good != before.progress.last_known_good {
        check_promotion(after);
    }
}

/// A version becomes good only when somebody runs it and no more failed than is tolerated.
fn check_promotion(after: &World) {
    let good = after.progress.last_known_good.as_ref().unwrap();
    let judged = |rollout: &&Rollout| matches!(rollout.judgement, VersionJudgement::Good { .. });
    let rollout =
        after.rollouts.values().rev().filter(judged).find(|rollout| rollout.version == *good).unwrap();
    let counts = rollout.counts;
    let tolerated = after.tolerated(rollout).max(rollout.waived.failed);
    assert!(counts.succeeded >= 1, "{good} became good without a success: {counts:?}");
    assert!(counts.failed <= tolerated || rollout.is_over(), "{good} became good: {counts:?}, {tolerated}");
}

/// The board that was folded change by change answers as one built from the records.
pub(crate) fn check_fold(world: &World) {
    let rebuilt = world.rebuilt();
    assert_eq!(world.board.counts(), rebuilt.counts());
    assert_eq!(
        decide(&world.board, &world.environment, world.now),
        decide(&rebuilt, &world.environment, world.now)
    );
    let last = world.newest();
    assert_eq!(why_rollout(&world.board, last), why_rollout(&rebuilt, last));
    assert!(world.board.targets().eq(rebuilt.targets()));
    for target in rebuilt.targets() {
        let line = why(&rebuilt, target.name, world.why_time());
        assert_eq!(why(&world.board, target.name, world.why_time()), line);
        assert!(line.len() > target.name.as_str().len() + 2, "no reason: {line:?}");
    }
}

/// The decider dies after so many writes; another one starts from the records and continues.
fn cut_short(before: &World, verdict: &RolloutVerdict, writes: usize) -> World {
    let mut world = before.clone();
    world.apply_first(verdict.clone(), writes);
    check_any(before, &world);
    world.board = world.rebuilt();
    let cut = world.clone();
    world.decide();
    check_any(&cut, &world);
    check_pass(before, &world);
    world
}

pub(crate) fn step(world: &mut World, act: &Act) {
    world.act(act);
    let before = world.clone();
    let verdict = decide(&world.board, &world.environment, world.now);
    let all = verdict.rollouts.len() + usize::from(verdict.progress.is_some()) + verdict.targets.len();
    for writes in 1..all {
        cut_short(&before, &verdict, writes);
    }
    if let Act::Crash(writes) = act {
        *world = cut_short(&before, &verdict, usize::from(*writes).min(all));
    } else {
        world.decide();
        check_any(&before, world);
        check_turns(&before, world);
        check_pass(&before, world);
    }
    check_fold(world);
}

/// From here on nothing goes wrong any more, and a person resumes what stands still.
fn heal(world: &mut World) {
    let calm = PolicyDraft { batch: "2".parse().ok(), soak: "10s".parse().ok(), ..PolicyDraft::default() };
    world.set_policy(Policy::new(calm).unwrap());
    if world.observations.is_empty() {
        world.act(&Act::Join(0, 1));
    }
    let names: Vec<_> = world.observations.keys().cloned().collect();
    for name in &names {
        world.change(name, |observation| {
            observation.contact = PresenceState::Up;
            observation.held = None;
        });
    }
    for _ in 0..120 {
        step(world, &Act::Thaw);
        step(world, &Act::Resume);
        step(world, &Act::ComplyAll);
        step(world, &Act::Time(10));
        if world.progress.active().is_none() && world.in_flight() == 0 {
            break;
        }
    }
}

fn check_ended(world: &World) {
    let newest = world.newest().map(|rollout| rollout.state.to_string());
    assert_eq!(world.progress.active(), None, "after all faults are gone it is still {newest:?}");
    assert_eq!(world.progress.handled, world.entity.last_request(), "a request was never acted on");
    assert_eq!(world.in_flight(), 0, "someone is in flight for ever");
    let good = world.progress.last_known_good.as_ref();
    if world.progress.activity == RolloutActivity::Settled && good.is_some() {
        for name in world.observations.keys() {
            let assigned = world.states.get(name).map(|state| &state.version);
            assert_eq!(assigned, good, "{name} was left behind");
        }
    }
}

/// 2,000 histories unless `PROPTEST_CASES` says otherwise; proptest's own default is what it gives when unset.
pub(crate) fn config() -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if given.cases == 256 { 2_000 } else { given.cases };
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 4_000, ..given }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_laws_hold_in_every_history_and_every_rollout_ends(
        first in policy(),
        targets in 0..TARGETS,
        acts in proptest::collection::vec(act(), 1..40),
    ) {
        let mut world = World::new();
        world.set_policy(first);
        for target in 0..targets {
            world.act(&Act::Join(target, 1));
        }
        for act in &acts {
            step(&mut world, act);
        }
        heal(&mut world);
        check_ended(&world);
    }
}
