//! Facts of nodes: reported by agents, read by filters and selectors, and read again on request.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::paths::encode;
use bellwether_api::problem::Code;
use bellwether_api::v1::facts::NodeFacts;
use bellwether_api::v1::node_params::NodeProfiles;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::{Params, ParamsPatch};
use bellwether_api::v1::report::Report;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, Node, SOON, problem};

fn facts(node: &Node, rescan: u64, facts: &Value) -> NodeFacts {
    let facts: BTreeMap<String, Value> = serde_json::from_value(facts.clone()).unwrap();
    NodeFacts { node: node.name.clone(), rescan, received_at_ms: 0, facts }
}

async fn send(node: &Node, what: &Value) {
    node.client.facts("default", &facts(node, 0, what)).await.unwrap();
}

#[tokio::test]
async fn a_selector_with_what_no_node_has_is_warned_of() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let path = "/v1/namespaces/default/entities/app";
    let warning = async |selector: &str| {
        let body = json!({"selector": selector});
        let put: Value = admin.send(Method::PUT, path, &body, SOON).await.unwrap();
        let patched: Value = admin.send(Method::PATCH, path, &body, SOON).await.unwrap();
        let document = json!({"kind": "entity", "name": "other", "selector": selector});
        let documents = json!({"documents": [document], "dry_run": true});
        let apply = "/v1/namespaces/default/apply";
        let applied: Value = admin.send(Method::POST, apply, &documents, SOON).await.unwrap();
        let found = put["warning"].as_str().map(str::to_owned);
        for other in [&patched["warning"], &applied["objects"][0]["note"]] {
            assert_eq!(other.as_str(), found.as_deref(), "{selector}");
        }
        found
    };
    // Nobody has anything before the first node joins.
    assert_eq!(warning("rol=web").await, None);
    let node = installation.node("web-1").await;
    send(&node, &json!({"cpus": 4})).await;
    assert_eq!(warning("role=web and fact.cpus > 2 and not name=web-9").await, None);
    let found = warning("role=web and not rol=db").await.unwrap();
    assert!(found.starts_with("warning: the selector tests label[\"rol\"], which no node has"), "{found}");
    let found = warning("fact.gpus > 2").await.unwrap();
    assert!(found.contains("tests fact[\"gpus\"], which no node has"), "{found}");
}

