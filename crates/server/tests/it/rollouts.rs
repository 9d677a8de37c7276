//! The whole control plane: nodes that report over TLS, and rollouts that follow.

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::NewJoinToken;
use bellwether_api::v1::evidence::Evidence;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::{RolloutOperation, RolloutState};
use std::time::Duration;

use crate::harness::{Installation, Node, policy, problem, set_entity, until, version};

#[tokio::test]
async fn a_good_version_becomes_known_good_and_a_bad_one_is_rolled_back() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = (installation.node("web-1").await, installation.node("web-2").await);
    set_entity(&admin, policy("1", "0s")).await;

    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    for node in [&one, &two] {
        let number = node.assigned("v1").await;
        node.runs("v1", number, TargetHealth::Healthy).await;
    }
    let view = until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    assert_eq!(view.counts.succeeded, 2);

    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let number = one.assigned("v2").await;
    let evidence = Evidence { summary: "check http failing: status 500".to_owned(), ..Evidence::default() };
    one.runs("v2", number, TargetHealth::Failing { evidence }).await;
    let number = one.assigned("v1").await;
    one.runs("v1", number, TargetHealth::Healthy).await;
    let view =
        until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    let rollout = view.rollout.unwrap();
    assert_eq!(rollout.status.state, RolloutState::RolledBack);
    assert_eq!(view.progress.bad.last().unwrap().version, "v2");
    assert_eq!(rollout.failures.first().unwrap().evidence.summary, "check http failing: status 500");
    let why = admin.why("default", "entity/web").await.unwrap().lines;
    assert!(why[1].starts_with("web-1: failed on v2 ") && why[1].ends_with("status 500"), "{why:?}");
    assert!(why[2].ends_with("bellwether rollout get web --number 2"), "{why:?}");
    assert_eq!(why[3], "all 2 targets run v1");
    let assigned = admin.node("default", "web-2").await.unwrap().assigned;
    assert_eq!(assigned.get("web").map(String::as_str), Some("v1"), "the second node was never assigned v2");

    let events = admin.events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "events have no gaps");
    for kind in
        ["rollout.started", "rollout.known_good", "rollout.known_bad", "rollout.rolled_back", "node.up"]
    {
        assert!(events.iter().any(|event| event.kind == kind), "no event {kind}");
    }
}

#[tokio::test]
async fn nothing_is_decided_or_written_while_nothing_changes() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    let revision = admin.entities("default").await.unwrap().revision;
    // A long poll that times out is a heartbeat: it opens and closes a session and must write nothing.
    node.client.sync("default", "web-1", (999, None), Duration::from_millis(300)).await.unwrap();
    node.runs("v1", number, TargetHealth::Healthy).await;
    assert_eq!(admin.entities("default").await.unwrap().revision, revision);
}

#[tokio::test]
async fn a_silent_node_is_suspect_then_unreachable_and_comes_back() {
    let mut installation = Installation::new().await;
    installation.config.settings.limits.suspect = "200ms".parse().unwrap();
    installation.config.settings.limits.unreachable = "600ms".parse().unwrap();
    installation.restart().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.sync("default", "web-1", (0, None), Duration::from_millis(50)).await.unwrap();
    let mut after = 0;
    let mut seen = Vec::new();
    while seen.last().map(String::as_str) != Some("node.unreachable") {
        let page = admin.events("default", Some(after), 100, Duration::from_secs(10)).await.unwrap();
        assert!(!page.items.is_empty(), "nothing more happened after {seen:?}");
        after = page.items.last().unwrap().seq;
        seen.extend(page.items.into_iter().map(|event| event.kind).filter(|kind| kind.starts_with("node.")));
    }
    assert_eq!(seen, ["node.joined", "node.up", "node.suspect", "node.unreachable"]);
    node.client.sync("default", "web-1", (0, None), Duration::from_millis(50)).await.unwrap();
    let page = admin.events("default", Some(after), 100, Duration::from_secs(10)).await.unwrap();
    assert_eq!(page.items.first().unwrap().kind, "node.up");
}

#[tokio::test]
async fn removing_an_entity_leaves_no_records_and_no_orders() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    admin.delete_entity("default", "web").await.unwrap();
    assert!(admin.current_rollout("default", "web", None, Duration::ZERO).await.is_err());
    set_entity(&admin, policy("1", "0s")).await;
    let view = until(&admin, |view| view.progress.last_rollout == 0).await;
    assert!(view.progress.last_known_good.is_none(), "the old entity's memory is gone");
}

