//! What tasks and workflows say of themselves: what is refused of it, and what a node gets of it.

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use http::Method;
use serde_json::{Value, json};

use crate::features::{order, report};
use crate::harness::{Installation, SOON, problem};

async fn apply(admin: &Client, documents: Value) -> Result<(), CallError> {
    let request = serde_json::from_value(json!({"documents": documents})).unwrap();
    admin.apply("default", &request).await.map(drop)
}

fn workflow(name: &str, rollback: &str) -> Value {
    json!({"kind": "workflow", "name": name, "stages": ["all"], "rollback": rollback})
}

/// A task with this param, in a workflow `work`.
fn with_param(schema: &Value) -> Value {
    json!([
        {"kind": "task", "name": "one", "params": {"size": schema},
         "steps": [{"name": "do", "script": {"text": "echo {{ params.size }}"}}]},
        {"kind": "stage", "name": "all", "tasks": ["one"]},
        {"kind": "workflow", "name": "work", "stages": ["all"]},
    ])
}

#[tokio::test]
async fn a_workflow_does_not_undo_itself_and_two_may_undo_each_other() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (code, said) = problem(apply(&admin, json!([workflow("up", "up")])).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("rollback: workflow up cannot undo its own runs"), "{said}");
    let path = "/v1/namespaces/default/workflows/up";
    let spec = json!({"stages": ["all"], "rollback": "up"});
    let (code, said) = problem(admin.send::<Value, Value>(Method::PUT, path, &spec, SOON).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("rollback: workflow up cannot undo its own runs"), "{said}");
    apply(&admin, with_param(&json!({}))).await.unwrap();
    apply(&admin, json!([workflow("up", "down"), workflow("down", "up")])).await.unwrap();
    installation.node("web-1").await;
    let new = serde_json::from_value(json!({"workflow": "up", "on": "all"})).unwrap();
    let run = admin.start_run("default", &new).await.unwrap();
    assert_eq!(run.rollback.as_deref(), Some("down"));
}

#[tokio::test]
async fn a_param_that_no_level_has_has_the_default_of_the_task() {
    let installation = Installation::lenient().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let (_, said) = problem(apply(&admin, with_param(&json!({"type": "integer", "default": "x"}))).await);
    assert!(said.contains("params.size.default: does not fit: \"x\" is not"), "{said}");
    let (_, said) = problem(apply(&admin, with_param(&json!({"default": {"$secret": "key"}}))).await);
    assert!(said.contains("params.size.default: must not be a secret"), "{said}");
    apply(&admin, with_param(&json!({"type": "integer", "default": 8}))).await.unwrap();
    node.client
        .report("default", &report(&node, &["jobs", "soak", "task_lists", "workflows"]))
        .await
        .unwrap();
    for size in [None, Some(9)] {
        if let Some(size) = size {
            let patch = serde_json::from_value(json!({"set": {"size": size}})).unwrap();
            admin.patch_node_params("default", "web-1", &patch).await.unwrap();
        }
        let new = json!({"workflow": "work", "on": "all", "busy": "switch"});
        let run = admin.start_run("default", &serde_json::from_value(new).unwrap()).await.unwrap().name;
        order(&node, |order| order.entities.contains_key(&run)).await;
        let next = node.client.next_job("default", ("web-1", &run), 0).await.unwrap().job.unwrap();
        assert_eq!(next.params["size"], json!(size.unwrap_or(8)));
    }
}
