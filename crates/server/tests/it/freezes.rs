//! Freezes: which updates they prevent, who may set them, and how they end.

use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::evidence::Evidence;
use bellwether_api::v1::freeze::FreezeSpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::status::{RolloutPause, RolloutWait};
use bellwether_api::v1::rollout::{RolloutOperation, RolloutState};

use crate::harness::{Installation, Node, policy, problem, set_entity, until, version};

/// Long enough for many passes of a reconciler that runs after every change.
const PASSES: Duration = Duration::from_millis(500);

fn stop(why: &str) -> FreezeSpec {
    FreezeSpec { kind: "stop".parse().ok(), reason: why.to_owned(), ..FreezeSpec::default() }
}

fn act() -> RolloutOperation {
    RolloutOperation::default()
}

/// Creates nodes, all of them at `v1`.
async fn fleet(installation: &Installation, count: usize, policy: Policy) -> Vec<Node> {
    let admin = installation.admin();
    let mut nodes = Vec::new();
    for number in 1..=count {
        nodes.push(installation.node(&format!("web-{number:02}")).await);
    }
    // The last node reports late on a busy machine: it must not be declared unreachable before.
    let patient = Policy { deadline: Some("1h".to_owned()), ..self::policy("100%", "0s") };
    set_entity(&admin, patient).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    for node in &nodes {
        let number = node.assigned("v1").await;
        node.runs("v1", number, TargetHealth::Healthy).await;
    }
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    set_entity(&admin, policy).await;
    nodes
}

/// How often each version is assigned.
async fn assigned(installation: &Installation, version: &str) -> usize {
    let nodes = installation.admin().nodes("default", true).await.unwrap().items;
    nodes.iter().filter(|node| node.assigned.get("web").is_some_and(|assigned| assigned == version)).count()
}

#[tokio::test]
async fn a_stop_starts_no_new_updates_and_ending_it_continues() {
    let installation = Installation::patient().await;
    let admin = installation.admin();
    let policy = Policy { deadline: Some("1h".to_owned()), ..policy("6", "0s") };
    let nodes = fleet(&installation, 60, policy).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    for node in nodes.iter().take(6) {
        let number = node.assigned("v2").await;
        node.runs("v2", number, TargetHealth::Healthy).await;
    }
    nodes.get(6).unwrap().assigned("v2").await;
    let set = admin.set_freeze(Some("default"), "stop-everything", &stop("smoke")).await.unwrap();
    assert!(!set.global && !set.expired && set.hint.is_none());
    until(&admin, |view| {
        matches!(&view.rollout.as_ref().unwrap().status.paused, Some(RolloutPause::Stopped { freeze, .. }) if freeze == "stop-everything")
    })
    .await;
    let before = assigned(&installation, "v2").await;
    // Updates in flight finish, and no new one starts.
    for node in nodes.iter().take(before).skip(6) {
        let number = node.assigned("v2").await;
        node.runs("v2", number, TargetHealth::Healthy).await;
    }
    tokio::time::sleep(PASSES).await;
    assert!(before < 60, "the rollout was over before the stop");
    assert_eq!(assigned(&installation, "v2").await, before, "something was dispatched after the stop");
    let (code, detail) = problem(admin.act_on_rollout("default", "web", "resume", &act()).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("stop-everything") && detail.contains("smoke"), "{detail}");

    admin.delete_freeze(Some("default"), "stop-everything").await.unwrap();
    for node in nodes.iter().skip(before) {
        let number = node.assigned("v2").await;
        node.runs("v2", number, TargetHealth::Healthy).await;
    }
    let view = until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v2")).await;
    assert_eq!((view.counts.succeeded, view.counts.failed), (60, 0), "something was lost");
}

