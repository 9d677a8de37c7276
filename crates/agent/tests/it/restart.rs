//! Restarts of the agent: what it knew counts until it knows better, and nothing that it does not know yet is sent.

use std::net::TcpListener;
use std::time::Duration;

use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition};
use tokio::time::Instant;

use crate::bench::{Bench, NS};
use crate::services::{level, register, until, update_check};

/// Kinds and causes of all events about services.
pub(crate) async fn service_events(bench: &Bench) -> Vec<String> {
    let all = bench.client.events(NS, None, 1_000, Duration::ZERO).await.unwrap().items;
    let all = all.into_iter().filter(|event| event.kind.starts_with("service."));
    let mut all: Vec<(u64, String)> =
        all.map(|event| (event.seq, format!("{}: {}", event.kind, event.cause))).collect();
    all.sort();
    all.into_iter().map(|(_, event)| event).collect()
}

fn service(port: u16, more: &str) -> String {
    format!(
        "[[service]]\nname = \"web\"\nport = {port}\n[[service.check]]\nname = \"port\"\ntcp = \"127.0.0.1:{port}\"\n{more}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ttl_update_counts_for_its_remaining_time_over_a_restart() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    let check =
        CheckDefinition { name: "alive".into(), ttl: Some("4s".into()), ..CheckDefinition::default() };
    let queue =
        ServiceDefinition { name: "queue".into(), checks: vec![check], ..ServiceDefinition::default() };
    until("the socket is there", async || register(&bench, &queue).await.is_ok()).await;
    update_check(&bench, "queue", "warning", "nearly full").await.unwrap();
    let updated = Instant::now();
    until("it warns", async || level(&bench, "queue").await.as_deref() == Some("warning")).await;
    agent.stop().await;
    let agent = bench.agent_again("");
    until("it fails", async || level(&bench, "queue").await.as_deref() == Some("failing")).await;
    assert!(updated.elapsed() > Duration::from_millis(3_900), "{:?}", updated.elapsed());
    let events = service_events(&bench).await;
    assert_eq!(
        events.last().map(String::as_str),
        Some("service.failing: check alive: no update for 4s"),
        "{events:?}"
    );
    assert_eq!(events.iter().filter(|event| event.starts_with("service.failing")).count(), 1, "{events:?}");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_withdraws_nothing_and_the_node_is_never_without_its_version() {
    let bench = Bench::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let check = format!("tcp = \"127.0.0.1:{port}\"\ninterval = \"1s\"\nrise = 3\n");
    let config = format!(
        "[entity.web]\nstatic = [\"true\"]\n[[entity.web.check]]\nname = \"port\"\n{check}\
         [[service]]\nname = \"of-web\"\nentity = \"web\"\n{}",
        service(port, "interval = \"1s\"\nrise = 3\n")
    );
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    for name in ["web", "of-web"] {
        until("it passes", async || level(&bench, name).await.as_deref() == Some("passing")).await;
    }
    let healthy = async || {
        let status = bench
            .says("healthy", |status| {
                status.entities.get("web").is_some_and(|web| web.healthy_since_ms.is_some())
            })
            .await;
        status.entities["web"].healthy_since_ms.unwrap()
    };
    let (before, since) = (service_events(&bench).await, healthy().await);
    agent.stop().await;
    let agent = bench.agent_again(&config);
    let restarted = Instant::now();
    while restarted.elapsed() < Duration::from_secs(5) {
        let node = bench.node().await;
        assert_eq!(node.running.get("web").map(String::as_str), Some("v1"));
        assert_eq!(level(&bench, "of-web").await.as_deref(), Some("passing"));
    }
    assert_eq!(service_events(&bench).await, before);
    assert!(healthy().await.abs_diff(since) < 1_000, "its healthy time goes on");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_ended_while_the_agent_was_away_is_not_believed_for_long() {
    let bench = Bench::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = service(port, "interval = \"300ms\"\ntimeout = \"100ms\"\nfall = 100\nrise = 1\n");
    let agent = bench.agent(&config).await;
    until("it passes", async || level(&bench, "web").await.as_deref() == Some("passing")).await;
    agent.stop().await;
    drop(listener);
    let agent = bench.agent_again(&config);
    let restarted = Instant::now();
    until("it fails", async || level(&bench, "web").await.as_deref() == Some("failing")).await;
    assert!(restarted.elapsed() < Duration::from_secs(20), "100 results would take 30 s");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_reboot_nothing_is_believed() {
    let bench = Bench::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = service(port, "interval = \"100ms\"\nrise = 3\n");
    let agent = bench.agent(&config).await;
    until("it passes", async || level(&bench, "web").await.as_deref() == Some("passing")).await;
    agent.stop().await;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for entry in std::fs::read_dir(bench.data_dir().join("ledger/checks")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(boot.trim(), "another-boot")).unwrap();
    }
    let agent = bench.agent_again(&config);
    until("it fails and passes again", async || {
        let events = service_events(&bench).await;
        let [.., failed, passed] = events.as_slice() else { return false };
        failed == "service.failing: check port: not enough results yet"
            && passed.starts_with("service.passing")
    })
    .await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_hangs_after_a_restart_holds_back_nothing_for_ever() {
    let bench = Bench::new().await;
    let flag = bench.path("hang");
    let script = format!(
        "exec = [\"/bin/sh\", \"-c\", \"test ! -e {} || sleep 600\"]\ntimeout = \"10m\"\n",
        flag.display()
    );
    let config = |more: &str| {
        format!(
            "[[service]]\nname = \"slow\"\n[[service.check]]\nname = \"hangs\"\n{script}rise = 1\n{more}\
             [entity.web]\nstatic = [\"true\"]\n[[entity.web.check]]\nname = \"hangs\"\n{script}rise = 1\n"
        )
    };
    let agent = bench.agent(&config("")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    until("it passes", async || level(&bench, "slow").await.as_deref() == Some("passing")).await;
    agent.stop().await;
    std::fs::write(&flag, "").unwrap();
    // What hangs is known from before, so that it holds back nothing; what is new is sent in time.
    let agent = bench.agent_again(&config("[[service]]\nname = \"new\"\n"));
    until("the new one is registered", async || level(&bench, "new").await.as_deref() == Some("passing"))
        .await;
    assert_eq!(level(&bench, "slow").await.as_deref(), Some("passing"));
    agent.stop().await;
    // Nothing is known of it.
    std::fs::remove_dir_all(bench.data_dir().join("ledger/checks")).unwrap();
    let agent = bench.agent_again(&config("[[service]]\nname = \"newer\"\n"));
    until("the newer one is registered", async || level(&bench, "newer").await.as_deref() == Some("passing"))
        .await;
    assert_eq!(level(&bench, "slow").await.as_deref(), Some("failing"));
    agent.stop().await;
}
