//! Reactions over the API: what they would do, and what they are refused.

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::cluster::{ClusterMode, ClusterSpec};
use bellwether_api::v1::reaction::test::TestReaction;
use bellwether_api::v1::reaction::{ReactionSpec, ReactionState};
use bellwether_api::v1::rollout::RolloutOperation;

use serde_json::json;

use crate::harness::{Installation, Node, problem};
use crate::hooked::eventually;
use crate::schedules::workflow;

fn on(on: &str, workflow: &str) -> ReactionSpec {
    ReactionSpec { on: on.to_owned(), workflow: workflow.to_owned(), ..ReactionSpec::default() }
}

fn asked(condition: &str, subject: &str) -> TestReaction {
    TestReaction { condition: condition.to_owned(), subject: subject.to_owned() }
}

#[tokio::test]
async fn a_test_says_what_a_reaction_would_do_and_starts_nothing() {
    let installation = Installation::lenient().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    admin.set_reaction("default", "restart", &on("condition = store_down", "backup")).await.unwrap();
    let down = asked("store_down", "store/db-1/db");
    eventually("the servers have listened to the nodes", async || {
        let test = admin.test_reaction("default", "restart", &down).await.unwrap();
        (test.state == Some(ReactionState::Due)).then_some(())
    })
    .await;
    let test = admin.test_reaction("default", "restart", &down).await.unwrap();
    assert_eq!((test.matches, test.node_count, &*test.nodes), (true, 1, &["db-1".to_owned()][..]));
    assert_eq!(test.refused, None);
    let other = asked("node_unreachable", "node/db-1");
    assert!(!admin.test_reaction("default", "restart", &other).await.unwrap().matches);
    // Nothing was started, and nothing is remembered.
    assert!(admin.runs("default").await.unwrap().items.is_empty());
    assert!(admin.reaction("default", "restart").await.unwrap().firings.is_empty());

    let whole = asked("no_primary", "cluster/db/kv");
    let (code, said) = problem(admin.test_reaction("default", "restart", &whole).await);
    assert_eq!(code, Code::NotFound);
    assert!(said.contains("cluster db"), "{said}");
    let spec = ClusterSpec {
        filter: Some("all".to_owned()),
        mode: Some(ClusterMode::Observe),
        ..ClusterSpec::default()
    };
    admin.set_cluster("default", "db", &spec).await.unwrap();
    let either = on("condition in (no_primary, store_down)", "promote");
    let made = admin.set_reaction("default", "promote", &either).await.unwrap();
    let warning = made.warning.unwrap();
    assert!(warning.contains("can match no_primary, of which the subject is a whole cluster"), "{warning}");
    let test = admin.test_reaction("default", "promote", &whole).await.unwrap();
    assert_eq!(test.state, Some(ReactionState::Observed));
    assert!(test.refused.is_some_and(|refused| refused.contains("no node, but a whole cluster")));
    assert_eq!((test.observed_cluster.as_deref(), test.mode), (Some("db"), Some(ClusterMode::Observe)));
}

/// Has a node report one data store, `db`, in this state.
async fn reports(node: &Node, sequence: u64, state: &str) {
    let probes = json!({"node": node.name, "sequence": sequence, "stores": {
        "db": {"state": state, "since_ms": 1, "reason": "connection refused"}
    }});
    node.client.probes("default", &serde_json::from_value(probes).unwrap()).await.unwrap();
}

async fn why(admin: &Client, subject: &str) -> String {
    admin.why("default", subject).await.unwrap().lines.join("\n")
}