#[tokio::test]
async fn a_stop_is_lifted_before_a_freeze_of_its_name_is_set() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let freeze = FreezeSpec { kind: None, lasts: Some("1s".to_owned()), ..stop("") };
    let narrower = FreezeSpec { entity: Some("web".to_owned()), ..stop("") };
    for namespace in [Some("default"), None] {
        for name in ["stop-everything", "halt"] {
            admin.set_freeze(namespace, name, &narrower).await.unwrap();
            // A stop of more replaces it.
            admin.set_freeze(namespace, name, &stop("smoke")).await.unwrap();
            let (code, detail) = problem(admin.set_freeze(namespace, name, &freeze).await);
            assert_eq!(code, Code::Refused);
            assert_eq!(detail, format!("cannot replace {name} with a freeze: it stops everything"));
            let (_, detail) = problem(admin.set_freeze(namespace, name, &narrower).await);
            let wanted = format!("cannot replace {name} with a stop of entity web: it stops everything");
            assert_eq!(detail, wanted);
            assert_eq!(admin.freeze(namespace, name).await.unwrap().freeze.reason, "smoke");
            admin.delete_freeze(namespace, name).await.unwrap();
            admin.set_freeze(namespace, name, &freeze).await.unwrap();
            admin.delete_freeze(namespace, name).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_stop_holds_a_rollback_too_and_a_freeze_does_not() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let policy =
        Policy { rollback: Some("2".to_owned()), failures: Some("0".to_owned()), ..policy("6", "0s") };
    let nodes = fleet(&installation, 6, policy).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let mut numbers = Vec::new();
    for node in &nodes {
        numbers.push(node.assigned("v2").await);
    }
    let evidence = Evidence { summary: "check http failing: status 500".to_owned(), ..Evidence::default() };
    let first = nodes.first().unwrap();
    first.runs("v2", *numbers.first().unwrap(), TargetHealth::Failing { evidence }).await;
    until(&admin, |view| view.rollout.as_ref().unwrap().status.state == RolloutState::RollingBack).await;
    // A stop in all namespaces.
    let set = admin.set_freeze(None, "halt", &stop("")).await.unwrap();
    assert!(set.global && set.hint.unwrap().contains("--reason"));
    until(&admin, |view| {
        matches!(view.rollout.as_ref().unwrap().status.paused, Some(RolloutPause::Stopped { .. }))
    })
    .await;
    let before = assigned(&installation, "v1").await;
    assert!(before < 6, "the way back was over before the stop");
    tokio::time::sleep(PASSES).await;
    assert_eq!(assigned(&installation, "v1").await, before, "the way back went on under a stop");

    let mere = FreezeSpec { reason: "holidays".to_owned(), ..FreezeSpec::default() };
    admin.set_freeze(None, "holidays", &mere).await.unwrap();
    admin.delete_freeze(None, "halt").await.unwrap();
    // Targets with the order to roll back do so; the engine decides the sequence.
    let mut left = nodes;
    while !left.is_empty() {
        let mut waiting = Vec::new();
        for node in left {
            if admin.node("default", &node.name).await.unwrap().assigned.get("web").unwrap() == "v1" {
                let number = node.assigned("v1").await;
                node.runs("v1", number, TargetHealth::Healthy).await;
            } else {
                waiting.push(node);
            }
        }
        left = waiting;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until(&admin, |view| view.rollout.as_ref().unwrap().ended_ms.is_some()).await;
}

#[tokio::test]
async fn freezes_are_set_replaced_listed_and_ended_with_their_events() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let lasting = |lasts: &str| FreezeSpec {
        lasts: Some(lasts.to_owned()),
        reason: "sale".to_owned(),
        ..FreezeSpec::default()
    };
    admin.set_freeze(Some("default"), "sale", &lasting("4h")).await.unwrap();
    admin.set_freeze(None, "audit", &stop("audit")).await.unwrap();
    let listed = admin.freezes(Some("default")).await.unwrap().items;
    let listed: Vec<_> = listed.iter().map(|view| (view.freeze.name.as_str(), view.global)).collect();
    assert_eq!(listed, [("audit", true), ("sale", false)]);
    assert_eq!(admin.freezes(None).await.unwrap().items.len(), 1);

    admin.set_freeze(Some("default"), "sale", &lasting("1ms")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(admin.freeze(Some("default"), "sale").await.unwrap().expired);
    assert!(!admin.set_freeze(Some("default"), "sale", &lasting("1h")).await.unwrap().expired);
    admin.delete_freeze(Some("default"), "sale").await.unwrap();
    for name in ["sale", "audit"] {
        assert_eq!(problem(admin.delete_freeze(Some("default"), name).await).0, Code::NotFound);
    }
    assert_eq!(problem(admin.freeze(Some("default"), "audit").await).0, Code::NotFound);
    admin.delete_freeze(None, "audit").await.unwrap();

    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let about = events.iter().filter(|event| event.subject == "freeze/sale");
    let about: Vec<_> =
        about.map(|event| (event.kind.as_str(), event.before.is_some(), event.actor.as_str())).collect();
    let on = |replaced| ("freeze.on", replaced, "admin");
    assert_eq!(about, [on(false), on(true), on(true), ("freeze.off", true, "admin")]);
}

#[tokio::test]
async fn a_freeze_that_makes_no_sense_is_refused_with_its_place() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (FreezeSpec { lasts: text("0s"), ..FreezeSpec::default() }, "lasts"),
        (FreezeSpec { lasts: text("366d"), ..FreezeSpec::default() }, "1 year"),
        (
            FreezeSpec { entity: text("web"), targets: text("all"), ..FreezeSpec::default() },
            "exclude each other",
        ),
        (FreezeSpec { targets: text("zone="), ..FreezeSpec::default() }, "targets"),
    ];
    for (spec, says) in cases {
        let (code, detail) = problem(admin.set_freeze(Some("default"), "x", &spec).await);
        assert_eq!(code, Code::Invalid);
        assert!(detail.contains(says), "{detail}");
    }
    let ghost = FreezeSpec { entity: text("ghost"), ..FreezeSpec::default() };
    let set = admin.set_freeze(Some("default"), "x", &ghost).await.unwrap();
    assert!(set.hint.unwrap().contains("entity ghost does not exist"));
}