/// The names of the nodes that a filter matches.
async fn nodes(client: &Client, filter: &str) -> String {
    let path = format!("/v1/namespaces/default/nodes?filter={}&fields=name", encode(filter));
    let page: Page<Value> = client.get(&path, SOON).await.unwrap();
    page.items.iter().filter_map(|item| item["name"].as_str()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn facts_params_and_profiles_are_filtered_by() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = (installation.node("web-1").await, installation.node("web-2").await);
    let disk = |size: u64, empty: bool| json!({"name": "sda", "size_gib": size, "empty": empty});
    let of_one =
        json!({"os": "debian", "cpus": 8, "memory_gib": 62.7, "addresses": ["10.0.0.1", "::1"], "disks": []});
    send(&one, &of_one).await;
    send(&two, &json!({"os": "alpine", "cpus": 2, "disks": [disk(10, false), disk(931, true)]})).await;
    let set = Params::from([("role".to_owned(), json!("db")), ("port".to_owned(), json!(80))]);
    let patch = ParamsPatch { set, ..ParamsPatch::default() };
    admin.patch_node_params("default", "web-1", &patch).await.unwrap();
    let profiles = NodeProfiles { profiles: vec!["k3s".to_owned()], ..NodeProfiles::default() };
    let path = "/v1/namespaces/default/nodes/web-2/profiles";
    admin.send::<_, Value>(http::Method::PUT, path, &profiles, SOON).await.unwrap();
    for (filter, names) in [
        ("fact.os = debian", "web-1"),
        ("fact.memory_gib >= 62.5", "web-1"),
        ("fact.cpus > 4 or fact.cpus = 2.0", "web-1 web-2"),
        ("fact.addresses = \"10.0.0.1\"", "web-1"),
        ("fact.addresses != \"10.0.0.1\"", "web-2"),
        ("fact.addresses =~ '^10[.]'", "web-1"),
        ("fact.disks.empty = true and fact.disks.size_gib >= 900", "web-2"),
        ("exists(fact.disks)", "web-1 web-2"),
        ("param.role = db and param.port < 100", "web-1"),
        ("role Eq db", "web-1"),
        ("param[\"port\"] = \"80\"", ""),
        ("profile = k3s", "web-2"),
        ("profile", "web-2"),
        ("fact.cpus = '8' or fact.os > 3", ""),
    ] {
        assert_eq!(nodes(&admin, filter).await, names, "{filter}");
    }
    let shown = admin.node("default", "web-1").await.unwrap().facts.unwrap();
    assert_eq!((json!(shown.facts), shown.rescan), (of_one, 0));
    let listed: Page<Value> = admin.get("/v1/namespaces/default/nodes", SOON).await.unwrap();
    assert_eq!(listed.items[0].get("facts"), None, "a list of all nodes is not the place for them");
}

#[tokio::test]
async fn facts_are_the_nodes_own_and_limited_and_a_repetition_changes_nothing() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let other = installation.node("web-2").await;
    let (code, detail) = problem(node.client.facts("default", &facts(&other, 0, &json!({}))).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
    let mut renamed = facts(&node, 0, &json!({}));
    renamed.node = "web-2".to_owned();
    let sent = node.client.send::<_, Value>(
        http::Method::PUT,
        "/v1/namespaces/default/nodes/web-1/facts",
        &renamed,
        SOON,
    );
    assert!(problem(sent.await).1.contains("reports about itself only"));
    for (wrong, reason) in [
        (json!({"a b": 1}), "it is not a valid name"),
        (json!({"os": "x".repeat(300)}), "longer than 256 bytes"),
        (json!({"os": "x\u{1b}[2J"}), "a control character"),
        (json!({"disks": vec![json!(1); 300]}), "more than 256 items"),
        (json!({"disks": [[[[1]]]]}), "nested too deeply"),
    ] {
        let (code, detail) = problem(node.client.facts("default", &facts(&node, 0, &wrong)).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(reason), "{detail}");
    }
    let disks =
        |names: &[&str]| json!({"disks": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
    send(&node, &disks(&["sda"])).await;
    let first = installation.admin().node("default", "web-1").await.unwrap().facts.unwrap();
    send(&node, &disks(&["sda"])).await;
    let same = installation.admin().node("default", "web-1").await.unwrap().facts.unwrap();
    assert_eq!(first, same);
    send(&node, &disks(&["sda", "sdb"])).await;
    let events = installation.admin().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let changed: Vec<_> = events.iter().filter(|event| event.kind == "node.disks_changed").collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].after.as_deref(), Some("disks=sda,sdb"));
}

#[tokio::test]
async fn facts_outlive_a_server_and_not_the_machine() {
    let mut installation = Installation::new().await;
    let node = installation.node("web-1").await;
    send(&node, &json!({"cpus": 8})).await;
    installation.restart().await;
    let admin = installation.admin();
    assert_eq!(nodes(&admin, "fact.cpus = 8").await, "web-1");
    admin.decommission_node("default", "web-1", "disk died").await.unwrap();
    installation.node("web-1").await;
    assert_eq!(admin.node("default", "web-1").await.unwrap().facts, None);
    assert_eq!(nodes(&admin, "fact.cpus").await, "");
}

/// The number of the rescan in a node's order; 0 if it has none.
async fn ordered(node: &Node) -> u64 {
    let poll = node.client.sync("default", &node.name, (0, None), Duration::from_millis(50)).await.unwrap();
    poll.order.map_or(0, |order| order.rescan)
}

/// The number of the rescan in a node's order, once there is one.
async fn requested(node: &Node) -> u64 {
    let waited = async {
        loop {
            let number = ordered(node).await;
            if number > 0 {
                return number;
            }
        }
    };
    tokio::time::timeout(SOON, waited).await.expect("the order has no rescan")
}

#[tokio::test]
async fn a_rescan_is_in_the_order_of_an_agent_that_knows_it_and_outlives_a_server() {
    let mut installation = Installation::lenient().await;
    let node = installation.node("web-1").await;
    let report = |features: &[&str]| Report {
        features: Some(features.iter().map(|feature| (*feature).to_owned()).collect()),
        ..node.empty_report()
    };
    node.client.report("default", &report(&["versions"])).await.unwrap();
    let viewer = installation.token("viewer").await;
    assert_eq!(problem(viewer.rescan_node("default", "web-1").await).0, Code::Forbidden);
    let operator = installation.token("operator").await;
    assert_eq!(problem(operator.rescan_node("default", "web-9").await).0, Code::NotFound);
    assert_eq!(operator.rescan_node("default", "web-1").await.unwrap().rescan, 1);
    assert_eq!(operator.rescan_node("default", "web-1").await.unwrap().rescan, 2);
    assert_eq!(ordered(&node).await, 0, "the agent does not know it");
    node.client.report("default", &report(&["versions", "facts"])).await.unwrap();
    assert_eq!(requested(&node).await, 2);
    installation.restart().await;
    let node = installation.node_again(node);
    assert_eq!(requested(&node).await, 2);
    node.client.facts("default", &facts(&node, 2, &json!({"cpus": 1}))).await.unwrap();
    let view = installation.admin().node("default", "web-1").await.unwrap();
    assert_eq!((view.node.rescan, view.facts.unwrap().rescan), (2, 2));
}
