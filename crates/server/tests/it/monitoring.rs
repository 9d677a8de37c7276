//! What is shipped for Prometheus and Grafana, by Prometheus' own tool and against a server's own page.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use std::time::Duration;

use bellwether_api::v1::freeze::FreezeSpec;

use crate::ensembles::with_store;
use crate::harness::{Installation, SOON, policy, set_entity, until, version};
use crate::hooked::eventually;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn shipped(name: &str) -> String {
    std::fs::read_to_string(root().join("packaging/monitoring").join(name)).unwrap()
}

/// Runs `promtool`, and answers what it says; it must be content.
fn promtool(args: &[&str], input: &str) -> String {
    let mut tool = Command::new("promtool");
    tool.args(args).current_dir(root().join("packaging/monitoring"));
    tool.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().expect("promtool is here: `cargo xtask test` installs it");
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = tool.wait_with_output().unwrap();
    let said = [done.stdout, done.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
    assert!(done.status.success(), "{args:?}: {said}");
    said
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("bellwether_")).map(ToOwned::to_owned).collect()
}

#[test]
fn alerts_are_valid_and_fire_when_they_should_and_not_otherwise() {
    promtool(&["check", "rules", "alerts.yml"], "");
    promtool(&["test", "rules", "alerts.test.yml"], "");
}

#[tokio::test]
async fn alerts_and_the_dashboard_are_about_metrics_that_a_server_has() {
    let installation = Installation::new().await;
    let page = installation.admin().text("/metrics", SOON).await.unwrap();
    // Prometheus' tool reads the format that is answered to clients which do not ask for another.
    promtool(&["check", "metrics"], &page);
    let guide = std::fs::read_to_string(root().join("docs/guide/server.md")).unwrap();
    let (shown, told) = (names(&page), names(&guide));
    let of_agents = names(&std::fs::read_to_string(root().join("docs/guide/nodes.md")).unwrap());
    let dashboard = shipped("grafana.json");
    assert!(serde_json::from_str::<serde_json::Value>(&dashboard).is_ok());
    for name in names(&shipped("alerts.yml")).union(&names(&dashboard)) {
        // Those with labels are on the page once there is something to count.
        assert!(told.contains(name) || of_agents.contains(name), "{name} is not in the guide");
    }
    let untold: Vec<_> = shown.difference(&told).collect();
    assert!(untold.is_empty(), "not in the guide: {untold:?}");
}

#[tokio::test]
async fn what_has_not_happened_yet_is_counted_as_zero() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let page = admin.text("/metrics", SOON).await.unwrap();
    for line in [
        "bellwether_requests_refused_total{class=\"urgent\"} 0",
        "bellwether_requests_refused_total{class=\"joins\"} 0",
        "bellwether_authentication_failures_total{credential=\"token\"} 0",
        "bellwether_authentication_failures_total{credential=\"certificate\"} 0",
        "bellwether_connections_closed_total{reason=\"refused\"} 0",
        "bellwether_hook_calls_total{hook=\"approval\",result=\"failed\"} 0",
        "bellwether_decider_failures_total{decider=\"rollout\",namespace=\"default\"} 0",
        "bellwether_node_quota_refused_total 0",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is not in {page}");
    }
}

#[tokio::test]
async fn nodes_rollouts_and_freezes_are_shown_by_state() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.sync("default", &node.name, (0, None), Duration::from_millis(20)).await.unwrap();
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| view.counts.in_flight == 1).await;
    let freeze = FreezeSpec { reason: "a sale".to_owned(), ..FreezeSpec::default() };
    admin.set_freeze(None, "sale", &freeze).await.unwrap();
    let wanted = [
        "bellwether_node_states{namespace=\"default\",state=\"up\"} 1",
        "bellwether_node_states{namespace=\"default\",state=\"unreachable\"} 0",
        "bellwether_rollout_state{namespace=\"default\",entity=\"web\",state=",
        "bellwether_freezes{namespace=\"\"} 1",
        "bellwether_freezes{namespace=\"default\"} 0",
        "bellwether_build_info{version=\"",
        "bellwether_reconcile_pass_seconds_count ",
    ];
    eventually("the page shows all of it", async || {
        let page = admin.text("/metrics", SOON).await.unwrap();
        promtool(&["check", "metrics"], &page);
        wanted.iter().all(|line| page.contains(line)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn requests_and_commits_are_timed_and_polls_are_not() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.sync("default", &node.name, (0, None), Duration::from_millis(20)).await.unwrap();
    set_entity(&admin, policy("1", "0s")).await;
    let path = "/v1/namespaces/default/events?wait=1ms";
    admin.text(path, SOON).await.unwrap();
    let count = async |class: &str| {
        let page = admin.text("/metrics", SOON).await.unwrap();
        promtool(&["check", "metrics"], &page);
        let name = format!("bellwether_http_request_seconds_count{{class=\"{class}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap_or_default()
    };
    let before = count("people").await;
    admin.nodes("default", false).await.unwrap();
    assert!(count("people").await > before);
    assert!(count("urgent").await > 0, "the admin's change");
    assert!(count("joins").await > 0);
    assert_eq!(
        (count("syncs").await, count("watchers").await),
        (0, 0),
        "they take as long as nothing happens"
    );
    let page = admin.text("/metrics", SOON).await.unwrap();
    let commits = page.lines().find_map(|line| line.strip_prefix("bellwether_store_commit_seconds_count "));
    assert!(commits.unwrap().parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn the_members_of_an_ensemble_are_shown_by_state_and_whether_they_work() {
    let installation = with_store().await;
    let admin = installation.admin();
    let page = admin.text("/metrics", SOON).await.unwrap();
    promtool(&["check", "metrics"], &page);
    let of = "namespace=\"default\",ensemble=\"store\"";
    // No node of them is connected: of none is known that it works.
    for line in [
        format!("bellwether_ensemble_wanted_members{{{of}}} 3"),
        format!("bellwether_ensemble_members{{{of},state=\"voting\"}} 3"),
        format!("bellwether_ensemble_members{{{of},state=\"joining\"}} 0"),
        format!("bellwether_ensemble_serving_members{{{of}}} 3"),
        format!("bellwether_ensemble_osds{{{of}}} 0"),
    ] {
        assert!(page.contains(&line), "{line}\n{page}");
    }
    let overview = admin.overview("default").await.unwrap();
    let impaired = overview.impaired_ensembles.iter().find(|impaired| impaired.ensemble == "store");
    let working = impaired.map_or(3, |impaired| impaired.working);
    assert!(page.contains(&format!("bellwether_ensemble_working_members{{{of}}} {working}\n")), "{page}");
    let is_impaired = usize::from(impaired.is_some());
    assert!(page.contains(&format!("bellwether_ensemble_impaired{{{of}}} {is_impaired}\n")), "{page}");
}
