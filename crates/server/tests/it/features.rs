//! Agents of other builds: an agent is assigned nothing that it does not know, and everything else goes on.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::order::Order;
use bellwether_api::v1::profile::ParamsPatch;
use bellwether_api::v1::report::{Report, TargetHealth};
use bellwether_api::v1::rollout::{NewRollout, RolloutOperation};
use serde_json::json;

use crate::harness::{Installation, Node, policy, problem, set_entity, until, version};

/// A report of an agent that knows versions alone, and of one whose later build has a feature that nobody here knows.
pub(crate) fn report(node: &Node, features: &[&str]) -> Report {
    let features: BTreeSet<String> = features.iter().map(|feature| (*feature).to_owned()).collect();
    Report { features: Some(features), agent_version: "0.0.9".to_owned(), ..node.empty_report() }
}

/// The order of a node, once it is one that `holds`.
pub(crate) async fn order(node: &Node, holds: impl Fn(&Order) -> bool) -> Order {
    let waited = async {
        let mut generation = 0;
        loop {
            let known = (generation, None);
            let poll = node.client.sync("default", &node.name, known, Duration::from_secs(1)).await.unwrap();
            let Some(order) = poll.order else { continue };
            generation = order.generation;
            if holds(&order) {
                return order;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.expect("the order never came")
}

async fn set_files(installation: &Installation) {
    let set = [("a".to_owned(), json!(1))].into_iter().collect();
    let patch = ParamsPatch { set, ..ParamsPatch::default() };
    installation.admin().patch_profile("default", "settings", &patch).await.unwrap();
    let spec = EntitySpec {
        selector: "role=web".to_owned(),
        profile: Some("settings".to_owned()),
        policy: policy("1", "0s"),
        ..EntitySpec::default()
    };
    installation.admin().set_entity("default", "files", &spec).await.unwrap();
    let newest = NewRollout { version: None, ..version("unused") };
    installation.admin().start_rollout("default", "files", &newest).await.unwrap();
}

#[tokio::test]
async fn an_agent_is_assigned_what_it_knows_and_the_rest_waits_with_the_reason() {
    let installation = Installation::lenient().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    node.client.report("default", &report(&node, &["versions", "teleport"])).await.unwrap();
    set_files(&installation).await;
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let written = order(&node, |order| order.entities.contains_key("web")).await;
    assert!(!written.entities.contains_key("files"), "{written:?}");
    let mut runs = report(&node, &["versions"]);
    let number = written.entities["web"].number;
    runs.entities.insert("web".to_owned(), running("v1", number));
    node.client.report("default", &runs).await.unwrap();
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    let why = admin.why("default", "node/web-1").await.unwrap().lines.join("\n");
    let expected = "not able to apply it: its agent 0.0.9 does not know files; upgrade the agent";
    assert!(why.contains(expected), "{why}");

    let upgraded = Report { agent_version: "0.1.0".to_owned(), ..report(&node, &["files", "versions"]) };
    node.client.report("default", &Report { entities: runs.entities.clone(), ..upgraded }).await.unwrap();
    let written = order(&node, |order| order.entities.contains_key("files")).await;
    assert_eq!(written.entities["web"].number, number, "the other entity stays as it was");

    // An agent of the earlier build again, in the middle of a rollout: its order is one that it can read.
    node.client.report("default", &runs).await.unwrap();
    let written = order(&node, |order| !order.entities.contains_key("files")).await;
    assert_eq!(written.entities["web"].number, number);
}

fn running(version: &str, number: u64) -> bellwether_api::v1::report::EntityReport {
    bellwether_api::v1::report::EntityReport {
        running: Some(version.to_owned()),
        answering: number,
        healthy_for_ms: Some(10_000),
        health: TargetHealth::Healthy,
        ..Default::default()
    }
}

/// Applies a workflow of one task with this script and condition, and starts a run of it; answers its name.
async fn start_run(installation: &Installation, script: &str, condition: Option<&str>) -> String {
    let documents = json!({"documents": [
        {"kind": "task", "name": "one", "if": condition, "steps": [{"name": "do", "script": {"text": script}}]},
        {"kind": "stage", "name": "all", "tasks": ["one"]},
        {"kind": "workflow", "name": "work", "stages": ["all"]},
    ]});
    let documents = serde_json::from_value(documents).unwrap();
    installation.admin().apply("default", &documents).await.unwrap();
    let new = serde_json::from_value(json!({"workflow": "work", "on": "all"})).unwrap();
    installation.admin().start_run("default", &new).await.unwrap().name
}

/// Waits, connected, until the node says that it waits with this reason for the run.
async fn waits(installation: &Installation, node: &Node, (run, expected): (&str, &str)) {
    let admin = installation.admin();
    let waited = async {
        loop {
            node.client.sync("default", &node.name, (0, None), Duration::from_millis(50)).await.unwrap();
            let why = admin.why("default", &format!("target/{run}/web-1")).await.unwrap().lines.join("\n");
            if why.contains(expected) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.expect(expected);
}

#[tokio::test]
async fn a_run_whose_tasks_have_outputs_or_conditions_waits_for_an_agent_that_knows_them() {
    let installation = Installation::lenient().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let earlier = ["jobs", "soak", "task_lists", "workflows"];
    node.client.report("default", &report(&node, &earlier)).await.unwrap();
    for (feature, script, condition) in [
        ("outputs", "echo {} > $BELLWETHER_OUTPUTS", None),
        ("outputs", "echo {{ outputs.probe.port }}", None),
        ("conditions", "true", Some("node.name == 'web-2'")),
    ] {
        let run = start_run(&installation, script, condition).await;
        let expected =
            format!("not able to apply it: its agent 0.0.9 does not know {feature}; upgrade the agent");
        waits(&installation, &node, (&run, &expected)).await;
        let knows = report(&node, &[&earlier[..], &[feature]].concat());
        node.client.report("default", &knows).await.unwrap();
        order(&node, |order| order.entities.contains_key(&run)).await;
        assert!(node.client.next_job("default", ("web-1", &run), 0).await.is_ok());
        // The earlier build again, in the middle of the run: it is not given the task, and asks again.
        node.client.report("default", &report(&node, &earlier)).await.unwrap();
        let asked = node.client.next_job("default", ("web-1", &run), 0).await;
        let (code, detail) = problem(asked);
        assert_eq!(code, Code::NotFound, "the agent waits, and does not fail");
        assert!(
            detail.contains(&format!(
                "the feature {feature} in agent 0.0.9 of node web-1, which task one needs"
            )),
            "{detail}"
        );
        admin.act_on_rollout("default", &run, "abort", &RolloutOperation::default()).await.unwrap();
        order(&node, |order| !order.entities.contains_key(&run)).await;
    }
}
