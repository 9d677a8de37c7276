//! A node that is decommissioned leaves the runs that are in progress: a machine that takes its name is another one.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::run::{BusyNodes, NewRun, UndoRun};
use serde_json::json;

use crate::features::{order, report};
use crate::harness::{Installation, SOON, problem};
use crate::schedules::workflow;

/// Waits until a run is in this state.
async fn until(admin: &Client, run: &str, state: &str) {
    let looking = async {
        while admin.run("default", run).await.unwrap().state.as_str() != state {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON * 3, looking).await.unwrap_or_else(|_| panic!("{run} is not {state}"));
}

#[tokio::test]
async fn a_decommissioned_node_leaves_its_runs_to_the_others() {
    let installation = Installation::lenient().await;
    let (admin, first) = (installation.admin(), installation.node("db-1").await);
    installation.node("db-2").await;
    workflow(&admin).await;
    let documents = json!([{"kind": "workflow", "name": "keep", "stages": ["save"], "rollback": "backup"}]);
    let documents = serde_json::from_value(documents).unwrap();
    admin.apply("default", &ApplyRequest { documents, ..ApplyRequest::default() }).await.unwrap();
    let features = ["jobs", "soak", "task_lists", "workflows"];
    first.client.report("default", &report(&first, &features)).await.unwrap();
    let new = |on: &str| NewRun {
        workflow: "keep".to_owned(),
        on: on.to_owned(),
        busy: Some(BusyNodes::Queue),
        ..NewRun::default()
    };
    let on_both = admin.start_run("default", &new("all")).await.unwrap().name;
    let on_first = admin.start_run("default", &new("name=db-1")).await.unwrap().name;
    order(&first, |order| order.entities.contains_key(&on_both)).await;
    first.client.next_job("default", ("db-1", &on_both), 0).await.unwrap();

    admin.decommission_node("default", "db-1", "it burned").await.unwrap();
    until(&admin, &on_first, "aborted").await;
    let run = admin.run("default", &on_both).await.unwrap();
    assert!(run.state.as_str() != "aborted" && run.nodes == 1, "{} on {}", run.state.as_str(), run.nodes);
    let jobs = admin.jobs("default").await.unwrap().items;
    let states: Vec<&str> = jobs.iter().map(|job| job.state.as_str()).collect();
    assert_eq!(states, ["lost"]);
    let dry = UndoRun { dry_run: true, ..UndoRun::default() };
    let (code, said) = problem(admin.undo_run("default", &on_both, &dry).await);
    assert_eq!(code, Code::Refused);
    assert!(said.contains("1 node began a task of it, and is not part of the run any more"), "{said}");

    let again = installation.node("db-1").await;
    again.client.report("default", &report(&again, &features)).await.unwrap();
    let last = admin.start_run("default", &new("name=db-1")).await.unwrap().name;
    let orders = order(&again, |order| order.entities.contains_key(&last)).await;
    assert_eq!(orders.entities.keys().collect::<Vec<_>>(), [&last]);
    // What the machine before it did is not its own.
    assert!(admin.jobs("default").await.unwrap().items.is_empty());
}
