//! Monitors of rollouts: a controller, and a real Prometheus.

use std::net::SocketAddr;

use bellwether_api::client::Client;
use bellwether_api::v1::policy::{Monitor, Policy};
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::status::RolloutPause;
use bellwether_api::v1::rollout::{RolloutState, RolloutView};
use serde_json::json;

use crate::harness::{Installation, Node, policy, set_entity, until, version};
use crate::hooked::{Controller, Prometheus, Say, eventually, some};

fn monitored(monitor: Monitor) -> Policy {
    Policy { monitor: Some(monitor), ..policy("1", "0s") }
}

fn metric(value: u32) -> Say {
    Say::Text(200, format!("web_errors {value}\n"))
}

/// Two nodes at `v1`, which is known good.
async fn settled(installation: &Installation, admin: &Client) -> (Node, Node) {
    let (one, two) = (installation.node("web-1").await, installation.node("web-2").await);
    set_entity(admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    for node in [&one, &two] {
        runs(node, "v1").await;
    }
    until(admin, |view| ended(view, "v1")).await;
    (one, two)
}

async fn runs(node: &Node, version: &str) {
    let number = node.assigned(version).await;
    node.runs(version, number, TargetHealth::Healthy).await;
}

fn ended(view: &RolloutView, version: &str) -> bool {
    view.rollout.as_ref().is_some_and(|rollout| rollout.version == version && rollout.ended_ms.is_some())
}

fn paused(view: &RolloutView) -> Option<&RolloutPause> {
    view.rollout.as_ref()?.status.paused.as_ref()
}

fn state(view: &RolloutView) -> Option<RolloutState> {
    view.rollout.as_ref().map(|rollout| rollout.status.state)
}

fn at(address: SocketAddr) -> Monitor {
    Monitor {
        url: format!("http://{address}/judge"),
        query: None,
        failures: None,
        timeout: some("1s"),
        every: some("100ms"),
        token: None,
    }
}

#[tokio::test]
async fn one_failing_answer_is_a_hiccup_and_two_in_a_row_take_the_version_back() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, _two) = settled(&installation, &admin).await;
    let (well, bad) =
        (json!({ "healthy": true }), json!({ "healthy": false, "reason": "orders fell by half" }));
    let series = [bad.clone(), well.clone(), bad.clone(), well.clone()];
    let controller = Controller::saying(Say::Series(series.to_vec())).await;
    set_entity(&admin, monitored(at(controller.address))).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    eventually("it was asked six times", async || (controller.heard().len() > 5).then_some(())).await;
    let view = until(&admin, |_| true).await;
    assert!(view.progress.bad.is_empty(), "never twice in a row");
    assert_eq!(controller.heard().first().unwrap().body["counts"]["targets"], json!(2));

    controller.say(Say::Json(bad));
    runs(&one, "v1").await;
    let view = until(&admin, |view| ended(view, "v2")).await;
    assert_eq!(state(&view), Some(RolloutState::RolledBack));
    assert!(view.progress.bad.first().unwrap().reason.contains("orders fell by half"));
}

#[tokio::test]
async fn a_prometheus_query_takes_the_version_back_when_it_finds_something() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = settled(&installation, &admin).await;
    let exporter = Controller::saying(metric(0)).await;
    let prometheus = Prometheus::scraping(exporter.address).await;
    set_entity(&admin, monitored(prometheus.monitor("web_errors > 0 or vector(0)"))).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    for node in [&one, &two] {
        runs(node, "v2").await;
    }
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v2")).await;

    admin.start_rollout("default", "web", &version("v3")).await.unwrap();
    one.assigned("v3").await;
    exporter.say(metric(7));
    runs(&one, "v2").await;
    let view = until(&admin, |view| ended(view, "v3")).await;
    assert_eq!(state(&view), Some(RolloutState::RolledBack));
    let reason = &view.progress.bad.first().unwrap().reason;
    assert!(reason.contains("web_errors{") && reason.contains("is 7"), "{reason}");
}

#[tokio::test]
async fn a_monitor_that_is_gone_pauses_the_rollout_until_it_is_back() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = settled(&installation, &admin).await;
    let exporter = Controller::saying(metric(0)).await;
    let mut prometheus = Prometheus::scraping(exporter.address).await;
    let monitor = Monitor { timeout: some("500ms"), ..prometheus.monitor("vector(0)") };
    set_entity(&admin, monitored(monitor)).await;
    prometheus.stop();
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let reason = format!("cannot connect to {}: ", prometheus.address);
    let silent = |view: &RolloutView| matches!(paused(view), Some(RolloutPause::MonitorUnavailable { reason: said }) if said.starts_with(&reason));
    until(&admin, silent).await;
    prometheus.again().await;
    for node in [&one, &two] {
        runs(node, "v2").await;
    }
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v2")).await;
}

#[tokio::test]
async fn a_query_that_does_not_judge_is_trouble_and_neither_good_nor_bad() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = settled(&installation, &admin).await;
    let exporter = Controller::saying(metric(0)).await;
    let prometheus = Prometheus::scraping(exporter.address).await;
    let cases = [("vector(0) / 0", "the query returned NaN"), ("web_errors{", "the query failed: ")];
    for (number, (query, reason)) in cases.into_iter().enumerate() {
        set_entity(&admin, monitored(prometheus.monitor(query))).await;
        let name = format!("v{}", number + 2);
        admin.start_rollout("default", "web", &version(&name)).await.unwrap();
        let silent = |view: &RolloutView| matches!(paused(view), Some(RolloutPause::MonitorUnavailable { reason: said }) if said.starts_with(reason));
        let view = until(&admin, silent).await;
        assert!(view.progress.bad.is_empty());
    }
    drop((one, two));
}
