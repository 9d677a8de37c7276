//! An ensemble of a real Redis: a client writes, and waits for each write until a replica has it. The primary is killed, loses its disk, hands
//! over, and its agent alone is killed; the ensemble grows and shrinks. No write that a replica had is lost, and there is never more than one
//! primary for clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::replication::MemberRole;
use bellwether_api::v1::ensemble::service::{RedisSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::{EnsembleSize, EnsembleSpec};
use bellwether_api::v1::service::InstanceStatus;
use tokio::time::Instant;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::redis_client::RedisClient;
use crate::story_probes::start;

pub(crate) const NODES: usize = 5;

fn address(number: usize) -> String {
    format!("127.0.34.{number}")
}

pub(crate) async fn installed() -> Setup {
    installed_at(Setup::new().await)
}

pub(crate) fn installed_at(mut place: Setup) -> Setup {
    for number in 1..=NODES {
        let sections = format!("addresses = {{ lo = [{:?}] }}\n\n[ensembles]\n", address(number));
        place.start_agent(&format!("mem-{number}"), &sections);
    }
    place
}

pub(crate) fn spec(size: u32, port: u16, has_tls: bool) -> EnsembleSpec {
    let redis = RedisSpec { port: Some(port.into()), tls: Some(has_tls), ..RedisSpec::default() };
    EnsembleSpec {
        service: ServiceAgentSpec { redis: Some(redis), ..ServiceAgentSpec::default() },
        size: Some(EnsembleSize::Number(size)),
        filter: "all".to_owned(),
        failover_after: Some("30s".to_owned()),
        ..EnsembleSpec::default()
    }
}

/// The members, once there are so many, all of them serve, one is the primary, and nothing is left to be done.
pub(crate) async fn complete(place: &Setup, size: usize) -> Vec<EnsembleMember> {
    let client = place.client();
    let mut members = Vec::new();
    wait_for(&format!("{size} members serve"), async || {
        let status = client.ensemble("default", "cache").await.unwrap().status.unwrap();
        members = status.members;
        let primaries = members.iter().filter(|member| member.role == Some(MemberRole::Primary)).count();
        let all_serve = members.iter().all(|member| member.state == MemberPhase::Serving);
        status.is_complete && members.len() == size && primaries == 1 && all_serve
    })
    .await;
    members
}

pub(crate) fn primary(members: &[EnsembleMember]) -> EnsembleMember {
    members.iter().find(|member| member.role == Some(MemberRole::Primary)).unwrap().clone()
}

/// The processes of members on a node.
pub(crate) fn programs(port: u16, member: &EnsembleMember) -> Vec<String> {
    let host = member.peer_url.clone().unwrap().rsplit('/').next().unwrap().replace(&format!(":{port}"), "");
    let found = Command::new("pgrep").args(["-f", &format!("^redis-server {host}:{port}")]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

pub(crate) fn kill(pids: &[String]) {
    for pid in pids {
        assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
    }
}

/// The password that a client uses at the moment; empty for none.
pub(crate) type Password = Arc<Mutex<String>>;

/// Writes keys one after the other, and keeps those that a replica had.
pub(crate) struct Writer {
    password: Password,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    thread: JoinHandle<(Vec<u32>, u32, Duration)>,
}

/// A connection of a client.
fn connect(address: &str, password: &Password) -> Option<RedisClient> {
    let mut redis = RedisClient::connect(address.parse::<SocketAddr>().ok()?).ok()?;
    let password = password.lock().unwrap().clone();
    let is_in = password.is_empty() || redis.ask(&format!("AUTH {password}")).ok()? == "+OK";
    is_in.then_some(redis)
}

/// One write, of which a replica has told that it has it.
pub(crate) fn write(address: &str, number: u32) -> Option<()> {
    write_with(address, &Password::default(), number)
}

fn write_with(address: &str, password: &Password, number: u32) -> Option<()> {
    let mut redis = connect(address, password)?;
    (redis.ask(&format!("SET key-{number} {number}")).ok()? == "+OK").then_some(())?;
    (redis.ask("WAIT 1 1000").ok()?.strip_prefix(':')?.parse::<u32>().ok()? >= 1).then_some(())
}

impl Writer {
    pub(crate) fn start(addresses: Vec<String>) -> Self {
        Self::start_with(addresses, Password::default())
    }

    pub(crate) fn start_with(addresses: Vec<String>, password: Password) -> Self {
        let used = password.clone();
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, count) = (stop.clone(), written.clone());
        let thread = std::thread::spawn(move || {
            let (mut acknowledged, mut failed, mut longest) = (Vec::new(), 0, Duration::ZERO);
            let (mut last, mut places) = (Instant::now(), addresses.iter().cycle());
            let mut at = places.next().unwrap();
            for number in 1.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                match write_with(at, &used, number) {
                    Some(()) => {
                        acknowledged.push(number);
                        count.fetch_add(1, Ordering::Relaxed);
                        longest = longest.max(last.elapsed());
                        last = Instant::now();
                    }
                    None => {
                        failed += 1;
                        at = places.next().unwrap();
                    }
                }
                std::thread::park_timeout(Duration::from_millis(5));
            }
            (acknowledged, failed, longest)
        });
        Self { password, stop, written, thread }
    }

    /// More writes have reached a replica.
    pub(crate) async fn goes_on(&self) {
        let before = self.written.load(Ordering::Relaxed);
        wait_for("writes go on", async || self.written.load(Ordering::Relaxed) > before + 20).await;
    }

    /// Ends the writer, and reads back all that a replica had.
    async fn nothing_is_lost(self, primary: &EnsembleMember, what: &str) {
        let address = primary.peer_url.clone().unwrap().replace("redis://", "");
        self.all_is_at(&address, what).await;
    }

    /// The same, of the Redis at this address.
    pub(crate) async fn all_is_at(self, address: &str, what: &str) {
        self.goes_on().await;
        self.stop.store(true, Ordering::Relaxed);
        let (acknowledged, failed, longest) = self.thread.join().unwrap();
        eprintln!("{what}: {} writes, {failed} failed, longest gap {longest:?}", acknowledged.len());
        assert!(!acknowledged.is_empty(), "{what}");
        let mut redis = connect(address, &self.password).unwrap();
        for number in acknowledged {
            assert_eq!(redis.ask(&format!("GET key-{number}")).unwrap(), number.to_string(), "{what}: lost");
        }
    }
}

/// Each member is an instance of the service `cache`, and one of them is tagged as the primary.
pub(crate) async fn are_instances_of_a_service(place: &Setup, members: &[EnsembleMember]) {
    wait_for("the members are instances of the service cache", async || {
        let found = place.client().service("default", "cache", None, Duration::ZERO).await;
        let all = found.map(|service| service.instances).unwrap_or_default();
        let own = primary(members).node;
        let tagged: Vec<&str> = all
            .iter()
            .filter(|instance| instance.tags.iter().any(|tag| tag == "primary"))
            .map(|instance| &*instance.node)
            .collect();
        all.len() == members.len()
            && all.iter().all(|instance| instance.status == InstanceStatus::Passing)
            && tagged == [own]
    })
    .await;
}

pub(crate) async fn another_is_primary(
    place: &Setup,
    size: usize,
    before: &EnsembleMember,
) -> Vec<EnsembleMember> {
    let mut members = Vec::new();
    wait_for("another member is the primary", async || {
        members = complete(place, size).await;
        primary(&members).number != before.number
    })
    .await;
    members
}

/// The agent of the primary is killed, and nothing else: its replicas still get data from it, and so it stays.
async fn an_agent_killed_alone_costs_nothing(
    place: &mut Setup,
    addresses: Vec<String>,
    before: EnsembleMember,
) -> Vec<EnsembleMember> {
    let writer = Writer::start(addresses);
    place.kill_agent(&before.node);
    wait_for("its node is unreachable", async || {
        done(place, &["node", "get", &before.node]).contains("unreachable")
    })
    .await;
    wait_for("its replicas say that they get data", async || {
        text(&place.run(&["why", "ensemble/cache"]).stdout)
            .contains("still get data, although contact with the primary is lost")
    })
    .await;
    place.resume_agent(&before.node);
    let sixth = complete(place, 3).await;
    assert_eq!(primary(&sixth).number, before.number);
    writer.nothing_is_lost(&before, "an agent killed").await;
    sixth
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_fails_over_hands_over_grows_and_shrinks_without_losing_what_a_replica_had() {
    let mut place = installed().await;
    let [port, _] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(1, port, false)).await.unwrap();
    assert_eq!(primary(&complete(&place, 1).await).number, 1);
    done(&place, &["ensemble", "scale", "cache", "3"]);
    let first = complete(&place, 3).await;
    are_instances_of_a_service(&place, &first).await;
    let addresses: Vec<String> = (1..=NODES).map(|number| format!("{}:{port}", address(number))).collect();

    // The primary is killed, and comes back with what is on its disk: as a replica of the one that took over.
    let (writer, before) = (Writer::start(addresses.clone()), primary(&first));
    writer.goes_on().await;
    kill(&programs(port, &before));
    let second = another_is_primary(&place, 3, &before).await;
    writer.nothing_is_lost(&primary(&second), "failover").await;
    are_instances_of_a_service(&place, &second).await;
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("takes over from member 1"), "{events}");

    // Within the hour nobody takes over again before a person has looked; an empty primary never empties its replicas.
    let (writer, before) = (Writer::start(addresses.clone()), primary(&second));
    writer.goes_on().await;
    std::fs::remove_dir_all(place.path(&format!("{}/data/ensembles/cache/data", before.node))).unwrap();
    kill(&programs(port, &before));
    let why = ["why", "ensemble/cache"];
    wait_for("it waits for a person", async || {
        text(&place.run(&why).stdout).contains("another member took over from one already")
    })
    .await;
    done(&place, &["ensemble", "failover", "cache", "--acknowledge"]);
    wait_for("the one without its data is replaced", async || {
        complete(&place, 3).await.iter().all(|member| member.number != before.number)
    })
    .await;
    let third = complete(&place, 3).await;
    writer.nothing_is_lost(&primary(&third), "failover of a primary without its disk").await;

    // A person has the primary hand over.
    let (writer, before) = (Writer::start(addresses.clone()), primary(&third));
    writer.goes_on().await;
    done(&place, &["ensemble", "failover", "cache", "--reason", "maintenance"]);
    let fourth = another_is_primary(&place, 3, &before).await;
    writer.nothing_is_lost(&primary(&fourth), "handover").await;

    // It grows and shrinks.
    let writer = Writer::start(addresses.clone());
    writer.goes_on().await;
    done(&place, &["ensemble", "scale", "cache", "5"]);
    complete(&place, 5).await;
    done(&place, &["ensemble", "scale", "cache", "3", "--yes"]);
    let fifth = complete(&place, 3).await;
    writer.nothing_is_lost(&primary(&fifth), "3 to 5 to 3 members").await;
    assert_eq!(primary(&fifth).number, primary(&fourth).number, "the primary is not the one that leaves");

    let last = an_agent_killed_alone_costs_nothing(&mut place, addresses, primary(&fifth)).await;
    done(&place, &["ensemble", "delete", "cache", "--yes"]);
    wait_for("all members have left", async || code(&place.run(&why)) != 0).await;
    assert!(last.iter().all(|member| programs(port, member).is_empty()));
}

