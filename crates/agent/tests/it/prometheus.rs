//! Real monitoring servers that follow a service: Prometheus by what the agent and the server answer over HTTP, and
//! VictoriaMetrics by Consul's discovery, which it has in Prometheus's form.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bellwether_agent::local::client::call;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::access::NewToken;
use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition};
use http::Method;
use serde_json::Value;

use crate::bench::Bench;
use crate::discovery::{curl, free_port, head, listening, until};

/// A monitoring server that finds the service `web` by what this agent and the server say.
pub(crate) struct Monitoring {
    process: Child,
    port: u16,
    jobs: &'static [&'static str],
}

/// The file with a token that may read what a server shows.
pub(crate) async fn viewer_token(bench: &Bench) -> PathBuf {
    let new = NewToken {
        name: "prometheus".to_owned(),
        roles: vec!["viewer".to_owned()],
        only_in: None,
        expires_in: None,
    };
    let path = bench.path("prometheus-token");
    std::fs::write(&path, bench.client.create_token(&new).await.unwrap().secret).unwrap();
    path
}

impl Drop for Monitoring {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Monitoring {
    /// A Prometheus that asks this agent and the server, over HTTP.
    async fn over_http(bench: &Bench, agent: u16) -> Self {
        let (ca, token) = (bench.path("server").join("pki/ca.pem"), viewer_token(bench).await);
        let config = format!(
            "scrape_configs:\n\
             - job_name: agent\n  http_sd_configs:\n  - url: http://127.0.0.1:{agent}/v1/http-sd?service=web&tag=blue\n    \
             refresh_interval: 100ms\n\
             - job_name: server\n  http_sd_configs:\n  - url: https://{}/v1/namespaces/default/http-sd?service=web\n    \
             refresh_interval: 100ms\n    authorization: {{ type: Bearer, credentials_file: {} }}\n    tls_config: {{ ca_file: {} }}\n",
            bench.address,
            token.display(),
            ca.display(),
        );
        Self::prometheus(bench, &config, &["agent", "server"])
    }

    /// A Prometheus with this configuration and these jobs.
    pub(crate) fn prometheus(bench: &Bench, config: &str, jobs: &'static [&'static str]) -> Self {
        let start = |config: &str, data: &str, port: u16| {
            let mut command = Command::new("prometheus");
            command.arg(format!("--config.file={config}")).arg(format!("--storage.tsdb.path={data}"));
            command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
            command
        };
        Self::start(bench, config, start, jobs)
    }

    /// A VictoriaMetrics that asks this agent as it asks Consul. It shows a target anew only once a label of it changes, so
    /// the health is one.
    fn over_consul(bench: &Bench, agent: u16) -> Self {
        let config = format!(
            "scrape_configs:\n\
             - job_name: consul\n  consul_sd_configs:\n  - server: 127.0.0.1:{agent}\n    services: [web]\n    tags: [blue]\n  \
             relabel_configs:\n  - {{ source_labels: [__meta_consul_health], target_label: health }}\n"
        );
        let start = |config: &str, data: &str, port: u16| {
            let mut command = Command::new("victoria-metrics");
            command
                .arg(format!("-promscrape.config={config}"))
                .arg("-promscrape.consulSDCheckInterval=100ms");
            command.arg(format!("-storageDataPath={data}")).arg(format!("-httpListenAddr=127.0.0.1:{port}"));
            command
        };
        Self::start(bench, &config, start, &["consul"])
    }

