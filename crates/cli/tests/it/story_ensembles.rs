//! An ensemble of a real etcd on five nodes: it grows and shrinks under a client that keeps count of what was acknowledged, a member that
//! lost its disk is replaced, an agent that was killed takes its member over, and once the ensemble is deleted all data are still there.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::service::{EtcdSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::{EnsembleSize, EnsembleSpec};
use bellwether_api::v1::service::InstanceStatus;
use tokio::time::Instant;

use crate::place::{Setup, below, code, done, free_ports, text, wait_for};

const NODES: usize = 5;

pub(crate) fn node(number: usize) -> String {
    format!("db-{number}")
}

pub(crate) fn address(number: usize) -> String {
    format!("127.0.31.{number}")
}

/// An installation whose agents run members of ensembles, each on an address of its own.
pub(crate) async fn installed() -> Setup {
    let mut place = Setup::new().await;
    for number in 1..=NODES {
        let sections = format!("addresses = {{ lo = [{:?}] }}\n\n[ensembles]\n", address(number));
        place.start_agent(&node(number), &sections);
    }
    place
}

pub(crate) fn spec(size: u32, [client_port, peer_port]: [u16; 2], has_tls: bool) -> EnsembleSpec {
    let etcd = EtcdSpec {
        client_port: Some(client_port.into()),
        peer_port: Some(peer_port.into()),
        tls: Some(has_tls),
    };
    EnsembleSpec {
        service: ServiceAgentSpec { etcd: Some(etcd), ..ServiceAgentSpec::default() },
        size: Some(EnsembleSize::Number(size)),
        filter: "all".to_owned(),
        failover_after: Some("30s".to_owned()),
        ..EnsembleSpec::default()
    }
}

/// The members, once there are so many, all of them vote, and nothing is left to be done.
pub(crate) async fn complete(place: &Setup, size: usize) -> Vec<EnsembleMember> {
    let client = place.client();
    let mut members = Vec::new();
    wait_for(&format!("{size} members vote"), async || {
        let status = client.ensemble("default", "store").await.unwrap().status.unwrap();
        members = status.members;
        status.is_complete
            && members.len() == size
            && members.iter().all(|member| member.state == MemberPhase::Voting)
    })
    .await;
    members
}

fn scale(place: &Setup, size: u32) {
    done(place, &["ensemble", "scale", "store", &size.to_string(), "--yes"]);
}

/// Where the directories of members are on a node.
fn directories(place: &Setup, node: &str) -> Vec<String> {
    let dir = PathBuf::from(place.path(&format!("{node}/data/ensembles")));
    let found = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    found.map(|name| name.into_string().unwrap()).collect()
}

/// The processes of members on a node.
pub(crate) fn etcds(place: &Setup, node: &str) -> Vec<String> {
    let data = place.path(&format!("{node}/data/ensembles/store/data"));
    let found = Command::new("pgrep").args(["-f", &format!("^etcd --name .*{data} ")]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Posts to an etcd; nothing if it does not acknowledge.
pub(crate) fn post(address: &str, path: &str, body: &str) -> Option<String> {
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address.parse().ok()?, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200 ").then_some(answer)
}

/// A key with this number, as etcd's JSON has it: four bytes in base64.
pub(crate) fn key(number: u32) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |at: u32| char::from(DIGITS.get((number >> (6 * at) & 63) as usize).copied().unwrap_or(b'A'));
    // Three bytes are four digits, and no padding.
    [3, 2, 1, 0].map(digit).iter().collect()
}

/// Writes keys one after the other, and keeps those that were acknowledged.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Vec<u32>, u32, Duration)>,
}