#[tokio::test]
async fn a_request_that_does_not_start_at_once_is_answered_with_what_happens_instead() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    let finish = Policy { supersede: "finish".parse().ok(), ..policy("1", "0s") };
    set_entity(&admin, finish).await;
    let start = async |text: &str| admin.start_rollout("default", "web", &version(text)).await.unwrap();
    assert_eq!(start("v1").await.summary(), "rollout of v1 started");
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    start("v2").await;
    node.assigned("v2").await;
    assert_eq!(start("v3").await.summary(), "rollout of v3 queued: starts when rollout 2 has ended");
    let replaced = start("v4").await;
    assert_eq!((replaced.queued_behind, replaced.replaces.as_deref()), (Some(2), Some("v3")));
    let undone = start("v1").await;
    assert_eq!(undone.summary(), "rollout 2 is rolled back to v1; the queued rollout of v4 is dropped");
    let events = admin.events("default", Some(0), 1_000, std::time::Duration::ZERO).await.unwrap().items;
    let dropped = events.iter().filter(|event| event.kind == "rollout.dropped");
    let dropped: Vec<&str> = dropped.map(|event| event.cause.as_str()).collect();
    assert_eq!(
        dropped,
        ["the queued request for v3 was replaced by v4", "the queued request for v4 was replaced by v1"]
    );
}

/// Rolls `version` out to the only node.
async fn rolled_out(admin: &Client, node: &Node, text: &str) -> u64 {
    admin.start_rollout("default", "web", &version(text)).await.unwrap();
    let number = node.assigned(text).await;
    node.runs(text, number, TargetHealth::Healthy).await;
    until(admin, |view| view.progress.last_known_good.as_deref() == Some(text)).await;
    number
}

#[tokio::test]
async fn an_undo_of_a_good_version_is_refused_with_the_good_one_before_and_an_abort_of_what_ended_with_the_history()
 {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    let act = async |verb: &str| match admin
        .act_on_rollout("default", "web", verb, &RolloutOperation::default())
        .await
        .unwrap_err()
    {
        CallError::Problem(problem) => (problem.detail, problem.hint),
        other => panic!("not a problem: {other}"),
    };
    rolled_out(&admin, &node, "v1").await;
    let (detail, hint) = act("undo").await;
    assert!(detail.contains("every target runs v1") && hint.is_none(), "{detail} {hint:?}");
    rolled_out(&admin, &node, "v2").await;
    let (detail, hint) = act("undo").await;
    assert!(detail.contains("every target runs v2"), "{detail}");
    assert_eq!(hint.unwrap(), "v1 was good before it: bellwether rollout start web v1");
    for verb in ["abort", "pause"] {
        let (detail, hint) = act(verb).await;
        assert_eq!(detail, format!("cannot {verb} the rollout: no rollout is under way"));
        assert_eq!(hint.unwrap(), "see: bellwether rollout history web");
    }
}

#[tokio::test]
async fn failures_after_a_success_are_counted_in_the_summary_also_between_two_of_them() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    let number = rolled_out(&admin, &node, "v1").await;
    let counted = async || admin.overview("default").await.unwrap().entities[0].late_failures;
    assert_eq!(counted().await, 0);
    let evidence = || Evidence { summary: "exit code 1".to_owned(), ..Evidence::default() };
    let mut after = 0;
    for (health, kind) in [
        (TargetHealth::Failing { evidence: evidence() }, "target.late_failure"),
        (TargetHealth::Healthy, "target.recovered"),
        (TargetHealth::Failing { evidence: evidence() }, "target.late_failure"),
    ] {
        node.runs("v1", number, health).await;
        while !admin
            .events("default", Some(after), 1_000, Duration::from_secs(10))
            .await
            .unwrap()
            .items
            .iter()
            .inspect(|event| after = event.seq)
            .any(|event| event.kind == kind)
        {}
    }
    assert_eq!(counted().await, 2);
}

#[tokio::test]
async fn a_join_token_for_a_node_that_is_up_is_refused() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.sync("default", "web-1", (0, None), Duration::from_millis(50)).await.unwrap();
    let token = |node: &str| NewJoinToken {
        node: Some(node.to_owned()),
        labels: vec!["*".to_owned()],
        ..NewJoinToken::default()
    };
    let up = async || admin.node("default", "web-1").await.unwrap().presence.state == "up";
    while !up().await {
        node.client.sync("default", "web-1", (0, None), Duration::from_millis(50)).await.unwrap();
    }
    let (code, detail) = problem(admin.create_join_token(&token("web-1")).await);
    assert!(code == Code::Refused && detail.contains("a node of this name is up"), "{detail}");
    admin.create_join_token(&token("web-2")).await.unwrap();
    admin.decommission_node("default", "web-1", "").await.unwrap();
    admin.create_join_token(&token("web-1")).await.unwrap();
}
