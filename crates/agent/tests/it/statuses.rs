//! Statuses that programs on the node set, over the agent's socket.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use bellwether_agent::local::client::{LocalError, delete_status, set_status, status};
use bellwether_agent::local::socket;
use bellwether_api::problem::Code;
use bellwether_api::v1::local::NewStatus;
use bellwether_api::v1::status::StatusState;

use crate::bench::{Bench, NODE, NS};

fn new(state: &str, reason: &str) -> NewStatus {
    NewStatus { state: state.parse().unwrap(), reason: reason.into(), lifetime_ms: None }
}

/// The changes of a category in the events, in order: before and after.
async fn story(bench: &Bench, category: &str) -> Vec<(Option<String>, String)> {
    let events = bench.client.events(NS, Some(0), 1_000, std::time::Duration::ZERO).await.unwrap().items;
    let prefix = format!("{category}=");
    let word = |text: &Option<String>| text.as_ref()?.strip_prefix(&prefix).map(str::to_owned);
    let events = events.iter().filter(|event| event.kind == "status.changed");
    events.filter_map(|event| Some((word(&event.before), word(&event.after)?))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_sets_a_status_and_it_survives_a_restart_of_the_agent() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    bench.says("the agent", |status| status.alive).await;
    let dir = bench.data_dir();
    set_status(&dir, "backup", &new("failed", "disk full")).await.unwrap();
    let node = bench.sees("the status", |node| node.statuses.contains_key("backup")).await;
    assert_eq!(
        (node.statuses["backup"].state.as_str(), node.statuses["backup"].reason.as_str()),
        ("failed", "disk full")
    );
    let local = status(&dir).await.unwrap();
    assert_eq!((local.node.as_str(), local.alive), (NODE, true));
    // Meanwhile a person sets it through the control plane; a repeated report of the agent does not set it back.
    let by_hand = bellwether_api::v1::status::Status::from(StatusState::Success);
    bench.client.set_status(NS, NODE, "backup", &by_hand).await.unwrap();
    agent.stop().await;
    assert!(matches!(status(&dir).await, Err(LocalError::Away { .. })));
    let agent = bench.agent_again("");
    bench.says("contact", |status| status.alive && status.connected_since_ms.is_some()).await;
    bench.until("the socket", async || status(&dir).await.ok()).await;
    set_status(&dir, "scrub", &new("running", "")).await.unwrap();
    let node = bench.sees("both", |node| node.statuses.contains_key("scrub")).await;
    assert_eq!(node.statuses["backup"].state, "success");
    set_status(&dir, "backup", &new("failed", "again")).await.unwrap();
    bench.sees("news", |node| node.statuses["backup"].reason == "again").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_status_is_refused_with_a_reason() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    let dir = bench.data_dir();
    bench.until("the socket", async || status(&dir).await.ok()).await;
    let mode = std::fs::metadata(socket(&dir)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o660);
    let long = NewStatus { lifetime_ms: Some(5), ..new("success", "") };
    let cases = [
        ("validate", new("success", ""), Code::Refused, "only the agent itself sets this category"),
        ("provision", new("success", ""), Code::Refused, "only the agent itself sets this category"),
        ("Backup", new("success", ""), Code::Invalid, "lower-case"),
        ("backup", new("unknown", ""), Code::Invalid, "success, failed, running or pending"),
        ("backup", new("failed", &"x".repeat(600)), Code::Invalid, "longer than 512"),
        ("backup", long, Code::Invalid, "not between 1s and 1 year"),
        ("backup", new("failed", &"x".repeat(70_000)), Code::TooLarge, "length limit"),
    ];
    for (category, status, code, reason) in cases {
        let refusal = set_status(&dir, category, &status).await.unwrap_err();
        let LocalError::Problem(problem) = refusal else { panic!("{refusal}") };
        assert!(problem.code == code && problem.detail.contains(reason), "{category}: {problem:?}");
    }
    let by_hand = bellwether_api::v1::status::Status::from(StatusState::Success);
    let refusal = bench.client.set_status(NS, NODE, "configure", &by_hand).await.unwrap_err().to_string();
    assert!(refusal.contains("only the node's agent sets it"), "{refusal}");
    agent.stop().await;
}

/// Calls as another user, with every permission on the path: only the agent's own check is left to refuse. Tests that are
/// not run by root cannot become another user; then only root's side is tested.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_users_are_refused_even_with_permission_for_the_socket() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    let dir = bench.data_dir();
    bench.until("the socket", async || status(&dir).await.ok()).await;
    let open =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open(bench.dir.path(), 0o755);
    open(&dir, 0o755);
    open(&socket(&dir), 0o666);
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-m", "10", "-w", " %{http_code}", "--unix-socket"]).arg(socket(&dir));
    curl.arg("http://agent/v1/agent/status");
    let root = rustix::process::geteuid().is_root();
    if root {
        curl.uid(65_534).gid(65_534);
    }
    let output = tokio::task::spawn_blocking(move || curl.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if root {
        assert!(said.ends_with(" 403") && said.contains("only root"), "{said} {output:?}");
    } else {
        assert!(said.ends_with(" 200"), "{said} {output:?}");
    }
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_is_not_refreshed_becomes_unknown_with_one_event() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    let dir = bench.data_dir();
    bench.until("the socket", async || status(&dir).await.ok()).await;
    let short = NewStatus { lifetime_ms: Some(1_000), ..new("success", "nightly") };
    set_status(&dir, "backup", &short).await.unwrap();
    bench
        .sees("success", |node| node.statuses.get("backup").is_some_and(|status| status.state == "success"))
        .await;
    let node = bench.sees("silence", |node| node.statuses["backup"].state == "unknown").await;
    assert_eq!(node.statuses["backup"].last_state, Some(StatusState::Success));
    let failures = bench.client.failures(NS).await.unwrap();
    assert!(failures.failed.is_empty(), "silent is not failed");
    assert_eq!(failures.silent.len(), 1);
    // Other updates of the node do not refresh it.
    set_status(&dir, "scrub", &new("failed", "")).await.unwrap();
    bench.sees("the other one", |node| node.statuses.contains_key("scrub")).await;
    set_status(&dir, "backup", &NewStatus { lifetime_ms: Some(600_000), ..short }).await.unwrap();
    bench.sees("it is back", |node| node.statuses["backup"].state == "success").await;
    let word = |text: &str| text.to_owned();
    let events = [
        (None, word("success")),
        (Some(word("success")), word("unknown")),
        (Some(word("unknown")), word("success")),
    ];
    assert_eq!(story(&bench, "backup").await, events);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_updates_and_restarts_lead_to_one_state_everywhere() {
    let mut bench = Bench::new().await;
    let mut agent = bench.agent("").await;
    let dir = bench.data_dir();
    let (tasks, states) = (bellwether_rt::tasks::Tasks::new(), ["success", "failed", "running", "pending"]);
    for round in 0..4 {
        bench.until("the socket", async || status(&dir).await.ok()).await;
        let asked = (0..24).map(|number: usize| {
            let status = new(states[(number + round) % 4], &format!("{round}-{number}"));
            let (dir, category) = (dir.clone(), ["backup", "scrub"][number % 2]);
            tasks.spawn("update", async move { set_status(&dir, category, &status).await })
        });
        for asked in asked.collect::<Vec<_>>() {
            asked.await.unwrap().unwrap().unwrap();
        }
        match round {
            // The agent, the server, both.
            0 => {
                agent.stop().await;
                agent = bench.agent_again("");
            }
            1 => {
                bench.stop_server().await;
                bench.start_server().await;
            }
            _ => {}
        }
    }
    bench.until("the socket", async || status(&dir).await.ok()).await;
    for category in ["backup", "scrub"] {
        set_status(&dir, category, &new("success", "last")).await.unwrap();
    }
    let last = |node: &bellwether_api::v1::node::NodeView| {
        ["backup", "scrub"]
            .iter()
            .all(|name| node.statuses.get(*name).is_some_and(|status| status.reason == "last"))
    };
    bench.sees("the last of each", last).await;
    for category in ["backup", "scrub"] {
        let mut before = None;
        for (from, to) in story(&bench, category).await {
            assert_eq!(from, before, "{category}: each change begins where the one before ended");
            assert_ne!(from.as_deref(), Some(to.as_str()));
            before = Some(to);
        }
        assert_eq!(before.as_deref(), Some("success"));
    }
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_status_stays_deleted_wherever_it_was_deleted() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    let dir = bench.data_dir();
    bench.until("the socket", async || status(&dir).await.ok()).await;
    set_status(&dir, "backup", &new("failed", "disk full")).await.unwrap();
    set_status(&dir, "scrub", &new("failed", "")).await.unwrap();
    let has =
        |node: &bellwether_api::v1::node::NodeView, category: &str| node.statuses.contains_key(category);
    bench.sees("both", |node| has(node, "backup") && has(node, "scrub")).await;
    delete_status(&dir, "backup").await.unwrap();
    bench.sees("no backup", |node| !has(node, "backup") && has(node, "scrub")).await;
    bench.client.delete_status(NS, NODE, "scrub").await.unwrap();
    // The agent still has it, and repeats it with the next report.
    set_status(&dir, "tidy", &new("success", "")).await.unwrap();
    bench.sees("the next report", |node| has(node, "tidy") && !has(node, "scrub")).await;
    assert!(bench.client.failures(NS).await.unwrap().failed.is_empty());
    agent.stop().await;
    let agent = bench.agent_again("");
    bench.until("the socket", async || status(&dir).await.ok()).await;
    let LocalError::Problem(problem) = delete_status(&dir, "backup").await.unwrap_err() else { panic!() };
    assert_eq!(problem.code, Code::NotFound);
    set_status(&dir, "scrub", &new("running", "again")).await.unwrap();
    bench.sees("a new status", |node| has(node, "scrub") && !has(node, "backup")).await;
    let events = bench.client.events(NS, Some(0), 1_000, std::time::Duration::ZERO).await.unwrap().items;
    let deleted = events.iter().filter(|event| event.kind == "status.deleted");
    let deleted: Vec<&str> = deleted.filter_map(|event| event.before.as_deref()).collect();
    assert_eq!(deleted, ["backup=failed", "scrub=failed"]);
    agent.stop().await;
}