impl Writer {
    pub(crate) fn start(addresses: Vec<String>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut acknowledged, mut failed, mut longest) = (Vec::new(), 0, Duration::ZERO);
            let (mut last, mut places) = (Instant::now(), addresses.iter().cycle());
            let mut at = places.next().unwrap();
            for number in 1.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let body = format!(r#"{{"key": "{0}", "value": "{0}"}}"#, key(number));
                match post(at, "/v3/kv/put", &body) {
                    Some(_) => {
                        acknowledged.push(number);
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
        Self { stop, thread }
    }

    pub(crate) fn end(self) -> (Vec<u32>, u32, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Each member, and nobody else, is an instance of the service `store` that is found by it; one of them leads.
async fn are_instances_of_a_service(place: &Setup, members: &[EnsembleMember]) {
    wait_for("the members are instances of the service store", async || {
        let all = place
            .client()
            .service("default", "store", None, Duration::ZERO)
            .await
            .map(|service| service.instances);
        let all = all.unwrap_or_default();
        let of = |member: &EnsembleMember| {
            let name = format!("store-{}", member.number);
            all.iter().find(|instance| instance.node == member.node && instance.name == name)
        };
        let is_found = |member| of(member).is_some_and(|instance| instance.status == InstanceStatus::Passing);
        all.len() == members.len()
            && members.iter().all(is_found)
            && all.iter().filter(|instance| instance.tags.iter().any(|tag| tag == "leader")).count() == 1
    })
    .await;
}

/// How often an instance of a service failed or was gone.
fn losses(place: &Setup) -> usize {
    let events = done(place, &["events", "--limit", "1000"]);
    events.matches("service.failing").count() + events.matches("service.deregistered").count()
}

/// Members are removed only with consent, and a plan says which.
fn fewer_members_are_a_question(place: &Setup) {
    let plan = done(place, &["ensemble", "plan", "store", "--size", "3"]);
    assert_eq!(plan.matches("is removed: there are more members than are wanted").count(), 2, "{plan}");
    let asked = place.run(&["ensemble", "scale", "store", "3"]);
    let said = text(&asked.stderr);
    assert!(code(&asked) == 64 && said.contains("scale ensemble store to 3?"), "{said}");
    assert!(done(place, &["ensemble", "get", "store"]).contains("5 of 5 members vote"));
    assert!(done(place, &["ensemble", "list"]).contains("5 of 5"));
}

/// Ends the writer, and reads back all that was acknowledged.
pub(crate) fn nothing_is_lost(writer: Writer, addresses: &[String]) {
    let (acknowledged, failed, longest) = writer.end();
    eprintln!("{} writes, {failed} failed, longest gap {longest:?}", acknowledged.len());
    assert!(!acknowledged.is_empty());
    let living =
        addresses.iter().find(|at| post(at, "/v3/kv/range", r#"{"key": "AAAA"}"#).is_some()).unwrap();
    for number in acknowledged {
        let found = post(living, "/v3/kv/range", &format!(r#"{{"key": "{}"}}"#, key(number)));
        assert!(found.is_some_and(|found| found.contains(r#""count":"1""#)), "{number} is lost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_grows_shrinks_and_replaces_a_member_without_losing_what_it_acknowledged() {
    let mut place = installed().await;
    let ports = free_ports();
    place.client().set_ensemble("default", "store", &spec(1, ports, false)).await.unwrap();
    let first = complete(&place, 1).await;
    assert_eq!((first[0].number, first[0].peer_url.is_some()), (1, true));

    let addresses: Vec<String> =
        (1..=NODES).map(|number| format!("{}:{}", address(number), ports[0])).collect();
    let writer = Writer::start(addresses.clone());
    scale(&place, 3);
    complete(&place, 3).await;
    scale(&place, 5);
    let all = complete(&place, 5).await;
    fewer_members_are_a_question(&place);
    scale(&place, 3);
    let kept = complete(&place, 3).await;
    for left in all.iter().filter(|member| kept.iter().all(|other| other.number != member.number)) {
        assert_eq!(directories(&place, &left.node), ["store.set-aside-1"], "{}", left.node);
        assert_eq!(etcds(&place, &left.node), [""; 0], "{}", left.node);
    }

    // An agent that is killed leaves its member as it is, and takes it over again.
    are_instances_of_a_service(&place, &kept).await;
    let losses_before = losses(&place);
    let own = kept[0].node.clone();
    let before = etcds(&place, &own);
    place.kill_agent(&own);
    place.resume_agent(&own);
    wait_for("the agent reports", async || done(&place, &["node", "get", &own]).contains("up")).await;
    are_instances_of_a_service(&place, &kept).await;
    assert_eq!(losses(&place), losses_before, "an instance was lost meanwhile");
    assert_eq!(complete(&place, 3).await.len(), 3);
    assert_eq!((etcds(&place, &own), before.len()), (before, 1));

    // A member dies with its disk: it is not started without what it has acknowledged, and another one takes its place.
    let lost = kept[1].clone();
    for pid in etcds(&place, &lost.node) {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
    std::fs::remove_dir_all(place.path(&format!("{}/data/ensembles/store", lost.node))).unwrap();
    let why = ["why", "ensemble/store"];
    wait_for("its node says why", async || {
        text(&place.run(&why).stdout).contains("it is not started: its data are gone")
    })
    .await;
    wait_for("it is replaced", async || {
        complete(&place, 3).await.iter().all(|member| member.number != lost.number)
    })
    .await;
    assert!(complete(&place, 3).await.iter().any(|member| member.number == 6), "numbers are not used again");

    nothing_is_lost(writer, &addresses);

    assert!(done(&place, &["describe", "ensemble/store"]).contains("3 of 3 members vote"));
    done(&place, &["ensemble", "delete", "store", "--yes"]);
    wait_for("all members have left", async || {
        let said = place.run(&why);
        code(&said) != 0 && text(&said.stdout).is_empty()
    })
    .await;
    for number in 1..=NODES {
        let name = node(number);
        assert!(directories(&place, &name).iter().all(|dir| dir.starts_with("store.set-aside-")), "{name}");
        assert_eq!(etcds(&place, &name), [""; 0], "{name}");
    }
    assert!(!below(place.dir.path()).is_empty(), "the agents go on");
}

/// What curl says of a request to a member with these arguments: whether it succeeded, and what it printed.
fn curl(args: &[&str], address: &str, path: &str, body: &str) -> (bool, String) {
    let url = format!("https://{address}{path}");
    let curl =
        Command::new("curl").args(["-sS", "--max-time", "10", "-d", body]).args(args).arg(url).output();
    let curl = curl.unwrap();
    (curl.status.success(), format!("{}{}", text(&curl.stdout), text(&curl.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_clients_of_an_etcd_know_each_other_by_certificates_and_nobody_else_is_served() {
    let place = installed().await;
    let ports = free_ports();
    place.client().set_ensemble("default", "store", &spec(3, ports, true)).await.unwrap();
    let members = complete(&place, 3).await;
    assert!(members.iter().all(|member| member.peer_url.as_ref().unwrap().starts_with("https://")));
    assert!(done(&place, &["ensemble", "get", "store"]).contains("tls             yes"));
    are_instances_of_a_service(&place, &members).await;

    let dir = place.path("client");
    let certify = ["ensemble", "certify", "store", "--out", &dir, "--valid-for", "1h"];
    let said = place.run(&certify);
    assert_eq!(code(&said), 0, "{}", text(&said.stderr));
    assert!(text(&said.stderr).contains("certified a client until"), "{}", text(&said.stderr));
    let again = place.run(&certify);
    assert!(text(&again.stderr).contains("it is there already") && code(&again) == 64, "{again:?}");
    let file = |name: &str| format!("{dir}/{name}");
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client-key.pem"].map(file);
    let host = members[0].peer_url.clone().unwrap();
    let host = host.trim_start_matches("https://").split(':').next().unwrap().to_owned();
    let address = format!("{host}:{}", ports[0]);
    let own = ["--cacert", &*ca, "--cert", &*certificate, "--key", &*key];
    let (is_put, said) = curl(&own, &address, "/v3/kv/put", r#"{"key": "AAAA", "value": "AAAA"}"#);
    assert!(is_put && said.contains("revision"), "{said}");
    // The name in DNS is in the certificates, too.
    let named = format!("store.service.bw.internal:{}", ports[0]);
    let resolved = format!("{named}:{host}");
    let by_name: Vec<&str> = own.into_iter().chain(["--resolve", &resolved]).collect();
    let (is_read, said) = curl(&by_name, &named, "/v3/kv/range", r#"{"key": "AAAA"}"#);
    assert!(is_read && said.contains(r#""count":"1""#), "{said}");

    let (is_served, said) = curl(&["--cacert", &ca], &address, "/v3/kv/range", r#"{"key": "AAAA"}"#);
    assert!(!is_served, "without a certificate: {said}");
    assert_eq!(post(&address, "/v3/kv/range", r#"{"key": "AAAA"}"#), None, "without TLS");
    let peer = format!("{host}:{}", ports[1]);
    let trusting: Vec<&str> = own.into_iter().chain(["-k"]).collect();
    let (is_peer, said) = curl(&trusting, &peer, "/version", "");
    assert!(!is_peer, "a client is no member: {said}");

    // A store that takes no writes any more says so.
    let id = u64::from_str_radix(members[0].store_id.as_ref().unwrap(), 16).unwrap();
    let alarm = |action: &str| format!(r#"{{"action": "{action}", "memberID": "{id}", "alarm": "NOSPACE"}}"#);
    assert!(curl(&own, &address, "/v3/maintenance/alarm", &alarm("ACTIVATE")).0);
    let why = ["why", "ensemble/store"];
    let is_told = async || {
        text(&place.run(&why).stdout).contains("takes no writes: its database has reached its quota")
    };
    wait_for("the alarm is told", is_told).await;
    assert!(curl(&own, &address, "/v3/maintenance/alarm", &alarm("DEACTIVATE")).0);
    wait_for("the alarm is over", async || !is_told().await).await;

    // Keys are where they were made, and readable by their owner alone.
    let kept = PathBuf::from(place.path(&format!("{}/data/ensembles/store/tls/key.pem", members[0].node)));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(kept).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let refused = place.run(&["ensemble", "set", "store", "--tls", "false"]);
    assert!(text(&refused.stderr).contains("has members with tls true"), "{}", text(&refused.stderr));

    // A machine with a member does not go before another one has its place, and nothing changes while everything is stopped.
    let gone = place.run(&["node", "decommission", &members[1].node, "--yes"]);
    assert!(text(&gone.stderr).contains("and has member 2 of ensemble store"), "{}", text(&gone.stderr));
    assert!(done(&place, &["node", "why", &members[1].node]).contains("it has member 2 of ensemble store"));
    done(&place, &["stop-everything", "--yes", "--reason", "smoke"]);
    scale(&place, 1);
    let why = done(&place, &["why", "ensemble/store"]);
    assert!(why.contains("stop-everything is in force, set by") && why.contains("smoke"), "{why}");
    assert_eq!(complete_but_for_size(&place).await, 3);
    done(&place, &["stop-everything", "--off"]);
    complete(&place, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_key_somebody_else_has_is_ended_at_once_and_its_member_replaced_from_the_others() {
    let place = installed().await;
    place.client().set_ensemble("default", "store", &spec(3, free_ports(), true)).await.unwrap();
    let stolen = complete(&place, 3).await.last().unwrap().clone();
    let refused = place.run(&["node", "decommission", &stolen.node, "--yes"]);
    assert!(
        code(&refused) != 0 && text(&refused.stderr).contains("add --force"),
        "{}",
        text(&refused.stderr)
    );
    done(
        &place,
        &["node", "decommission", &stolen.node, "--force", "--yes", "--reason", "its key was stolen"],
    );
    wait_for("its member is replaced", async || {
        complete(&place, 3).await.iter().all(|member| member.node != stolen.node)
    })
    .await;
    for pid in etcds(&place, &stolen.node) {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
}

/// Number of members that vote, whatever is wanted.
async fn complete_but_for_size(place: &Setup) -> u64 {
    place.client().ensemble("default", "store").await.unwrap().status.unwrap().voting
}
