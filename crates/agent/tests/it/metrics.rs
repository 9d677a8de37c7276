//! The agent's metrics: as a client reads them, and as a real Prometheus scrapes them beside those of a real server, with the shipped alerts.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::Bench;
use crate::discovery::{Page, curl, free_port, head, until};
use crate::prometheus::{Monitoring, viewer_token};
use crate::service::{entity, kill, started};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether Prometheus' own tool reads a page, and has nothing to say about it.
fn check(page: &str) {
    let mut tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is here: `cargo xtask test` installs it");
    tool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let done = tool.wait_with_output().unwrap();
    assert!(done.status.success(), "{}\n{page}", String::from_utf8_lossy(&done.stderr));
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("bellwether_")).map(ToOwned::to_owned).collect()
}

/// Waits until the page of an agent has all of these lines, and answers it.
async fn shows(http: u16, wanted: &[&str]) -> Page {
    let page = || curl(http, "/metrics", &[]);
    until(&format!("the page shows {wanted:?}"), async || {
        let lines = page().body;
        wanted.iter().all(|line| lines.lines().any(|shown| shown == *line))
    })
    .await;
    page()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_shows_what_it_does_also_while_no_server_can_be_reached() {
    let mut bench = Bench::new().await;
    let http = free_port();
    let entity = entity(&bench, free_port());
    let agent = bench.agent(&format!("services_on_exit = \"stop\"\n{}{entity}", head(http))).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    let at_rest = [
        "bellwether_agent_server_reached 1",
        "bellwether_agent_ledger_writable 1",
        "bellwether_agent_order_refused 0",
        "bellwether_agent_entities{state=\"nothing\"} 1",
        "bellwether_agent_entities{state=\"failed\"} 0",
        "bellwether_agent_entity_health{state=\"healthy\"} 1",
        "bellwether_agent_process_starts_total{entity=\"web\"} 1",
        "# TYPE bellwether_agent_process_starts_total counter",
    ];
    let page = shows(http, &at_rest).await;
    check(&page.body);
    assert!(!page.body.contains("# EOF"), "{}", page.body);
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let guide = std::fs::read_to_string(root().join("docs/guide/nodes.md")).unwrap();
    let (shown, told) = (names(&page.body), names(&guide));
    let untold: Vec<_> = shown.difference(&told).collect();
    assert!(untold.is_empty(), "not in the guide: {untold:?}");

    let open = curl(http, "/metrics", &["-H", "Accept: application/openmetrics-text;version=1.0.0"]);
    assert!(open.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(open.body.ends_with("# EOF\n"), "{}", open.body);
    let refused = |more: &[&str]| curl(http, "/metrics", more).status();
    assert_eq!(refused(&["-H", "Host: elsewhere.example"]), 421);
    assert_eq!(refused(&["-X", "POST"]), 405);

    bench.stop_server().await;
    kill(started(&bench)[0].0);
    let alone =
        ["bellwether_agent_server_reached 0", "bellwether_agent_process_starts_total{entity=\"web\"} 2"];
    let page = shows(http, &alone).await;
    assert!(page.body.contains("\nbellwether_agent_last_contact_seconds "), "{}", page.body);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_a_server_and_an_agent_and_evaluates_the_shipped_alerts() {
    let bench = Bench::new().await;
    let http = free_port();
    let agent = bench.agent(&head(http)).await;
    let alerts = root().join("packaging/monitoring/alerts.yml").canonicalize().unwrap();
    let config = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
         rule_files: [\"{}\"]\n\
         scrape_configs:\n\
         - job_name: bellwether\n  scheme: https\n  authorization: {{ credentials_file: {} }}\n  \
         tls_config: {{ ca_file: {} }}\n  static_configs: [{{ targets: [\"{}\"] }}]\n\
         - job_name: bellwether-agent\n  static_configs: [{{ targets: [\"127.0.0.1:{http}\"] }}]\n",
        alerts.display(),
        viewer_token(&bench).await.display(),
        bench.path("server").join("pki/ca.pem").display(),
        bench.address,
    );
    let monitoring = Monitoring::prometheus(&bench, &config, &["bellwether", "bellwether-agent"]);
    until("both targets are up", async || {
        let targets = monitoring.data("/api/v1/targets?state=active");
        let targets =
            targets.pointer("/activeTargets").and_then(Value::as_array).cloned().unwrap_or_default();
        targets.len() == 2 && targets.iter().all(|target| target["health"] == "up")
    })
    .await;
    let jobs_of = |metric: &str| {
        let found = monitoring.data(&format!("/api/v1/query?query={metric}"));
        let found = found.pointer("/result").and_then(Value::as_array).cloned().unwrap_or_default();
        let jobs = found.iter().filter_map(|one| Some(one.pointer("/metric/job")?.as_str()?.to_owned()));
        jobs.collect::<BTreeSet<_>>()
    };
    until("both have told which program they are", async || {
        jobs_of("bellwether_build_info") == ["bellwether", "bellwether-agent"].map(str::to_owned).into()
    })
    .await;
    until("there are durations of commits", async || {
        jobs_of("bellwether_store_commit_seconds_bucket") == ["bellwether".to_owned()].into()
    })
    .await;
    let wanted = std::fs::read_to_string(&alerts).unwrap().matches("- alert: ").count();
    let rules = || {
        let groups = monitoring.data("/api/v1/rules");
        let groups = groups.pointer("/groups").and_then(Value::as_array).cloned().unwrap_or_default();
        let rules = groups.iter().filter_map(|group| group.get("rules")?.as_array());
        rules.flatten().cloned().collect::<Vec<_>>()
    };
    until("all rules were evaluated", async || {
        let rules = rules();
        rules.len() == wanted && rules.iter().all(|rule| rule["health"] != "unknown")
    })
    .await;
    for rule in rules() {
        assert_eq!((&rule["health"], &rule["lastError"]), (&"ok".into(), &Value::Null), "{rule}");
    }
    agent.stop().await;
}
