//! Hooks: selection, approval, monitoring and removal by controllers.

use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::entity::patch::EntityPatch;
use bellwether_api::v1::policy::{Hook, Hooks, Policy};
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::status::RolloutWait;
use bellwether_api::v1::rollout::{NewRollout, RolloutState, RolloutView};
use bellwether_core::words::name::Actor;
use bellwether_server::hooks::settings::HookToken;
use serde_json::{Value, json};
use std::time::Duration;

use crate::harness::{Installation, Node, policy, problem, set_entity, until, version};
use crate::hooked::{Controller, ReceivedQuestion, Say, eventually, hook, some};

fn hooked(hooks: Hooks) -> Policy {
    Policy { hooks: Some(hooks), ..policy("1", "0s") }
}

fn selecting(hook: Hook) -> Policy {
    hooked(Hooks { selection: Some(hook), ..Hooks::default() })
}

pub(crate) fn approving(hook: Hook) -> Policy {
    hooked(Hooks { approval: Some(hook), ..Hooks::default() })
}

/// A token in a file, for URLs that begin with this.
pub(crate) fn token_for(file: std::path::PathBuf, url: &str) -> HookToken {
    HookToken { file, urls: vec![url.parse().unwrap()] }
}

/// Nodes `web-1` to `web-N`, connected.
pub(crate) async fn nodes(installation: &Installation, count: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    for number in 1..=count {
        let node = installation.node(&format!("web-{number}")).await;
        node.client.sync("default", &node.name, (0, None), Duration::from_millis(20)).await.unwrap();
        nodes.push(node);
    }
    nodes
}

/// Whether the rollout waits for this hook for this reason, with no update started.
pub(crate) fn waits(view: &RolloutView, hook: &str, reason: &str) -> bool {
    let waiting = view.rollout.as_ref().and_then(|rollout| rollout.status.waiting.as_ref());
    view.counts.in_flight == 0
        && matches!(waiting, Some(RolloutWait::Hook { hook: asked, reason: said })
            if *asked == hook && said.starts_with(reason))
}

/// The questions about one entity.
fn about(controller: &Controller, entity: &str) -> Vec<ReceivedQuestion> {
    let mut heard = controller.heard();
    heard.retain(|heard| heard.body["entity"] == entity);
    heard
}

#[tokio::test]
async fn a_selection_hook_chooses_the_order_and_is_called_once_per_round() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let nodes = nodes(&installation, 3).await;
    let controller = Controller::saying(Say::Backwards).await;
    set_entity(&admin, selecting(Hook { every: some("1h"), ..controller.hook() })).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    for (index, node) in nodes.iter().rev().enumerate() {
        let number = node.assigned("v1").await;
        let view = until(&admin, |view| view.counts.in_flight == 1).await;
        assert_eq!(view.counts.succeeded, u64::try_from(index).unwrap(), "one after the other");
        node.runs("v1", number, TargetHealth::Healthy).await;
    }
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    let first = controller.heard().first().unwrap().clone();
    assert_eq!(first.path, "/ask");
    assert_eq!(
        first.body,
        json!({
            "namespace": "default", "entity": "web", "rollout": 1, "version": "v1", "hook": "selection",
            "dispatched": 0, "limit": 1, "candidates": ["web-1", "web-2", "web-3"],
        })
    );
    let turns: Vec<Value> = controller.heard().iter().map(|heard| heard.body["dispatched"].clone()).collect();
    assert_eq!(turns, [json!(0), json!(1), json!(2)]);
    let metrics = admin.text("/metrics", Duration::from_secs(5)).await.unwrap();
    let counted = "bellwether_hook_calls_total{hook=\"selection\",result=\"answered\"} 3";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn an_invalid_answer_starts_no_update_and_is_reported() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let nodes = nodes(&installation, 2).await;
    let controller = Controller::saying(Say::Text(200, "hello".to_owned())).await;
    set_entity(&admin, selecting(controller.hook())).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let nonsense = [
        (Say::Text(200, "hello".to_owned()), "the answer is not JSON"),
        (Say::Json(json!({ "target": [] })), "the answer has no \"targets\""),
        (Say::Json(json!({ "targets": 7 })), "the answer is not valid"),
        (Say::Json(json!({ "targets": ["nobody"] })), "named nobody, which is not in the question"),
        (Say::Json(json!({ "targets": ["web-1", "web-2"] })), "chose 2 targets, at most 1 allowed"),
        (Say::Text(500, "boom\nmore".to_owned()), "status 500; the first line of the answer is in the log"),
        (Say::Text(302, String::new()), "status 302"),
        (Say::Text(200, "x".repeat(2 << 20)), "the response is larger than 1 MiB"),
    ];
    for (say, reason) in nonsense {
        controller.say(say);
        until(&admin, |view| waits(view, "selection", reason)).await;
    }
    controller.say(Say::Json(json!({ "targets": ["web-2"], "more": true })));
    nodes.last().unwrap().assigned("v1").await;
    let events = admin.events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| kind.starts_with("hook.")).collect();
    assert_eq!(kinds, ["hook.failed", "hook.recovered"]);
}

