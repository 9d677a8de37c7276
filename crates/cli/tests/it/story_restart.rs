//! Restarts of agents: one after the other, in order and by kill -9, under HAProxy, DNS and files that follow the catalogue.
//! Nobody notices.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::UdpSocket;

use crate::place::{Setup, done, free_port, wait_for};
use crate::story_haproxy::{Client, Instance, haproxy, until_answering};

const NODES: [&str; 3] = ["web-1", "web-2", "web-3"];

/// What each agent registers: a service whose check takes seconds to pass, one with a TTL check, one of an entity.
const SERVICES: [&str; 3] = ["web", "queue", "app"];

/// These services, DNS, and a file of the functional instances of `web`.
fn sections(place: &Setup, instance: &Instance, dns: u16) -> String {
    let (port, file) = (instance.port, place.path(&format!("{}/web.list", instance.name)));
    let reload = format!("wc -l < {file} >> {file}.reloads");
    let check = format!("http = \"http://127.0.0.1:{port}/health\"\nfall = 2\nrise = 2\n");
    format!(
        "addresses = {{ eth0 = [\"127.0.0.1\"] }}\n[dns]\nlisten = [\"127.0.0.1:{dns}\"]\n\
         [[service]]\nname = \"web\"\nport = {port}\n[[service.check]]\nname = \"health\"\ninterval = \"2s\"\n{check}\
         [[service]]\nname = \"queue\"\nport = 7\n[[service.check]]\nname = \"alive\"\nttl = \"5m\"\n\
         [[service]]\nname = \"app\"\nentity = \"app\"\nport = {port}\n[entity.app]\nstatic = [\"true\"]\n\
         [[entity.app.check]]\nname = \"health\"\ninterval = \"1s\"\n{check}\
         [[file]]\npath = {file:?}\nservices = [\"web\"]\ndebounce = \"10ms\"\n\
         text = '''{{% for it in services.web.functional %}}{{{{ it.node }}}}\n{{% endfor %}}'''\n\
         reload = [\"/bin/sh\", \"-c\", {reload:?}]\n"
    )
}

/// How many SRV records an agent's DNS has for a service; `None` without an answer.
async fn srv_records(dns: u16, service: &str) -> Option<u16> {
    let mut question = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in [&format!("_{service}"), "_tcp", "service", "bw", "internal"] {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 33, 0, 1]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.connect((Ipv4Addr::LOCALHOST, dns)).await.unwrap();
    socket.send(&question).await.ok()?;
    let mut answer = [0_u8; 4096];
    let received = tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut answer)).await.ok()?;
    received.ok().filter(|length| *length > 12)?;
    Some(u16::from_be_bytes([answer[6], answer[7]]))
}

/// Asks every agent's DNS all the time, and remembers answers that lack an instance.
struct DnsClient {
    stop: Arc<AtomicBool>,
    asking: tokio::task::JoinHandle<(u32, Vec<String>)>,
}

impl DnsClient {
    #[expect(clippy::disallowed_methods, reason = "a test's own client, joined in `ended`")]
    fn start(ports: Vec<u16>) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let halt = stop.clone();
        let asking = tokio::spawn(ask(ports, halt));
        Self { stop, asking }
    }

    async fn ended(self) {
        self.stop.store(true, Ordering::SeqCst);
        let (answers, wrong) = self.asking.await.unwrap();
        assert!(wrong.is_empty(), "{} of {answers} lacked instances: {wrong:?}", wrong.len());
        assert!(answers > 100, "hardly anything was asked: {answers}");
    }
}

