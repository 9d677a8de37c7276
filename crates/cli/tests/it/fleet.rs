//! The measuring of a whole fleet, small: every agent is served and none is declared unreachable, however long it takes.

#[path = "../../examples/bench_fleet/agent_run.rs"]
mod agent_run;
#[path = "../../examples/bench_fleet/crowd.rs"]
mod crowd;
#[path = "../../examples/bench_fleet/jobs.rs"]
mod jobs;
#[path = "../../examples/bench_fleet/measure.rs"]
mod measure;
#[path = "../../examples/bench_fleet/orchestrate.rs"]
mod orchestrate;
#[path = "../../examples/bench_fleet/people.rs"]
mod people;
#[path = "../../examples/bench_fleet/place.rs"]
mod place;

use std::path::Path;
use std::time::Duration;

use measure::{Fleet, Herd};
use place::Setup;

use super::place::PROGRAM;

/// Enough that many call at the same time.
const AGENTS: usize = 200;

fn nobody_is_missed(herd: &Herd) {
    assert_eq!(herd.flaps, 0, "a restart made nodes look gone");
    let unanswered = herd.looks.iter().filter(|look| !look.answered).count();
    let longest = herd.looks.iter().map(|look| look.took).max();
    assert_eq!(
        unanswered,
        0,
        "of {} looks, the longest {longest:?}; all back after {:?}",
        herd.looks.len(),
        herd.back
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_agents_are_served_rest_without_writes_and_none_flaps_through_a_restart() {
    let place = Setup::make(Path::new(PROGRAM), 1, false).await.unwrap();
    let mut fleet = Fleet::gather(place, AGENTS).await.unwrap();
    let rest = fleet.rest(Duration::from_secs(2)).await.unwrap();
    assert_eq!(rest.writes, 0, "{rest:?}");
    assert!(rest.core >= 0.0 && rest.resident_kib > 0 && rest.kib_per_agent > 0.0, "{rest:?}");
    let orders = fleet.fan_out("1").await.unwrap();
    assert!(orders.half <= orders.most && orders.most <= orders.all);
    nobody_is_missed(&fleet.herd(false).await.unwrap());
    nobody_is_missed(&fleet.herd(true).await.unwrap());
    let (took, flaps) = fleet.silent().await.unwrap();
    assert_eq!(flaps, 0, "others were declared unreachable in the {took:?} until one was");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_a_leader_that_ends_are_served_by_the_other_server() {
    let place = Setup::make(Path::new(PROGRAM), 2, true).await.unwrap();
    let mut fleet = Fleet::gather(place, AGENTS / 4).await.unwrap();
    fleet.fan_out("1").await.unwrap();
    fleet.takeover(false, "2").await.unwrap();
    fleet.takeover(true, "3").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_runs_on_every_agent_of_a_measured_fleet() {
    let place = Setup::make(Path::new(PROGRAM), 1, false).await.unwrap();
    let fleet = Fleet::gather(place, AGENTS / 4).await.unwrap();
    let figures = fleet.run_workflow().await.unwrap().figures();
    assert!(figures.contains(&format!("jobs {} jobs", AGENTS / 4 * 5)), "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_stores_of_a_measured_fleet_rest_without_writes_and_their_deaths_are_answered() {
    let place = Setup::make(Path::new(PROGRAM), 1, false).await.unwrap();
    let fleet = Fleet::gather(place, AGENTS / 4).await.unwrap();
    let figures = fleet.orchestrate(Duration::from_secs(2)).await.unwrap().figures();
    let clusters = u64::try_from(AGENTS / 4).unwrap() / crowd::MEMBERS;
    assert!(figures.contains(&format!("clusters {clusters} clusters")), "{figures:?}");
    assert!(figures.contains(&"rest-writes 0 writes (bar 0)".to_owned()), "{figures:?}");
}
