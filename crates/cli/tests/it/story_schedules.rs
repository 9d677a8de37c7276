//! Schedules on several servers: the leader dies when a workflow is due.

use std::collections::BTreeSet;

use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::schedule::Schedule;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;
use serde_json::json;

use crate::bed::{Bed, options};

const MINUTE: u64 = 60_000;

async fn often(bed: &Bed) -> Option<Schedule> {
    bed.ask(async |client| client.schedule("default", "often").await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_time_gets_one_run_though_the_leader_dies_at_it() {
    let some = bellwether_testbed::Options { etcd: 1, servers: 2, agents: 2, ..options() };
    let mut bed = Bed::start(some).await;
    let leader = bed.leader_but(&[]).await;
    let documents = json!([
        {"kind": "task", "name": "save", "steps": [{"name": "save", "script": {"text": "true"}}]},
        {"kind": "stage", "name": "save", "tasks": ["save"]},
        {"kind": "workflow", "name": "backup", "stages": ["save"]},
        // Whether its last run has ended does not matter here.
        {"kind": "schedule", "name": "often", "workflow": "backup", "filter": "all", "cron": "* * * * *", "concurrency": "allow"},
    ]);
    let documents = serde_json::from_value(documents).unwrap();
    let request = ApplyRequest { documents, ..ApplyRequest::default() };
    bed.client(leader).apply("default", &request).await.unwrap();
    let due = often(&bed).await.unwrap().next_ms.unwrap();
    // Half a second before, so that it dies before or after it started the run.
    let before = Timestamp::from_millis(due).minus(Span::from_millis(500));
    let until = before.since(Clock::system().now()).to_duration();
    tokio::time::sleep(until).await;
    bed.obey(&format!("kill server-{leader}"));
    bed.leader_but(&[leader]).await;
    bed.obey(&format!("start server-{leader}"));
    let mut last = None;
    bed.wait_for("the due time has an outcome", async || {
        last = often(&bed).await.and_then(|schedule| schedule.last).filter(|last| last.due_ms >= due);
        last.is_some()
    })
    .await;
    assert_eq!(last.unwrap().result, "started");
    let runs = bed.ask(async |client| client.runs("default").await).await.unwrap().items;
    assert!(runs.iter().all(|run| run.by == "schedule/often" && run.nodes == 2), "{runs:?}");
    let minutes: BTreeSet<u64> = runs.iter().map(|run| run.at_ms / MINUTE).collect();
    assert_eq!(minutes.len(), runs.len(), "{runs:?}");
    assert!(minutes.contains(&(due / MINUTE)), "{runs:?}");
}
