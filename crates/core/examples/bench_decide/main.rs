//! How long the rollout decider takes, by number of targets, and a pass, by number of entities. Run with
//! `cargo run --release -p bellwether-core --example bench_decide`; each line is `name value unit`.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "it stops where it is wrong")]

mod crowd;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellwether_core::decide::rollout::decide;
use bellwether_core::decide::rollout::verdict::RolloutVerdict;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::entity::Entity;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::progress::Progress;
use bellwether_core::records::report::{TargetActivity, TargetHealth};
use bellwether_core::records::rollout::Rollout;
use bellwether_core::rollout::board::Board;
use bellwether_core::rollout::environment::RolloutEnvironment;
use bellwether_core::rollout::observation::{HealthProof, Observation, PresenceState};
use bellwether_core::rollout::operations;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

/// How often each figure is taken; the median counts.
const RUNS: usize = 9;

/// How many single reports are folded and decided for one figure.
const REPORTS: usize = 200;

struct World {
    entity: Entity,
    progress: Progress,
    rollout: Option<Rollout>,
    board: Board,
    now: Timestamp,
}

fn main() {
    for short_lived in [0, 1_000, 10_000] {
        print(
            short_lived,
            "pass_after_one_report_beside_short_lived_entities",
            crowd::one_report(short_lived),
        );
    }
    for targets in [1_000, 10_000, 100_000, 1_000_000] {
        let names = names(targets);
        let mut world = world(&names);
        let time = median(|| {
            let copied: Vec<_> = members(&world.board);
            timed(|| build(&world, copied)).0
        });
        print(targets, "board_build", time);
        let batch = world.start("v2");
        assert_eq!(batch.targets.len(), targets / 20, "the batch is 5 %");
        world.pass_time(1);
        for change in &batch.targets {
            world.comply(&change.target);
        }
        world.pass_time(60);
        let pass = median(|| {
            let (time, verdict) = timed(|| decide(&world.board, &RolloutEnvironment::default(), world.now));
            assert_eq!(verdict.targets.len(), targets / 10, "a batch succeeds and a batch is told");
            time
        });
        print(targets, "full_pass", pass);
        let fresh = median(|| {
            let copied: Vec<_> = members(&world.board);
            timed(|| decide(&build(&world, copied), &RolloutEnvironment::default(), world.now)).0
        });
        print(targets, "build_and_full_pass", fresh);
        let verdict = decide(&world.board, &RolloutEnvironment::default(), world.now);
        world.apply(verdict);
        print(targets, "pass_after_one_report", one_report(&mut world, &names));
        print(
            targets,
            "idle_pass",
            median(|| timed(|| decide(&world.board, &RolloutEnvironment::default(), world.now)).0),
        );
    }
}

/// Folds single reports and decides after each, while a reader keeps a copy of the board from before.
fn one_report(world: &mut World, names: &[TargetName]) -> Duration {
    let mut times = Vec::new();
    for step in 0..REPORTS {
        let name = &names[step * 7_919 % names.len()];
        let mut observation =
            world.board.target(name).and_then(|target| target.observation).cloned().unwrap();
        observation.reported_at = world.now;
        observation.activity = TargetActivity::Applying { attempt: 1, waiting_for: None };
        let published = Arc::new(world.board.clone());
        let (time, verdict) = timed(|| {
            world.board.fold_observation(name, Some(observation));
            decide(&world.board, &RolloutEnvironment::default(), world.now)
        });
        times.push(time);
        world.apply(verdict);
        drop(published);
    }
    times.sort();
    times[times.len() / 2]
}

impl World {
    fn start(&mut self, version: &str) -> RolloutVerdict {
        let intent = Annotation::of("bench".parse().unwrap(), self.now);
        let version: Version = version.parse().unwrap();
        self.entity = operations::start(&self.entity, &self.progress, version, intent).unwrap();
        self.board.fold_entity(Arc::new(self.entity.clone()));
        let verdict = decide(&self.board, &RolloutEnvironment::default(), self.now);
        self.apply(verdict.clone());
        verdict
    }

    fn apply(&mut self, verdict: RolloutVerdict) {
        self.progress = verdict.progress.unwrap_or_else(|| self.progress.clone());
        self.rollout = verdict.rollouts.into_iter().next_back().or(self.rollout.take());
        let active = self.rollout.clone().filter(|rollout| !rollout.is_over()).map(Arc::new);
        self.board.fold_progress(Arc::new(self.progress.clone()), active);
        for change in verdict.targets {
            self.board.fold_state(&change.target, change.state);
        }
    }

    fn comply(&mut self, name: &TargetName) {
        let target = self.board.target(name).unwrap();
        let (state, mut observation) = (target.state.unwrap(), target.observation.unwrap().clone());
        observation.running = Some(state.version.clone());
        observation.answering = state.assignment;
        observation.healthy_since = Some(self.now);
        self.board.fold_observation(name, Some(observation));
    }

    fn pass_time(&mut self, seconds: u64) {
        self.now = self.now.plus(Span::from_secs(seconds));
    }
}

type Member = (TargetName, Option<Observation>, Option<bellwether_core::records::target::TargetState>);

fn members(board: &Board) -> Vec<Member> {
    let copy = |target: bellwether_core::rollout::board::BoardTarget<'_>| {
        (target.name.clone(), target.observation.cloned(), target.state.cloned())
    };
    board.targets().map(copy).collect()
}

fn build(world: &World, members: Vec<Member>) -> Board {
    let rollout = world.rollout.clone().filter(|rollout| !rollout.is_over()).map(Arc::new);
    Board::build(
        Arc::new(world.entity.clone()),
        Arc::new(world.progress.clone()),
        rollout,
        members.into_iter(),
    )
}

/// A fleet that runs v1, healthy for long, with v1 last known good.
fn world(names: &[TargetName]) -> World {
    let policy = Policy::new(PolicyDraft::default()).unwrap();
    let entity = Entity::new("web".parse().unwrap(), Selector::all(), policy);
    let now = Timestamp::from_millis(1_800_000_000_000);
    let observation = Observation {
        answered_at: Timestamp::EPOCH,
        proof: HealthProof::Contact,
        running: "v1".parse().ok(),
        answering: AssignmentNumber::ZERO,
        activity: TargetActivity::Nothing,
        health: TargetHealth::Healthy,
        healthy_since: Some(now.minus(Span::from_secs(86_400))),
        soak_failure: None,
        agent_restarted: false,
        reported_at: now,
        contact: PresenceState::Up,
        contact_since: Timestamp::EPOCH,
        held: None,
        refuses: None,
        drained: false,
        labels: Labels::default(),
        data: Default::default(),
        word: None,
    };
    let board = Board::build(
        Arc::new(entity.clone()),
        Arc::default(),
        None,
        names.iter().map(|name| (name.clone(), Some(observation.clone()), None)),
    );
    let mut world = World { entity, progress: Progress::default(), rollout: None, board, now };
    let (time, verdict) = timed(|| world.start("v1"));
    assert_eq!(verdict.targets.len(), names.len(), "all were adopted");
    print(names.len(), "adopt_all", time);
    world
}

fn names(targets: usize) -> Vec<TargetName> {
    (0..targets).map(|number| format!("node-{number:07}.fleet.example").parse().unwrap()).collect()
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let result = black_box(work());
    (started.elapsed(), result)
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<_> = (0..RUNS).map(|_| run()).collect();
    times.sort();
    times[RUNS / 2]
}

fn print(targets: usize, name: &str, time: Duration) {
    println!("decide_{name}_{targets} {:.1} us", time.as_secs_f64() * 1e6);
}