#[tokio::test]
async fn operators_freeze_their_namespace_and_only_admins_all_of_them() {
    let installation = Installation::new().await;
    let operator = installation.token("operator").await;
    let viewer = installation.token("viewer").await;
    operator.set_freeze(Some("default"), "mine", &stop("x")).await.unwrap();
    assert_eq!(viewer.freezes(Some("default")).await.unwrap().items.len(), 1);
    assert_eq!(problem(viewer.set_freeze(Some("default"), "mine", &stop("x")).await).0, Code::Forbidden);
    assert_eq!(problem(operator.set_freeze(None, "all", &stop("x")).await).0, Code::Forbidden);
    assert_eq!(
        operator.freezes(None).await.unwrap().items.len(),
        0,
        "they hold its rollouts, so it may read them"
    );
}

#[tokio::test]
async fn a_stage_waits_for_approval_of_just_that_stage() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let stages = ["1", "100% approve"].map(str::to_owned).to_vec();
    let nodes = fleet(&installation, 3, Policy { stages: Some(stages), ..policy("3", "0s") }).await;
    let stage = |stage| RolloutOperation { stage: Some(stage), ..RolloutOperation::default() };
    assert_eq!(problem(admin.act_on_rollout("default", "web", "approve", &act()).await).0, Code::Refused);
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let first = nodes.first().unwrap();
    let number = first.assigned("v2").await;
    first.runs("v2", number, TargetHealth::Healthy).await;
    let view = until(&admin, |view| {
        matches!(view.rollout.as_ref().unwrap().status.waiting, Some(RolloutWait::Approval { .. }))
    })
    .await;
    let Some(RolloutWait::Approval { stage: waits }) = view.rollout.unwrap().status.waiting else {
        panic!("it waits")
    };
    let (code, detail) = problem(admin.act_on_rollout("default", "web", "pause", &stage(waits)).await);
    assert!(code == Code::Invalid && detail.contains("only approve takes a stage"), "{detail}");
    let (code, detail) = problem(admin.act_on_rollout("default", "web", "approve", &stage(waits + 7)).await);
    assert!(code == Code::Refused && detail.contains("waits for approval"), "{detail}");
    admin.act_on_rollout("default", "web", "approve", &stage(waits)).await.unwrap();
    for node in nodes.iter().skip(1) {
        let number = node.assigned("v2").await;
        node.runs("v2", number, TargetHealth::Healthy).await;
    }
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v2")).await;
}

/// Outside a rollout, too, the reason names the freeze.
#[tokio::test]
async fn a_node_that_joins_during_a_freeze_waits_and_why_names_the_freeze() {
    let installation = Installation::patient().await;
    let admin = installation.admin();
    fleet(&installation, 1, policy("1", "0s")).await;
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    let spec =
        FreezeSpec { entity: Some("web".to_owned()), reason: "audit".to_owned(), ..FreezeSpec::default() };
    admin.set_freeze(Some("default"), "quiet", &spec).await.unwrap();
    let late = installation.node("web-02").await;
    late.client.report("default", &late.empty_report()).await.unwrap();
    let looking = async {
        loop {
            late.client.sync("default", "web-02", (0, None), Duration::from_millis(50)).await.unwrap();
            let why = admin.why("default", "target/web/web-02").await.unwrap().lines.join("\n");
            if why.contains("frozen by quiet") && why.contains("freeze off quiet") {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.expect("why names the freeze");
}