#[tokio::test]
async fn a_hook_that_hangs_keeps_its_own_rollout_waiting_and_no_other() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    let controller = Controller::saying(Say::Hang).await;
    set_entity(&admin, approving(Hook { timeout: some("1h"), ..controller.hook() })).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    eventually("it was asked", async || controller.heard().first().cloned()).await;
    let other =
        EntitySpec { selector: "role=web".to_owned(), policy: policy("1", "0s"), ..EntitySpec::default() };
    admin.set_entity("default", "other", &other).await.unwrap();
    admin.start_rollout("default", "other", &version("v1")).await.unwrap();
    eventually("the other one goes on", async || {
        let view = admin.current_rollout("default", "other", None, Duration::ZERO).await.unwrap();
        (view.counts.in_flight == 1).then_some(())
    })
    .await;
    until(&admin, |view| waits(view, "approval", "")).await;
    assert_eq!(controller.heard().len(), 1, "not asked again while it is asked");

    installation.restart().await;
    let admin = installation.admin();
    eventually("the next server asks", async || (controller.heard().len() == 2).then_some(())).await;
    until(&admin, |view| waits(view, "approval", "")).await;
}

#[tokio::test]
async fn timeouts_and_refused_connections_are_distinguished() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    let controller = Controller::saying(Say::Hang).await;
    set_entity(&admin, approving(controller.hook())).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| waits(view, "approval", "timed out after 500ms")).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let nobody = Hook { every: some("200ms"), ..hook(&format!("http://{address}/")) };
    set_entity(&admin, approving(nobody.clone())).await;
    let reason = format!("cannot connect to {address}: ");
    until(&admin, |view| waits(view, "approval", &reason)).await;
}

#[tokio::test]
async fn a_token_that_the_server_does_not_have_is_refused_where_a_policy_names_it() {
    let mut installation = Installation::new().await;
    let board = Actor::parse("board").unwrap();
    let file = installation.config.data_dir.join("hook-token");
    installation.config.hooks.tokens.insert(board.clone(), token_for(file, "http://localhost:1/"));
    installation.restart().await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    let of = |token: &str| approving(Hook { token: some(token), ..hook("http://localhost:1/") });
    set_entity(&admin, of("board")).await;
    let spec =
        EntitySpec { selector: "role=web".to_owned(), policy: of("unheard-of"), ..EntitySpec::default() };
    let patch = EntityPatch { policy: of("unheard-of"), ..EntityPatch::default() };
    let start = NewRollout { policy: of("unheard-of"), ..version("v1") };
    let document = json!({ "kind": "entity", "name": "web", "selector": "all", "policy": spec.policy });
    let apply: ApplyRequest = serde_json::from_value(json!({ "documents": [document] })).unwrap();
    for refused in [
        problem(admin.set_entity("default", "web", &spec).await),
        problem(admin.patch_entity("default", "web", &patch).await),
        problem(admin.start_rollout("default", "web", &start).await),
        problem(admin.apply("default", &apply).await),
    ] {
        let (code, detail) = refused;
        assert_eq!(code, Code::Invalid, "{detail}");
        let reason = "policy.hooks.approval.token: \"unheard-of\" is not in hook_tokens of this server's configuration";
        assert!(detail.contains(reason), "{detail}");
    }
    assert_eq!(admin.entity("default", "web").await.unwrap().policy.hooks, of("board").hooks);
    // Taken from the configuration later, it holds the rollout.
    installation.config.hooks.tokens.remove(&board);
    installation.restart().await;
    let admin = installation.admin();
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let reason = "the server's configuration has no token named board (hook_tokens)";
    until(&admin, |view| waits(view, "approval", reason)).await;
}

#[tokio::test]
async fn no_version_is_assigned_before_the_approval_hook_agrees_and_it_gets_its_token() {
    let mut installation = Installation::new().await;
    let token = installation.config.data_dir.join("hook-token");
    std::fs::write(&token, "s3cret\n").unwrap();
    let no = json!({ "approved": false, "reason": "the board has not met" });
    let controller = Controller::saying(Say::Json(no)).await;
    let token = token_for(token, &format!("http://{}/", controller.address));
    installation.config.hooks.tokens.insert(Actor::parse("board").unwrap(), token);
    // Only hooks change anything here.
    installation.config.settings.limits.suspect = "1m".parse().unwrap();
    installation.config.settings.limits.unreachable = "2m".parse().unwrap();
    installation.restart().await;
    let admin = installation.admin();
    let nodes = nodes(&installation, 1).await;
    set_entity(&admin, approving(Hook { token: some("board"), ..controller.hook() })).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| waits(view, "approval", "the board has not met")).await;
    let (revision, asked) = (admin.entities("default").await.unwrap().revision, controller.heard().len());
    eventually("it asks again", async || (controller.heard().len() > asked + 2).then_some(())).await;
    assert_eq!(admin.entities("default").await.unwrap().revision, revision, "the same answer writes nothing");
    controller.say(Say::Json(json!({ "approved": true })));
    nodes.first().unwrap().assigned("v1").await;
    let heard = controller.heard();
    assert!(heard.iter().all(|heard| heard.bearer.as_deref() == Some("Bearer s3cret")));
    assert_eq!(heard.first().unwrap().body["targets"], json!(["web-1"]));
}

