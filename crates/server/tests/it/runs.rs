//! Runs of workflows over the API: how many a node keeps.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::cluster::ClusterSpec;
use bellwether_api::v1::cluster::work::NewClusterRun;
use bellwether_api::v1::policy::{OnFailure, Policy};
use bellwether_api::v1::rollout::RolloutOperation;
use bellwether_api::v1::run::{BusyNodes, NewRun, Run, UndoRun};
use serde_json::json;

use crate::features::{order, report};
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
            tokio::time::sleep(Duration::from_millis(20)).await;
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

#[tokio::test]
async fn who_undoes_an_old_run_is_told_of_the_newer_ones_on_its_nodes() {
    let installation = Installation::lenient().await;
    let (admin, node) = (installation.admin(), installation.node("db-1").await);
    workflow(&admin).await;
    let documents = json!([{"kind": "workflow", "name": "keep", "stages": ["save"], "rollback": "backup"}]);
    let documents = serde_json::from_value(documents).unwrap();
    admin.apply("default", &ApplyRequest { documents, ..ApplyRequest::default() }).await.unwrap();
    node.client
        .report("default", &report(&node, &["jobs", "soak", "task_lists", "workflows"]))
        .await
        .unwrap();
    let mut names = Vec::new();
    for _ in 0..5 {
        let new = NewRun { workflow: "keep".into(), ..queued() };
        let run = admin.start_run("default", &new).await.unwrap().name;
        order(&node, |order| order.entities.contains_key(&run)).await;
        node.client.next_job("default", ("db-1", &run), 0).await.unwrap();
        admin.act_on_rollout("default", &run, "abort", &RolloutOperation::default()).await.unwrap();
        names.push(run);
    }
    let undo = |name: &str| {
        let request = UndoRun { dry_run: true, busy: Some(BusyNodes::Queue), ..UndoRun::default() };
        let (admin, name) = (admin.clone(), name.to_owned());
        async move { admin.undo_run("default", &name, &request).await.unwrap().warning }
    };
    let newest = undo(&names[4]).await.unwrap_or_default();
    assert!(!newest.contains("newer runs"), "{newest}");
    let oldest = undo(&names[0]).await.unwrap_or_default();
    let told = format!(
        "warning: newer runs ran on its node: {}, {}, {} and 1 more; what they did stays as it is",
        names[4], names[3], names[2]
    );
    assert!(oldest.starts_with(&told), "{oldest}");
}

#[tokio::test]
async fn a_run_that_nothing_undoes_or_that_no_node_began_is_not_undone() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    let rolled_back = |workflow: &str| NewRun {
        workflow: workflow.to_owned(),
        policy: Policy { on_failure: Some(OnFailure::Rollback), ..Policy::default() },
        ..queued()
    };
    let (code, said) = problem(admin.start_run("default", &rolled_back("backup")).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("policy.on_failure") && said.contains("names no other one"), "{said}");
    let run = admin.start_run("default", &queued()).await.unwrap();
    let undo = UndoRun::default();
    let (code, said) = problem(admin.undo_run("default", &run.name, &undo).await);
    assert_eq!(code, Code::Refused);
    assert!(said.contains("named no other one that undoes it"), "{said}");

    let documents = json!([{"kind": "workflow", "name": "keep", "stages": ["save"], "rollback": "drop"}]);
    let documents = serde_json::from_value(documents).unwrap();
    admin.apply("default", &ApplyRequest { documents, ..ApplyRequest::default() }).await.unwrap();
    assert_eq!(admin.workflow("default", "keep").await.unwrap().missing, ["workflow/drop"]);
    let (_, said) = problem(admin.start_run("default", &rolled_back("keep")).await);
    assert!(said.contains("workflow drop does not exist"), "{said}");
    let documents = json!([{"kind": "workflow", "name": "drop", "stages": ["save"]}]);
    let documents = serde_json::from_value(documents).unwrap();
    admin.apply("default", &ApplyRequest { documents, ..ApplyRequest::default() }).await.unwrap();
    let run = admin.start_run("default", &rolled_back("keep")).await.unwrap();
    assert_eq!(run.rollback.as_deref(), Some("drop"));
    let warning = run.warning.unwrap_or_default();
    assert!(warning.starts_with("warning: node db-1 does not begin it now: "), "{warning}");
    let (code, said) = problem(admin.undo_run("default", &run.name, &undo).await);
    assert_eq!(code, Code::Refused);
    assert!(said.contains("no node began a task of it"), "{said}");
    assert_ne!(admin.run("default", &run.name).await.unwrap().state.as_str(), "aborted");
    let gone = problem(admin.undo_run("default", "keep-99999", &undo).await);
    assert_eq!(gone.0, Code::NotFound);
}

#[tokio::test]
async fn a_cluster_whose_manager_had_more_runs_than_one_commit_forgets_is_deleted_with_them() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    let spec = ClusterSpec { filter: Some("all".to_owned()), ..ClusterSpec::default() };
    admin.set_cluster("default", "db", &spec).await.unwrap();
    let new = NewClusterRun { workflow: Some("backup".to_owned()), ..NewClusterRun::default() };
    for _ in 0..70 {
        let run = admin.start_cluster_run("default", "db", &new).await.unwrap();
        admin.act_on_rollout("default", &run.name, "abort", &RolloutOperation::default()).await.unwrap();
        runs(&admin, 0).await;
    }
    assert_eq!(runs(&admin, 0).await.len(), 70);
    admin.delete_cluster("default", "db").await.unwrap();
    assert!(runs(&admin, 0).await.is_empty());
    assert_eq!(problem(admin.cluster("default", "db").await).0, Code::NotFound);
}