/// What redis-cli says with these certificates, if any, to the primary.
fn redis_cli(primary: &EnsembleMember, certificates: Option<&str>, words: &[&str]) -> String {
    let address = primary.peer_url.clone().unwrap();
    let (host, port) = address.rsplit('/').next().unwrap().split_once(':').unwrap();
    let mut command = Command::new("timeout");
    command.args(["10", "redis-cli", "-h", host, "-p", port]);
    if let Some(dir) = certificates {
        let [ca, certificate, key] =
            ["ca.pem", "client.pem", "client-key.pem"].map(|file| format!("{dir}/{file}"));
        command.args(["--tls", "--cacert", &ca, "--cert", &certificate, "--key", &key]);
    }
    let said = command.args(words).output().unwrap();
    format!("{}{}", text(&said.stdout), text(&said.stderr))
}

/// The certificate that a member shows, in words.
fn certificate(member: &EnsembleMember, dir: &str) -> String {
    let address = member.peer_url.clone().unwrap().rsplit('/').next().unwrap().to_owned();
    let shown = format!(
        "openssl s_client -connect {address} -cert {dir}/client.pem -key {dir}/client-key.pem </dev/null 2>/dev/null \
         | openssl x509 -noout -serial -ext subjectAltName"
    );
    text(&Command::new("sh").args(["-c", &shown]).output().unwrap().stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_speaks_tls_alone_and_takes_new_certificates_without_a_restart() {
    let mut place = installed().await;
    let [port, _] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, true)).await.unwrap();
    let members = complete(&place, 3).await;
    are_instances_of_a_service(&place, &members).await;
    let primary = primary(&members);
    let dir = place.path("client");
    done(&place, &["ensemble", "certify", "cache", "--out", &dir]);
    assert_eq!(redis_cli(&primary, Some(&dir), &["SET", "a", "1"]), "OK\n");
    assert_eq!(redis_cli(&primary, Some(&dir), &["WAIT", "2", "5000"]), "2\n");
    assert!(!redis_cli(&primary, None, &["GET", "a"]).contains('1'), "without TLS");

    // An address more: its certificates are renewed, and its program is the same.
    let (before, pids) = (certificate(&primary, &dir), programs(port, &primary));
    assert!(before.contains("cache.service.bw.internal") && pids.len() == 1, "{before}");
    place.stop_agent(&primary.node);
    let config = place.path(&format!("{}/agent.toml", primary.node));
    let said = std::fs::read_to_string(&config).unwrap();
    let more = said.replacen("\"]", "\", \"127.0.34.99\"]", 1);
    assert_ne!(said, more);
    std::fs::write(&config, more).unwrap();
    place.resume_agent(&primary.node);
    wait_for("it shows new certificates", async || {
        let now = certificate(&primary, &dir);
        now != before && now.contains("127.0.34.99")
    })
    .await;
    assert_eq!(programs(port, &primary), pids);
    assert_eq!(redis_cli(&primary, Some(&dir), &["GET", "a"]), "1\n");
    complete(&place, 3).await;

    // Settings of another software, and what it has none of.
    for (args, reason) in [
        (
            ["ensemble", "set", "cache", "--client-port", "5"].as_slice(),
            "use --client-port: it is a setting of etcd",
        ),
        (&["ensemble", "set", "cache", "--port", "5"], "has members with port"),
        (&["ensemble", "set", "cache", "--min-replicas-to-write", "7"], "write 0 to 6"),
        (
            &["ensemble", "failover", "cache", "--to", "9"],
            "no member of ensemble cache with this number works",
        ),
        (
            &["ensemble", "failover", "cache", "--to", "9", "--accept-data-loss", "--yes"],
            "no member of ensemble",
        ),
        (&["ensemble", "failover", "cache", "--accept-data-loss"], "--to"),
    ] {
        let said = place.run(args);
        assert!(code(&said) != 0 && text(&said.stderr).contains(reason), "{args:?}: {}", text(&said.stderr));
    }
    done(&place, &["ensemble", "set", "cache", "--min-replicas-to-write", "2", "--yes"]);
    wait_for("the primary asks for two replicas", async || {
        redis_cli(&primary, Some(&dir), &["CONFIG", "GET", "min-replicas-to-write"]).contains('2')
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_a_sentinel_watches_is_left_as_it_is_and_says_why() {
    let place = installed().await;
    let [port, sentinel] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(1, port, false)).await.unwrap();
    let primary = primary(&complete(&place, 1).await);
    let host = primary.peer_url.clone().unwrap().replace("redis://", "").replace(&format!(":{port}"), "");
    let file = place.path("sentinel.conf");
    let config = format!("port {sentinel}\nbind 127.0.0.1\nsentinel monitor kv {host} {port} 1\n");
    std::fs::write(&file, config).unwrap();
    let mut watcher =
        start("redis-server", &[file, "--sentinel".to_owned()], PathBuf::from(place.path("sentinel.log")));
    let why = ["why", "ensemble/cache"];
    let is_told = async || text(&place.run(&why).stdout).contains("a Sentinel watches it");
    wait_for("it is told", is_told).await;
    watcher.kill();
    wait_for("it is over", async || !is_told().await).await;
    complete(&place, 1).await;
}