    /// Starts the program that `command` makes of the paths of its configuration and its data, and its port.
    fn start(
        bench: &Bench,
        config: &str,
        command: impl Fn(&str, &str, u16) -> Command,
        jobs: &'static [&'static str],
    ) -> Self {
        let dir = bench.path("monitoring");
        std::fs::create_dir(&dir).unwrap();
        let (file, data) = (dir.join("scrape.yml"), dir.join("data"));
        std::fs::write(&file, config).unwrap();
        let port = free_port();
        let process = command(&file.display().to_string(), &data.display().to_string(), port)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.join("log")).unwrap())
            .spawn()
            .expect("the program is here: `cargo xtask test` installs it");
        Self { process, port, jobs }
    }

    /// The data of an answer of the server's API; null while it does not answer.
    pub(crate) fn data(&self, path: &str) -> Value {
        let page: Value = serde_json::from_str(&curl(self.port, path, &[]).body).unwrap_or_default();
        page.get("data").cloned().unwrap_or_default()
    }

    /// The labels that a job's targets were found with.
    fn found(&self, job: &str) -> Vec<Value> {
        let all = self.data("/api/v1/targets?state=active");
        let all = all.pointer("/activeTargets").and_then(Value::as_array).cloned().unwrap_or_default();
        let labels = all.into_iter().filter_map(|target| target.get("discoveredLabels").cloned());
        labels.filter(|labels| labels.get("job").is_some_and(|found| found == job)).collect()
    }

    /// Waits until every job has found exactly one target that fits.
    async fn finds(&self, what: &str, fits: impl Fn(&Value) -> bool) {
        let all = || self.jobs.iter().all(|job| matches!(self.found(job).as_slice(), [one] if fits(one)));
        until(what, async || all()).await;
    }

    /// Waits until no job finds anything.
    async fn finds_nothing(&self) {
        until("no job has it", async || self.jobs.iter().all(|job| self.found(job).is_empty())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_finds_its_targets_and_follows_one_that_goes_and_comes() {
    let bench = Bench::new().await;
    let http = free_port();
    let agent = bench.agent(&head(http)).await;
    let web = ServiceDefinition {
        name: "web".to_owned(),
        port: Some(9100),
        tags: ["blue".to_owned()].into(),
        meta: [("metrics-path".to_owned(), "/m".to_owned())].into(),
        ..ServiceDefinition::default()
    };
    let register = async || {
        call::<_, Value>(&bench.data_dir(), Method::PUT, paths::AGENT_SERVICES, Some(&web)).await.is_ok()
    };
    until("it registers", register).await;
    listening(http, "web").await;
    let monitoring = Monitoring::over_http(&bench, http).await;
    let fits = |labels: &Value| {
        let label = |name: &str| labels[format!("__meta_bellwether_{name}")].as_str().unwrap_or_default();
        assert_eq!(labels["__address__"], "127.0.0.1:9100");
        assert_eq!((label("service"), label("node"), label("instance")), ("web", "web-1", "web"));
        assert_eq!((label("tags"), label("tag_blue"), label("meta_metrics_path")), (",blue,", "true", "/m"));
        label("status") == "passing"
    };
    monitoring.finds("every job finds it", fits).await;

    let gone = fill(paths::AGENT_SERVICE, &["web"]);
    let _: Value = call::<(), _>(&bench.data_dir(), Method::DELETE, &gone, None).await.unwrap();
    monitoring.finds_nothing().await;
    assert!(register().await);
    monitoring.finds("every job finds it again", fits).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consuls_discovery_finds_its_targets_and_follows_one_that_fails_and_goes() {
    let bench = Bench::new().await;
    let http = free_port();
    let agent = bench.agent(&head(http)).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tcp, interval) = (Some(address.to_string()), Some("100ms".to_owned()));
    let check = CheckDefinition { name: "up".to_owned(), tcp, interval, ..CheckDefinition::default() };
    let web = ServiceDefinition {
        name: "web".to_owned(),
        port: Some(address.port()),
        tags: ["blue".to_owned()].into(),
        meta: [("metrics-path".to_owned(), "/m".to_owned())].into(),
        checks: vec![check],
        ..ServiceDefinition::default()
    };
    let register = async || {
        call::<_, Value>(&bench.data_dir(), Method::PUT, paths::AGENT_SERVICES, Some(&web)).await.is_ok()
    };
    until("it registers", register).await;
    listening(http, "web").await;
    let monitoring = Monitoring::over_consul(&bench, http);
    let is = |health: &'static str| {
        move |labels: &Value| {
            let label = |name: &str| labels[format!("__meta_consul_{name}")].as_str().unwrap_or_default();
            assert_eq!(labels["__address__"], address.to_string());
            assert_eq!((label("service"), label("node"), label("service_id")), ("web", "web-1", "web"));
            assert_eq!(label("tags"), ",blue,");
            label("health") == health
        }
    };
    monitoring.finds("it is found, and passes", is("passing")).await;
    drop(listener);
    monitoring.finds("it is found, and fails", is("critical")).await;
    let gone = fill(paths::AGENT_SERVICE, &["web"]);
    let _: Value = call::<(), _>(&bench.data_dir(), Method::DELETE, &gone, None).await.unwrap();
    monitoring.finds_nothing().await;
    agent.stop().await;
}
