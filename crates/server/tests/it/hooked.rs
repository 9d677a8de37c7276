//! Test doubles for hooks: a controller with given answers, and a real Prometheus.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bellwether_api::v1::policy::{Hook, Monitor};
use bellwether_rt::tasks::Tasks;
use bellwether_server::run::Server;
use serde_json::Value;

use crate::harness::SOON;

/// How the controller answers.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    /// With this JSON.
    Json(Value),
    /// With this text and status.
    Text(u16, String),
    /// As a selection hook: the candidates in reverse, as many as there is room for.
    Backwards,
    /// With one after the other, then always with the last one.
    Series(Vec<Value>),
    /// With the same judgement for every target.
    Judge { well: bool, reason: String },
    /// Never.
    Hang,
}

/// One question, as received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedQuestion {
    pub(crate) path: String,
    pub(crate) bearer: Option<String>,
    pub(crate) body: Value,
}

#[derive(Debug, Clone)]
struct Script {
    say: Arc<Mutex<Say>>,
    heard: Arc<Mutex<Vec<ReceivedQuestion>>>,
}

impl Script {
    /// The present answer; advances a series.
    fn next(&self) -> Say {
        let mut say = self.say.lock().unwrap();
        let now = say.clone();
        if let Say::Series(series) = &mut *say
            && series.len() > 1
        {
            series.remove(0);
        }
        now
    }
}

/// A controller on a free port.
pub(crate) struct Controller {
    pub(crate) address: SocketAddr,
    script: Script,
    tasks: Tasks,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Controller {
    pub(crate) async fn saying(say: Say) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (router, script) = scripted(say);
        let tasks = Tasks::new();
        let stop = tasks.token();
        tasks.spawn("controller", async move {
            // Both arms only wait; requests in flight are dropped with the server.
            tokio::select! {
                () = stop.cancelled() => {}
                served = async { axum::serve(listener, router).await } => served.unwrap(),
            }
        });
        Self { address, script, tasks }
    }

    /// A controller that uses TLS, with this server's certificate.
    pub(crate) fn behind_tls(server: &Server, say: Say) -> Self {
        let (router, script) = scripted(say);
        let tasks = Tasks::new();
        let address = server.serve_beside(router, &tasks).unwrap();
        Self { address, script, tasks }
    }

    pub(crate) fn say(&self, say: Say) {
        *self.script.say.lock().unwrap() = say;
    }

    pub(crate) fn heard(&self) -> Vec<ReceivedQuestion> {
        self.script.heard.lock().unwrap().clone()
    }

    /// The policy's configuration of this controller.
    pub(crate) fn hook(&self) -> Hook {
        Hook { timeout: some("500ms"), every: some("200ms"), ..hook(&self.url()) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/ask", self.address)
    }
}

fn scripted(say: Say) -> (axum::Router, Script) {
    let script = Script { say: Arc::new(Mutex::new(say)), heard: Arc::default() };
    (axum::Router::new().fallback(answer).with_state(script.clone()), script)
}

async fn answer(
    State(script): State<Script>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let bearer = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    script.heard.lock().unwrap().push(ReceivedQuestion {
        path: uri.path().to_owned(),
        bearer,
        body: body.clone(),
    });
    let say = script.next();
    match say {
        Say::Series(series) => axum::Json(series.first().cloned()).into_response(),
        Say::Judge { well, reason } => {
            let judged = |target: &Value| serde_json::json!({ "name": target["name"], "healthy": well, "reason": reason });
            let targets: Vec<Value> = body["targets"].as_array().unwrap().iter().map(judged).collect();
            axum::Json(serde_json::json!({ "targets": targets })).into_response()
        }
        Say::Json(value) => axum::Json(value).into_response(),
        Say::Text(status, text) => (StatusCode::from_u16(status).unwrap(), text).into_response(),
        Say::Backwards => {
            let room = usize::try_from(body["limit"].as_u64().unwrap()).unwrap();
            let candidates = body["candidates"].as_array().unwrap();
            let targets: Vec<&Value> = candidates.iter().rev().take(room).collect();
            axum::Json(serde_json::json!({ "targets": targets })).into_response()
        }
        Say::Hang => std::future::pending().await,
    }
}

pub(crate) fn hook(url: &str) -> Hook {
    Hook { url: url.to_owned(), timeout: None, every: None, token: None }
}

pub(crate) fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Waits for a condition, for a limited time.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        let mut every = tokio::time::interval(Duration::from_millis(50));
        loop {
            every.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(SOON, looking).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// A real Prometheus, started as a process of its own.
pub(crate) struct Prometheus {
    process: Child,
    pub(crate) address: SocketAddr,
    dir: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Prometheus {
    /// Scrapes `target` ten times a second. Ready to answer when this returns.
    pub(crate) async fn scraping(target: SocketAddr) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "scrape_configs:\n- job_name: web\n  scrape_interval: 100ms\n  scrape_timeout: 100ms\n  \
             static_configs:\n  - targets: ['{target}']\n"
        );
        std::fs::write(dir.path().join("prometheus.yml"), config).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Self::start(dir.path(), address);
        let prometheus = Self { process, address, dir };
        prometheus.ready().await;
        prometheus
    }

    fn start(dir: &Path, address: SocketAddr) -> Child {
        Command::new("prometheus")
            .arg(format!("--config.file={}", dir.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.join("log")).unwrap())
            .spawn()
            .expect("prometheus is here: `cargo xtask test` installs it")
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again on the same port and data.
    pub(crate) async fn again(&mut self) {
        self.process = Self::start(self.dir.path(), self.address);
        self.ready().await;
    }

    async fn ready(&self) {
        eventually("prometheus is ready", async || {
            let client = bellwether_api::client::Client::new(&bellwether_api::client::Access {
                server: format!("http://{}", self.address),
                ca: None,
                identity: bellwether_api::client::Identity::Nobody,
            });
            client.unwrap().text("/-/ready", Duration::from_secs(1)).await.ok()
        })
        .await;
    }

    /// The policy's configuration of this query as a monitor.
    pub(crate) fn monitor(&self, query: &str) -> Monitor {
        Monitor {
            url: format!("http://{}", self.address),
            query: some(query),
            failures: None,
            timeout: some("1s"),
            every: some("300ms"),
            token: None,
        }
    }
}
