//! Runs of workflows over the API: how many a node keeps.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::rollout::RolloutOperation;
use bellwether_api::v1::run::{BusyNodes, NewRun, Run};

use crate::harness::{Installation, SOON, problem};
use crate::schedules::workflow;

/// Runs that a node keeps, by the guide.
const KEPT: usize = 200;

fn queued() -> NewRun {
    let busy = Some(BusyNodes::Queue);
    NewRun { workflow: "backup".to_owned(), on: "all".to_owned(), busy, ..NewRun::default() }
}

/// The runs, once so many are in progress.
async fn runs(admin: &Client, in_progress: usize) -> Vec<Run> {
    let looking = async {
        loop {
            let runs = admin.runs("default").await.unwrap().items;
            let open = runs.iter().filter(|run| run.state.as_str() != "aborted").count();
            if open == in_progress {
                return runs;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(SOON * 3, looking).await.expect("the runs did not end")
}

#[tokio::test]
async fn a_node_keeps_its_newest_runs_and_those_in_progress() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    let first = admin.start_run("default", &queued()).await.unwrap();
    let second = admin.start_run("default", &queued()).await.unwrap();
    for _ in 2..KEPT {
        let run = admin.start_run("default", &queued()).await.unwrap();
        admin.act_on_rollout("default", &run.name, "abort", &RolloutOperation::default()).await.unwrap();
    }
    let all = runs(&admin, 2).await;
    assert_eq!(all.len(), KEPT);
    let oldest_ended = &all[2].name;
    // The oldest that ended makes room, and none that is in progress.
    let last = admin.start_run("default", &queued()).await.unwrap();
    let all = runs(&admin, 3).await;
    assert_eq!(all.len(), KEPT);
    let names: Vec<&str> = all.iter().map(|run| &*run.name).collect();
    assert!(names.contains(&&*first.name) && names.contains(&&*second.name) && names.contains(&&*last.name));
    assert!(!names.contains(&&**oldest_ended));
    assert_eq!(problem(admin.run("default", oldest_ended).await).0, Code::NotFound);
}
