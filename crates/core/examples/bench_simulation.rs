//! How long a rollout in virtual time takes, by number of targets. Run with
//! `cargo run --release -p bellwether-core --example bench_simulation`; each line is `name value unit`.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "it stops where it is wrong")]

use std::time::Instant;

use bellwether_core::records::node::PresenceState;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::rollout::RolloutState;
use bellwether_core::trial::simulation::behaviour::{
    AssignedVersion, SimulatedResponse, TargetBehaviour, UniformBehaviour,
};
use bellwether_core::trial::simulation::fleet::SimulatedFleet;
use bellwether_core::trial::simulation::timeline::SimulationEnd;
use bellwether_core::trial::simulation::{Simulation, SimulationSetup};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::{Span, Timestamp};

/// Everybody takes between 10 and 60 seconds, so that every second brings something.
struct Uneven;

impl TargetBehaviour for Uneven {
    fn answer(&self, _: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse {
        SimulatedResponse::Succeeds { apply: Span::from_millis(10_000 + chance.below(50_000)) }
    }
}

fn main() {
    for targets in [1_000, 10_000, 100_000, 1_000_000] {
        run(targets, "even", &UniformBehaviour::succeeds(Span::from_secs(30)), &RolloutState::Succeeded);
        run(targets, "uneven", &Uneven, &RolloutState::Succeeded);
        let policy = Policy::new(PolicyDraft::default()).unwrap();
        run(
            targets,
            "bad",
            &UniformBehaviour::fails_at_last(Span::from_secs(30), &policy),
            &RolloutState::RolledBack,
        );
    }
}

fn run(targets: usize, name: &str, behaviour: &impl TargetBehaviour, expected: &RolloutState) {
    let policy = Policy::new(PolicyDraft::default()).unwrap();
    let names: Vec<TargetName> = (0..targets).map(|n| format!("node-{n:07}").parse().unwrap()).collect();
    let fleet = SimulatedFleet {
        entity: "web".parse().unwrap(),
        by: "bench".parse().unwrap(),
        good: "v1".parse().unwrap(),
        wanted: "v2".parse().unwrap(),
        at: Timestamp::EPOCH,
    };
    let started = Instant::now();
    let board =
        fleet.board(&policy, names.iter().map(|name| (name.clone(), PresenceState::Up, Labels::default())));
    let timeline = Simulation::run(SimulationSetup::of(board), behaviour);
    let time = started.elapsed();
    assert_eq!(timeline.end, SimulationEnd::Over(expected.clone()));
    println!("simulation_{name}_{targets} {:.1} ms", time.as_secs_f64() * 1e3);
    println!("simulation_{name}_{targets}_passes {} passes", timeline.passes);
}
