//! Supervised processes with checks.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) use bellwether_rt::free_ports::free_port;

use crate::bench::{Bench, lines};
use crate::child;
use crate::logs::log;

/// An entity `web` that is the service on `port` with an HTTP check.
pub(crate) fn entity(bench: &Bench, port: u16) -> String {
    let check = format!(
        "[[entity.web.check]]\nname = \"http\"\nhttp = \"http://127.0.0.1:{port}/\"\ninterval = \"100ms\"\n\
         timeout = \"2s\"\nfall = 20\n"
    );
    format!("{}{check}", child::service(port, &announced(bench)))
}

pub(crate) fn announced(bench: &Bench) -> PathBuf {
    bench.path("announced")
}

/// Process numbers of the services that were started, oldest first, with their versions.
pub(crate) fn started(bench: &Bench) -> Vec<(i32, String)> {
    let split = |line: &String| {
        let (pid, version) = line.split_once(' ').unwrap();
        (pid.parse().unwrap(), version.to_owned())
    };
    lines(&announced(bench)).iter().map(split).collect()
}

pub(crate) fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub(crate) fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_replaced_validated_and_stopped_with_the_agent_if_configured() {
    let bench = Bench::new().await;
    let port = free_port();
    let entity = format!("services_on_exit = \"stop\"\n{}", entity(&bench, port));
    let agent = bench.agent(&entity).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.roll("v2").await;
    bench.runs("v2").await;
    let all = started(&bench);
    assert_eq!(all.iter().map(|(_, version)| version.as_str()).collect::<Vec<_>>(), ["v1", "v2"]);
    assert!(!alive(all[0].0) && alive(all[1].0));
    let status = bench
        .says("health", |status| status.entities.get("web").is_some_and(|web| web.healthy_since_ms.is_some()))
        .await;
    assert_eq!(status.entities["web"].health, "healthy");
    agent.stop().await;
    assert!(!alive(all[1].0));
    // It was stopped on purpose: the next agent starts it again, and that is no failure.
    let agent = bench.agent_again(&entity);
    bench.until("a third start", async || (started(&bench).len() == 3).then_some(())).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_fails_its_check_fails_validation() {
    let bench = Bench::new().await;
    let entity = entity(&bench, free_port());
    let config = format!("services_on_exit = \"stop\"\n[entity.web]\ntimeout = \"2s\"\n{entity}");
    let agent = bench.agent(&config).await;
    bench.roll("bad-1").await;
    let evidence = bench.failure().await;
    assert_eq!(evidence.failing_checks, ["http"]);
    assert_eq!(evidence.summary, "check http did not pass within 2s: status 500, not 200");
    let failed = |node: &bellwether_api::v1::node::NodeView| node.statuses["validate"].state == "failed";
    let node = bench.sees("a failed validation", failed).await;
    assert!(node.running.is_empty());
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_crashes_fails_with_the_end_of_its_output() {
    let bench = Bench::new().await;
    let agent = bench.agent(&entity(&bench, free_port())).await;
    bench.roll("crash-1").await;
    let evidence = bench.failure().await;
    assert!(evidence.summary.contains("the process ended: killed by signal 6"), "{}", evidence.summary);
    assert!(evidence.tail.contains("no such table: users"), "{}", evidence.tail);
    let log = bench.until("its log", async || log(&bench, "validate").await).await;
    assert!(
        log.text.starts_with("web crash-1: validate: the process ended: killed by signal 6\n\n"),
        "{}",
        log.text
    );
    assert!(log.text.contains("no such table: users"), "{}", log.text);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_is_started_again() {
    let bench = Bench::new().await;
    let entity = format!("services_on_exit = \"stop\"\n{}", entity(&bench, free_port()));
    let agent = bench.agent(&entity).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    kill(started(&bench)[0].0);
    let relapsed = |node: &bellwether_api::v1::node::NodeView| node.statuses["validate"].state == "failed";
    let node = bench.sees("the failure", relapsed).await;
    assert!(node.statuses["validate"].reason.contains("killed by signal 9"), "{node:?}");
    let log = bench.until("its log", async || log(&bench, "validate").await).await;
    assert!(log.text.starts_with("web v1: the process ended: killed by signal 9\n\n"), "{}", log.text);
    assert!(log.text.contains("running 1 test"), "what it wrote before: {}", log.text);
    bench.until("a second start", async || (started(&bench).len() == 2).then_some(())).await;
    bench.sees("success", |node| node.statuses["validate"].state == "success").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_in_validation_is_superseded_by_the_next() {
    let bench = Bench::new().await;
    // Its verdict never changes: neither 20 failures in the time, nor a pass.
    let entity = entity(&bench, free_port()).replace("fall = 20", "fall = 100");
    let agent =
        bench.agent(&format!("services_on_exit = \"stop\"\n{}", entity.replace("100ms", "10s"))).await;
    bench.roll("bad-1").await;
    bench
        .sees("validation", |node| {
            node.statuses.get("validate").is_some_and(|status| status.state == "running")
        })
        .await;
    bench.roll("v2").await;
    bench.until("the next one", async || started(&bench).iter().any(|(_, v)| v == "v2").then_some(())).await;
    assert!(!alive(started(&bench)[0].0));
    agent.stop().await;
}