/// Counts complete answers, and says which ones were not.
async fn ask(ports: Vec<u16>, halt: Arc<AtomicBool>) -> (u32, Vec<String>) {
    let (mut answers, mut wrong) = (0, Vec::new());
    let questions = || ports.iter().flat_map(|port| SERVICES.map(|name| (*port, name)));
    while !halt.load(Ordering::SeqCst) {
        for (port, service) in questions() {
            match srv_records(port, service).await {
                Some(3) => answers += 1,
                Some(other) => wrong.push(format!("{other} of {service} at {port}")),
                None => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (answers, wrong)
}

/// All events about health after this one.
async fn health_events_after(place: &Setup, after: u64) -> Vec<String> {
    let all = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let about_health = |kind: &str| {
        kind.starts_with("service.") || kind.starts_with("target.") || kind == "node.unreachable"
    };
    let new = all.into_iter().filter(|event| event.seq > after && about_health(&event.kind));
    new.map(|event| format!("{} {}: {}", event.kind, event.subject, event.cause)).collect()
}

async fn last_event(place: &Setup) -> u64 {
    let all = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    all.iter().map(|event| event.seq).max().unwrap()
}

struct RestartFleet {
    place: Setup,
    dns: BTreeMap<&'static str, u16>,
    instances: Vec<Instance>,
}

impl RestartFleet {
    /// Three agents, all of whose services are healthy.
    async fn healthy() -> Self {
        let mut place = Setup::new().await;
        let (mut dns, mut instances) = (BTreeMap::new(), Vec::new());
        for name in NODES {
            let (instance, port) = (Instance::new(name).await, free_port());
            let sections = sections(&place, &instance, port);
            place.start_agent(name, &sections);
            dns.insert(name, port);
            instances.push(instance);
        }
        done(&place, &["entity", "set", "app", "--selector", "all", "--soak", "0s", "--batch", "100%"]);
        done(&place, &["rollout", "start", "app", "v1", "-w", "--timeout", "60s"]);
        let fleet = Self { place, dns, instances };
        for name in NODES {
            wait_for("a program updates its check", async || {
                let mut command = fleet.place.command(&["service", "check", "pass", "queue"]);
                command.env("BELLWETHER_AGENT_DIR", fleet.data(name)).output().unwrap().status.success()
            })
            .await;
        }
        for name in NODES {
            fleet.until_it_knows_all(name).await;
        }
        fleet
    }

    fn dns(&self, name: &str) -> u16 {
        *self.dns.get(name).unwrap()
    }

    fn data(&self, name: &str) -> String {
        self.place.path(&format!("{name}/data"))
    }

    async fn until_it_knows_all(&self, name: &str) {
        for service in SERVICES {
            wait_for(&format!("three instances of {service} at {name}"), async || {
                srv_records(self.dns(name), service).await == Some(3)
            })
            .await;
        }
        wait_for(&format!("the file of {name} has three instances and was reloaded"), async || {
            self.reloads(name).last().is_some_and(|last| last == "3")
        })
        .await;
    }

    /// How many lines the file had at each of its reloads.
    fn reloads(&self, name: &str) -> Vec<String> {
        let path = self.place.path(&format!("{name}/web.list.reloads"));
        let all = std::fs::read_to_string(path).unwrap_or_default();
        all.lines().map(|line| line.trim().to_owned()).collect()
    }

    async fn until_it_is_connected(&self, name: &str) {
        wait_for(&format!("{name} is connected"), async || {
            let status = bellwether_agent::status::read(Path::new(&self.data(name)));
            status.is_ok_and(|status| status.alive && status.connected_since_ms.is_some())
        })
        .await;
    }

    /// Waits until the checks of a node ran several times: whatever the agent has to say, it has said then.
    async fn until_it_was_probed(&self, name: &str) {
        let instance = self.instances.iter().find(|instance| instance.name == name).unwrap();
        let before = instance.probes.load(Ordering::SeqCst);
        wait_for(&format!("the checks of {name} run"), async || {
            instance.probes.load(Ordering::SeqCst) >= before + 15
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_restart_one_by_one_are_noticed_by_nobody() {
    let mut fleet = RestartFleet::healthy().await;
    let port = free_port();
    let _haproxy = haproxy(&fleet.place, fleet.dns("web-1"), port);
    until_answering(port, &NODES).await;
    let reloads = NODES.map(|name| fleet.reloads(name));
    let before = last_event(&fleet.place).await;
    let (client, resolver) = (Client::start(port), DnsClient::start(fleet.dns.values().copied().collect()));
    for (name, killed) in NODES.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        if killed {
            fleet.place.kill_agent(name);
        } else {
            fleet.place.stop_agent(name);
        }
        fleet.place.resume_agent(name);
        fleet.until_it_knows_all(name).await;
        fleet.until_it_is_connected(name).await;
        fleet.until_it_was_probed(name).await;
    }
    client.ended().await;
    resolver.ended().await;
    assert_eq!(health_events_after(&fleet.place, before).await, Vec::<String>::new());
    assert_eq!(NODES.map(|name| fleet.reloads(name)), reloads, "no file was rewritten");
}