#[tokio::test]
async fn a_hook_behind_tls_is_trusted_by_the_configured_authority_alone() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    let no = || Say::Json(json!({ "approved": false, "reason": "trusted" }));
    let stranger = Controller::behind_tls(installation.server(), no());
    let secure = |controller: &Controller| {
        let url = format!("https://{}/ask", controller.address);
        approving(Hook { url, ..controller.hook() })
    };
    set_entity(&admin, secure(&stranger)).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let reason = format!("cannot connect to {}: invalid peer certificate", stranger.address);
    until(&admin, |view| waits(view, "approval", &reason)).await;
    assert!(stranger.heard().is_empty());

    installation.config.hooks.ca_file = Some(installation.config.data_dir.join("pki/ca.pem"));
    installation.restart().await;
    let admin = installation.admin();
    let known = Controller::behind_tls(installation.server(), no());
    set_entity(&admin, secure(&known)).await;
    until(&admin, |view| waits(view, "approval", "trusted")).await;
}

#[tokio::test]
async fn what_was_answered_is_remembered_by_the_next_server_and_not_asked_again() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let _nodes = nodes(&installation, 1).await;
    let no = json!({ "approved": false, "reason": "not on a Friday" });
    let controller = Controller::saying(Say::Json(no)).await;
    let patient = approving(Hook { every: some("1h"), ..controller.hook() });
    set_entity(&admin, patient.clone()).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| waits(view, "approval", "not on a Friday")).await;
    installation.restart().await;
    let admin = installation.admin();
    // The hook is asked about a later target, so the first one was considered and left alone.
    let later = EntitySpec { selector: "role=web".to_owned(), policy: patient, ..EntitySpec::default() };
    admin.set_entity("default", "web-later", &later).await.unwrap();
    admin.start_rollout("default", "web-later", &version("v1")).await.unwrap();
    eventually("the later one is asked about", async || about(&controller, "web-later").pop()).await;
    until(&admin, |view| waits(view, "approval", "not on a Friday")).await;
    assert_eq!(about(&controller, "web").len(), 1);
}

#[tokio::test]
async fn a_target_that_the_monitoring_hook_judges_unhealthy_fails_and_is_rolled_back() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let nodes = nodes(&installation, 2).await;
    let (one, two) = (nodes.first().unwrap(), nodes.last().unwrap());
    let controller = Controller::saying(Say::Judge { well: true, reason: String::new() }).await;
    let monitoring = Some(controller.hook());
    set_entity(&admin, hooked(Hooks { monitoring, ..Hooks::default() })).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    for node in [one, two] {
        let number = node.assigned("v1").await;
        node.runs("v1", number, TargetHealth::Healthy).await;
    }
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;

    controller.say(Say::Judge { well: false, reason: "p99 above 2s".to_owned() });
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let number = one.assigned("v2").await;
    one.runs("v2", number, TargetHealth::Healthy).await;
    let number = one.assigned("v1").await;
    one.runs("v1", number, TargetHealth::Healthy).await;
    let ended = |view: &RolloutView| {
        view.rollout.as_ref().is_some_and(|rollout| rollout.version == "v2" && rollout.ended_ms.is_some())
    };
    let rollout = until(&admin, ended).await.rollout.unwrap();
    assert_eq!(rollout.status.state, RolloutState::RolledBack);
    let evidence = &rollout.failures.first().unwrap().evidence.summary;
    assert!(evidence.contains("p99 above 2s"), "{evidence}");
}

#[tokio::test]
async fn a_removal_hook_takes_no_node_out_of_the_fleet() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let nodes = nodes(&installation, 2).await;
    let controller = Controller::saying(Say::Json(json!({ "removed": ["web-2"] }))).await;
    let removal = Some(controller.hook());
    let half = Policy { success: some("50%"), ..hooked(Hooks { removal, ..Hooks::default() }) };
    set_entity(&admin, half).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = nodes.first().unwrap().assigned("v1").await;
    nodes.first().unwrap().runs("v1", number, TargetHealth::Healthy).await;
    let reason = "web-2 is a node; cordon it, or change its labels so that the selector no longer matches";
    until(&admin, |view| waits(view, "removal", reason)).await;
    assert_eq!(controller.heard().first().unwrap().body["targets"], json!(["web-2"]));
}
