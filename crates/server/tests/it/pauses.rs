//! Pauses of nodes by selector: which nodes they hold, also later, and how they end.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::node::LabelChange;
use bellwether_api::v1::pause::PauseSpec;
use bellwether_api::v1::report::TargetHealth;

use crate::harness::{Installation, Node, SOON, policy, problem, set_entity, until, version};

fn spec(nodes: &str, why: &str) -> PauseSpec {
    PauseSpec { nodes: nodes.to_owned(), reason: why.to_owned() }
}

/// Waits until the node's order is paused for this reason, or not paused.
async fn told_to_rest(node: &Node, expected: Option<&str>) {
    let mut generation = 0;
    let asking = async {
        loop {
            let known = (generation, None);
            let wait = Duration::from_secs(1);
            let sync = node.client.sync("default", &node.name, known, wait).await.unwrap();
            let Some(order) = sync.order else {
                if generation == 0 && expected.is_none() {
                    return;
                }
                continue;
            };
            generation = order.generation;
            if order.paused.as_deref() == expected {
                return;
            }
        }
    };
    let seen = tokio::time::timeout(SOON, asking).await;
    assert!(seen.is_ok(), "{} was never assigned {expected:?}", node.name);
}

async fn label(admin: &Client, node: &str, key: &str, value: &str) {
    let change = LabelChange { set: [(key.to_owned(), value.to_owned())].into(), remove: Vec::new() };
    admin.label_node("default", node, &change).await.unwrap();
}

async fn why(admin: &Client, node: &str) -> String {
    admin.why("default", &format!("node/{node}")).await.unwrap().lines.join("\n")
}

#[tokio::test]
async fn a_pause_by_selector_holds_nodes_that_match_later_and_releases_those_that_no_longer_match() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let one = installation.node("web-1").await;
    let set = admin.set_pause("default", "disks", &spec("role=web and zone=b", "new disks")).await.unwrap();
    assert_eq!(set.held, 0);
    label(&admin, "web-1", "zone", "b").await;
    let reason = "paused by admin (pause disks of role=web and zone=b): new disks";
    told_to_rest(&one, Some(reason)).await;

    // All nodes that join have the role web: this one is under the second pause from the start.
    admin.set_pause("default", "all-web", &spec("role=web", "")).await.unwrap();
    let two = installation.node("web-2").await;
    told_to_rest(&two, Some("paused by admin (pause all-web of role=web)")).await;
    let pauses = admin.pauses("default").await.unwrap().items;
    let held: Vec<_> = pauses.iter().map(|view| (view.pause.name.as_str(), view.held)).collect();
    assert_eq!(held, [("all-web", 2), ("disks", 1)]);
    assert_eq!(admin.overview("default").await.unwrap().paused, 2);

    // No version is assigned to them, and rollouts change no pause.
    set_entity(&admin, policy("100%", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| view.counts.targets == 2).await;
    let said = why(&admin, "web-1").await;
    assert!(said.contains(&format!("it is {reason}; bellwether pause off disks")), "{said}");
    assert!(said.contains("pause off all-web"), "{said}");

    admin.delete_pause("default", "all-web").await.unwrap();
    told_to_rest(&two, None).await;
    let number = two.assigned("v1").await;
    two.runs("v1", number, TargetHealth::Healthy).await;
    told_to_rest(&one, Some(reason)).await;
    // A node that loses the label is no longer held.
    label(&admin, "web-1", "zone", "a").await;
    told_to_rest(&one, None).await;
    one.assigned("v1").await;
}

#[tokio::test]
async fn resume_ends_a_nodes_own_pause_and_returns_the_pauses_that_still_hold_it() {
    let mut installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let admin = installation.admin();
    admin.pause_node("default", "web-1", "looking").await.unwrap();
    admin.set_pause("default", "everybody", &spec("all", "an audit")).await.unwrap();
    told_to_rest(&node, Some("paused by admin: looking")).await;
    let view = admin.node("default", "web-1").await.unwrap();
    assert_eq!(view.pauses.iter().map(|pause| pause.name.as_str()).collect::<Vec<_>>(), ["everybody"]);
    for _ in 0..2 {
        let resumed = admin.resume_node("default", "web-1").await.unwrap();
        let held = resumed.held_by.first().unwrap();
        assert_eq!((held.name.as_str(), held.annotation.reason.as_str()), ("everybody", "an audit"));
    }
    told_to_rest(&node, Some("paused by admin (pause everybody of all): an audit")).await;

    // It remains until somebody ends it.
    installation.restart().await;
    let (admin, node) = (installation.admin(), installation.node_again(node));
    told_to_rest(&node, Some("paused by admin (pause everybody of all): an audit")).await;
    admin.delete_pause("default", "everybody").await.unwrap();
    told_to_rest(&node, None).await;
    assert!(admin.resume_node("default", "web-1").await.unwrap().held_by.is_empty());
    assert_eq!(problem(admin.delete_pause("default", "everybody").await).0, Code::NotFound);
    assert_eq!(problem(admin.pause("default", "everybody").await).0, Code::NotFound);
    assert_eq!(problem(admin.set_pause("default", "x", &spec("zone=", "")).await).0, Code::Invalid);

    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let about = events.iter().filter(|event| event.subject == "pause/everybody");
    let about: Vec<_> = about.map(|event| (event.kind.as_str(), event.cause.as_str())).collect();
    let ended = "ended; it was set by admin: an audit";
    assert_eq!(about, [("pause.on", "an audit"), ("pause.off", ended)]);
}