#[tokio::test]
async fn what_could_not_be_started_is_tried_at_once_when_there_is_a_workflow() {
    let installation = Installation::lenient().await;
    let node = installation.node("db-1").await;
    let admin = installation.admin();
    let spec = ReactionSpec { cooldown: Some("24h".to_owned()), ..on("condition = store_down", "backup") };
    admin.set_reaction("default", "restart", &spec).await.unwrap();
    reports(&node, 1, "down").await;
    eventually("it failed", async || {
        let reaction = admin.reaction("default", "restart").await.unwrap();
        (reaction.firings.len() == 1).then_some(())
    })
    .await;
    let said = why(&admin, "reaction/restart").await;
    for part in
        ["nothing was started; it tries again in", "at once when the reaction or its workflow is changed"]
    {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.contains("nothing was started: cannot find workflow backup"), "{said}");
    let said = why(&admin, "store/db-1/db").await;
    assert!(said.starts_with("down for ") && said.contains(": connection refused"), "{said}");
    assert!(said.contains("store_down of store/db-1/db is true for"), "{said}");
    workflow(&admin).await;
    eventually("the run", async || {
        let runs = admin.runs("default").await.unwrap().items;
        (runs.len() == 1).then_some(())
    })
    .await;

    // The same when the workflow and the reaction are changed in one call.
    admin
        .set_reaction("default", "again", &ReactionSpec { workflow: "later".to_owned(), ..spec })
        .await
        .unwrap();
    eventually("it failed, too", async || {
        let reaction = admin.reaction("default", "again").await.unwrap();
        (reaction.firings.len() == 1).then_some(())
    })
    .await;
    let documents = json!([
        {"kind": "workflow", "name": "later", "stages": ["save"]},
        {"kind": "reaction", "name": "again", "on": "condition = store_down", "workflow": "later", "for": "1ms"},
    ]);
    let documents = serde_json::from_value(documents).unwrap();
    admin.apply("default", &ApplyRequest { documents, ..ApplyRequest::default() }).await.unwrap();
    eventually("its run", async || {
        let runs = admin.runs("default").await.unwrap().items;
        (runs.len() == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn no_run_follows_one_that_has_not_ended_and_why_names_it() {
    let installation = Installation::lenient().await;
    let node = installation.node("db-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    let spec = ReactionSpec { cooldown: Some("0s".to_owned()), ..on("condition = store_down", "backup") };
    admin.set_reaction("default", "restart", &spec).await.unwrap();
    reports(&node, 1, "down").await;
    let first = eventually("the run", async || admin.runs("default").await.unwrap().items.pop()).await;
    // Its node begins nothing; the store comes back and goes again meanwhile.
    reports(&node, 2, "up").await;
    reports(&node, 3, "down").await;
    let held = format!("run {}, which it started for this subject before, has not ended", first.name);
    eventually("why", async || why(&admin, "reaction/restart").await.contains(&held).then_some(())).await;
    let test =
        admin.test_reaction("default", "restart", &asked("store_down", "store/db-1/db")).await.unwrap();
    assert_eq!((test.state, test.run.as_ref()), (Some(ReactionState::Running), Some(&first.name)));
    assert_eq!(admin.runs("default").await.unwrap().items.len(), 1);
    admin.act_on_rollout("default", &first.name, "abort", &RolloutOperation::default()).await.unwrap();
    eventually("the next", async || (admin.runs("default").await.unwrap().items.len() == 2).then_some(()))
        .await;
}

#[tokio::test]
async fn the_mode_of_a_cluster_that_starts_nothing_is_named_with_what_changes_it() {
    let installation = Installation::lenient().await;
    let node = installation.node("db-1").await;
    let admin = installation.admin();
    let spec = ClusterSpec {
        filter: Some("all".to_owned()),
        mode: Some(ClusterMode::Observe),
        ..ClusterSpec::default()
    };
    admin.set_cluster("default", "db", &spec).await.unwrap();
    admin.set_reaction("default", "restart", &on("condition = store_down", "backup")).await.unwrap();
    reports(&node, 1, "down").await;
    let mode =
        "the mode of cluster db is observe, which starts nothing; bellwether cluster set db --mode active";
    eventually("why", async || why(&admin, "reaction/restart").await.contains(mode).then_some(())).await;
    eventually("the cluster has the condition", async || {
        let said = why(&admin, "cluster/db").await;
        (said.contains("data stores db: down on db-1 (store_down, for ")
            && said.contains("its mode is observe: ")
            && said.contains("bellwether cluster set db --mode active"))
        .then_some(())
    })
    .await;
    reports(&node, 2, "unknown").await;
    eventually("nobody knows", async || {
        why(&admin, "cluster/db").await.contains("unknown on db-1 (store_unknown").then_some(())
    })
    .await;
    let (code, said) = problem(admin.why("default", "store/db-1/other").await);
    assert!(code == Code::NotFound && said.contains("cannot find data store other of node db-1"), "{said}");
}

#[tokio::test]
async fn a_subject_of_the_wrong_kind_is_refused_and_nodes_that_are_no_word_are_warned_of() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    let spec = ClusterSpec { filter: Some("all".to_owned()), ..ClusterSpec::default() };
    admin.set_cluster("default", "db", &spec).await.unwrap();
    let spec = ReactionSpec { nodes: Some("mangaer".to_owned()), ..on("all", "backup") };
    let made = admin.set_reaction("default", "restart", &spec).await.unwrap();
    let warning = made.warning.unwrap();
    assert!(warning.contains("mangaer") && warning.contains("subject, manager and members"), "{warning}");
    assert_eq!(admin.reaction("default", "restart").await.unwrap().warning, None);
    let document =
        json!({"kind": "reaction", "name": "applied", "on": "all", "workflow": "backup", "nodes": "mangaer"});
    let documents = serde_json::from_value(json!([document])).unwrap();
    let request = ApplyRequest { documents, dry_run: true, ..ApplyRequest::default() };
    let note = admin.apply("default", &request).await.unwrap().objects.pop().unwrap().note.unwrap();
    assert!(note.ends_with(&warning) && note.starts_with("no run starts until"), "{note}");
    for (condition, subject, form) in [
        ("store_down", "cluster/db/kv", "store/NODE/PROBE"),
        ("no_primary", "store/db-1/kv", "cluster/CLUSTER/PROBE"),
        ("node_unreachable", "store/db-1/kv", "node/NODE"),
    ] {
        let (code, said) =
            problem(admin.test_reaction("default", "restart", &asked(condition, subject)).await);
        assert!(code == Code::Invalid && said.contains(form), "{said}");
    }
    let spec = ReactionSpec { nodes: Some("manager".to_owned()), ..spec };
    assert_eq!(admin.set_reaction("default", "restart", &spec).await.unwrap().warning, None);
}

#[tokio::test]
async fn a_condition_that_there_is_not_is_refused_with_those_there_are() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    let misspelt = on("condition = no_primry and cluster = db", "promote");
    let (code, said) = problem(admin.set_reaction("default", "promote", &misspelt).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("no_primry") && said.contains("no_primary"), "{said}");
    admin.set_reaction("default", "promote", &on("condition = store_down", "promote")).await.unwrap();
    let test = asked("no_primry", "node/db-1");
    let (code, said) = problem(admin.test_reaction("default", "promote", &test).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("there are store_down"), "{said}");
    let test = asked("no_primary", "db-1");
    let (code, _) = problem(admin.test_reaction("default", "promote", &test).await);
    assert_eq!(code, Code::Invalid);
}

#[tokio::test]
async fn a_reaction_that_no_condition_can_have_run_anything_is_refused() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for (filter, field) in [
        ("condition = node_unreachable and probe = db", "on: it matches no condition"),
        ("condition = no_primary and node = db-1", "on: it matches no condition"),
        ("condition = no_primary and condition = store_down", "on: it matches no condition"),
        ("not node and not probe", "on: it matches no condition"),
        ("node and condition = no_primary", "on: it matches no condition"),
        ("condition = no_primary", "nodes: the subject of no_primary is a whole cluster"),
        ("not node", "no_primary, primary_unknown"),
    ] {
        let (code, said) = problem(admin.set_reaction("default", "repair", &on(filter, "repair")).await);
        assert!(code == Code::Invalid && said.contains(field), "{filter}: {said}");
    }
    let manager =
        ReactionSpec { nodes: Some("manager".to_owned()), ..on("condition = no_primary", "repair") };
    assert_eq!(admin.set_reaction("default", "repair", &manager).await.unwrap().warning, None);
}

#[tokio::test]
async fn what_was_wrong_with_a_data_store_is_over_once_its_node_is_decommissioned() {
    let installation = Installation::lenient().await;
    let (admin, node) = (installation.admin(), installation.node("db-1").await);
    reports(&node, 1, "down").await;
    let conditions = async || admin.overview("default").await.unwrap().conditions;
    eventually("it is a condition of the fleet", async || (conditions().await == 1).then_some(())).await;
    admin.decommission_node("default", "db-1", "it burned").await.unwrap();
    eventually("it is none any more", async || (conditions().await == 0).then_some(())).await;
}
