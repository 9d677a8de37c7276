//! How long a rollout in virtual time takes, by number of targets. Run with
//! `cargo run --release -p bellwether-core --example bench_rehearsal`; each line is `name value unit`.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "it stops where it is wrong")]

use std::time::Instant;

use bellwether_core::records::node::Contact;
use bellwether_core::records::policy::{Draft, Policy};
use bellwether_core::records::rollout::State;
use bellwether_core::rollout::rehearsal::behaviour::{Answer, Behaviour, Everybody, Told};
use bellwether_core::rollout::rehearsal::chance::Chance;
use bellwether_core::rollout::rehearsal::fleet::Fleet;
use bellwether_core::rollout::rehearsal::timeline::End;
use bellwether_core::rollout::rehearsal::{Rehearsal, Scene};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::time::{Span, Timestamp};

/// Everybody takes between 10 and 60 seconds, so that every second brings something.
struct Uneven;

impl Behaviour for Uneven {
    fn answer(&self, _: &Told<'_>, chance: &mut Chance) -> Answer {
        Answer::Succeeds { apply: Span::from_millis(10_000 + chance.below(50_000)) }
    }
}

fn main() {
    for targets in [1_000, 10_000, 100_000, 1_000_000] {
        run(targets, "even", &Everybody::succeeds(Span::from_secs(30)), &State::Succeeded);
        run(targets, "uneven", &Uneven, &State::Succeeded);
        let policy = Policy::new(Draft::default()).unwrap();
        run(targets, "bad", &Everybody::fails_at_last(Span::from_secs(30), &policy), &State::RolledBack);
    }
}

fn run(targets: usize, name: &str, behaviour: &impl Behaviour, expected: &State) {
    let policy = Policy::new(Draft::default()).unwrap();
    let names: Vec<TargetName> = (0..targets).map(|n| format!("node-{n:07}").parse().unwrap()).collect();
    let fleet = Fleet {
        entity: "web".parse().unwrap(),
        by: "bench".parse().unwrap(),
        good: "v1".parse().unwrap(),
        wanted: "v2".parse().unwrap(),
        at: Timestamp::EPOCH,
    };
    let started = Instant::now();
    let board = fleet.board(&policy, names.iter().map(|name| (name.clone(), Contact::Up, Labels::default())));
    let timeline = Rehearsal::run(Scene::of(board), behaviour);
    let time = started.elapsed();
    assert_eq!(timeline.end, End::Over(expected.clone()));
    println!("rehearsal_{name}_{targets} {:.1} ms", time.as_secs_f64() * 1e3);
    println!("rehearsal_{name}_{targets}_passes {} passes", timeline.passes);
}
