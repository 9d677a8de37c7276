//! HAProxy: it finds three instances by SRV records of an agent's DNS, with the configuration of the guide as it stands. One
//! fails its check, dies and comes back, again and again, while requests go through all the time: none fails.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::place::{Setup, free_port, page, text, wait_for};

/// A web server that says its name, and whether it is well.
pub(crate) struct Instance {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    /// How many health checks it answered.
    pub(crate) probes: Arc<AtomicU64>,
    well: Arc<AtomicBool>,
    serving: Option<tokio::task::JoinHandle<()>>,
}

impl Instance {
    pub(crate) async fn new(name: &'static str) -> Self {
        let mut instance = Self {
            name,
            port: free_port(),
            probes: Arc::default(),
            well: Arc::new(AtomicBool::new(true)),
            serving: None,
        };
        instance.start().await;
        instance
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own server, ended in `die`")]
    async fn start(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        let (name, well, probes) = (self.name, self.well.clone(), self.probes.clone());
        self.serving = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, name, (well.clone(), probes.clone())));
            }
        }));
    }

    /// Ends as a service does that was killed: nobody listens any more.
    fn die(&mut self) {
        self.serving.take().unwrap().abort();
    }

    fn sections(&self, dns: u16) -> String {
        format!(
            "addresses = {{ eth0 = [\"127.0.0.1\"] }}\n[dns]\nlisten = [\"127.0.0.1:{dns}\"]\n\
             [[service]]\nname = \"web\"\nport = {0}\n[[service.check]]\nname = \"health\"\n\
             http = \"http://127.0.0.1:{0}/health\"\ninterval = \"100ms\"\nfall = 2\nrise = 2\n",
            self.port
        )
    }
}

async fn answer(
    mut stream: TcpStream,
    name: &'static str,
    (well, probes): (Arc<AtomicBool>, Arc<AtomicU64>),
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let is_probe = text(&head).contains("/health");
    probes.fetch_add(u64::from(is_probe), Ordering::SeqCst);
    let sick = is_probe && !well.load(Ordering::SeqCst);
    let status = if sick { "503 Service Unavailable" } else { "200 OK" };
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{name}", name.len());
    drop(stream.write_all(answer.as_bytes()).await);
}

/// Ends with the story.
pub(crate) struct Haproxy(Child);

impl Drop for Haproxy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(crate) fn haproxy(place: &Setup, dns: u16, port: u16) -> Haproxy {
    let guide = format!("{}/../../docs/guide/discovery.md", env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(guide).unwrap();
    let config = guide.split("```haproxy\n").nth(1).unwrap().split("```").next().unwrap();
    let config = config.replace("127.0.0.1:8600", &format!("127.0.0.1:{dns}"));
    let config = config.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    std::fs::write(place.path("haproxy.cfg"), config).unwrap();
    let log = std::fs::File::create(place.path("haproxy.log")).unwrap();
    let started = Command::new("/usr/sbin/haproxy")
        .args(["-db", "-f", &place.path("haproxy.cfg")])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Haproxy(started.expect("haproxy is here: `cargo xtask test` installs it"))
}

/// Asks all the time, and remembers who answered and whether anybody did not.
pub(crate) struct Client {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    asking: tokio::task::JoinHandle<Vec<String>>,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "a test's own client, joined in `ended`")]
    pub(crate) fn start(port: u16) -> Self {
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (halt, count) = (stop.clone(), sent.clone());
        let asking = tokio::spawn(async move {
            let mut failed = Vec::new();
            while !halt.load(Ordering::SeqCst) {
                let answer = page(port).await;
                if !matches!(&answer, Some((200, _))) {
                    failed.push(format!("{answer:?}"));
                }
                count.fetch_add(1, Ordering::SeqCst);
            }
            failed
        });
        Self { stop, sent, asking }
    }

    pub(crate) async fn ended(self) {
        self.stop.store(true, Ordering::SeqCst);
        let failed = self.asking.await.unwrap();
        let sent = self.sent.load(Ordering::SeqCst);
        assert!(failed.is_empty(), "{} of {sent} failed: {:?}", failed.len(), failed.first());
        assert!(sent > 100, "hardly anything was asked: {sent}");
    }
}

/// Who answers, over enough requests that each would have had its turn.
async fn answering(port: u16) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for _ in 0..9 {
        names.extend(page(port).await.map(|(_, name)| name));
    }
    names
}

pub(crate) async fn until_answering(port: u16, names: &[&str]) {
    let expected: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    wait_for(&format!("{names:?} answer"), async || answering(port).await == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_follows_instances_that_fail_and_come_back_and_loses_no_request() {
    let mut place = Setup::new().await;
    let mut instances =
        [Instance::new("web-1").await, Instance::new("web-2").await, Instance::new("web-3").await];
    let (dns, port) = (free_port(), free_port());
    for instance in &instances {
        // HAProxy asks the first one's agent.
        let own = if instance.name == "web-1" { dns } else { free_port() };
        place.start_agent(instance.name, &instance.sections(own));
    }
    let _haproxy = haproxy(&place, dns, port);
    let all = ["web-1", "web-2", "web-3"];
    until_answering(port, &all).await;

    let client = Client::start(port);
    for _ in 0..2 {
        // One fails its check, and nobody is sent to it any more; then it is well again.
        instances[2].well.store(false, Ordering::SeqCst);
        until_answering(port, &["web-1", "web-2"]).await;
        instances[2].well.store(true, Ordering::SeqCst);
        until_answering(port, &all).await;
        // One dies without a word, and comes back.
        instances[1].die();
        until_answering(port, &["web-1", "web-3"]).await;
        instances[1].start().await;
        until_answering(port, &all).await;
    }
    client.ended().await;
}
