//! Snapshots of a real etcd are restored into new ensembles: all that was acknowledged before is there, whatever became of the ensemble that they
//! were taken of; what is damaged is refused until it is whole; and an agent that is killed in the middle is followed by one that begins anew.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::story_ensembles::{Writer, address, complete, key, node, post, spec};

const NODES: usize = 3;

/// The programs of etcd that the tests run with, and the one of them that restores: `etcdutl` where there is one, as with etcd 3.5.
pub(crate) fn programs() -> (String, String) {
    let find = |name: &str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
        Some(text(&found.stdout).trim().to_owned()).filter(|program| !program.is_empty())
    };
    let restorer = find("etcdutl").or_else(|| find("etcdctl"));
    (find("etcd").unwrap(), restorer.unwrap())
}

/// An installation whose agents restore with a program that waits at a gate, while there is one.
async fn gated() -> Setup {
    let mut place = Setup::new().await;
    let (program, gate, began) = (place.path("restorer"), place.path("gate"), place.path("began"));
    let (etcd, restorer) = programs();
    let script =
        format!("#!/bin/sh\necho begins >> {began}\n[ ! -p {gate} ] || cat {gate}\nexec {restorer} \"$@\"\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    for number in 1..=NODES {
        let sections = format!(
            "addresses = {{ lo = [{:?}] }}\n\n[ensembles]\netcd = {etcd:?}\netcdutl = {program:?}\n",
            address(number)
        );
        place.start_agent(&node(number), &sections);
    }
    place
}

/// Creates an ensemble of one on these ports; the command's exit code, and what it says.
fn create(place: &Setup, name: &str, ports: [u16; 2], flags: &[&str]) -> (i32, String) {
    let [client, peer] = ports.map(|port| port.to_string());
    let own = ["ensemble", "create", name, "--filter", "all", "--size", "1", "--tls", "false"];
    let ports = ["--client-port", &client, "--peer-port", &peer];
    let said = place.run(&[&own[..], &ports[..], flags].concat());
    (code(&said), format!("{}{}", text(&said.stdout), text(&said.stderr)))
}

fn why(place: &Setup, name: &str) -> String {
    text(&place.run(&["why", &format!("ensemble/{name}")]).stdout)
}

/// The keys with these numbers are in the store.
fn are_there(client: &str, keys: &[u32]) {
    for number in keys {
        let found = post(client, "/v3/kv/range", &format!(r#"{{"key": "{}"}}"#, key(*number)));
        assert!(found.is_some_and(|found| found.contains(r#""count":"1""#)), "{number} is lost");
    }
}

/// Where the member listens for clients.
fn client_of(member: &EnsembleMember, port: u16) -> String {
    let peer = member.peer_url.clone().unwrap();
    let host = peer.trim_start_matches("http://").split(':').next().unwrap();
    format!("{host}:{port}")
}

fn cluster_id(client: &str) -> String {
    let said = post(client, "/v3/cluster/member/list", "{}").unwrap();
    said.split(r#""cluster_id":""#).nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// A store of one with keys and a snapshot: the keys, the id of the store, the snapshot, and its node.
async fn with_snapshot(place: &Setup, ports: [u16; 2]) -> (Vec<u32>, String, String, String) {
    place.client().set_ensemble("default", "store", &spec(1, ports, false)).await.unwrap();
    let only = complete(place, 1).await;
    let client = client_of(only.first().unwrap(), ports[0]);
    let writer = Writer::start(vec![client.clone()]);
    wait_for("some keys are there", async || {
        post(&client, "/v3/kv/range", &format!(r#"{{"key": "{}"}}"#, key(50)))
            .is_some_and(|found| found.contains(r#""count":"1""#))
    })
    .await;
    let (keys, _, _) = writer.end();
    done(place, &["ensemble", "snapshot", "store", "-w"]);
    // What is written later is in no snapshot.
    assert!(post(&client, "/v3/kv/put", r#"{"key": "bGF0ZXI=", "value": "AAAA"}"#).is_some());
    let status = place.client().ensemble("default", "store").await.unwrap().status.unwrap();
    let taken = status.snapshots.unwrap().taken.pop().unwrap();
    assert!(done(place, &["ensemble", "snapshots", "store"]).contains(&taken.name));
    (keys, cluster_id(&client), taken.name, taken.node)
}

/// Deletes the ensemble, which says where the snapshot stays.
async fn delete(place: &Setup, snapshot: &str, own: &str) {
    let deleted = place.run(&["ensemble", "delete", "store", "--yes"]);
    let said = text(&deleted.stderr) + &text(&deleted.stdout);
    assert!(said.contains(&format!("snapshot {snapshot} stays on node {own}")), "{said}");
    wait_for("its member has left", async || code(&place.run(&["why", "ensemble/store"])) != 0).await;
    let events = done(place, &["events", "--limit", "1000"]);
    assert!(
        events.contains(&format!("1 snapshot stays, the latest as {snapshot} on node {own}")),
        "{events}"
    );
}

/// What makes no sense is refused at once.
fn refused(place: &Setup, ports: [u16; 2], snapshot: &str, own: &str) {
    let (refused, said) = create(place, "store", ports, &["--from-snapshot", snapshot]);
    assert!(
        refused == 64 && said.contains("no ensemble lists it") && said.contains("--snapshot-node"),
        "{said}"
    );
    let (refused, said) =
        create(place, "store", ports, &["--from-snapshot", "latest", "--snapshot-node", own]);
    assert!(
        refused != 0 && said.contains("restore.snapshot: \"latest\" is not the name of a snapshot"),
        "{said}"
    );
    let redis = ["ensemble", "create", "cache", "--service", "redis", "--filter", "all"];
    let said = place.run(&[&redis[..], &["--from-snapshot", snapshot, "--snapshot-node", own]].concat());
    let said = text(&said.stderr);
    assert!(said.contains("snapshots are there for etcd, and not for Redis yet"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_restored_into_a_new_ensemble_once_it_is_whole_also_if_an_agent_dies_meanwhile() {
    let mut place = gated().await;
    let ports = free_ports();
    let (keys, former, snapshot, own) = with_snapshot(&place, ports).await;
    delete(&place, &snapshot, &own).await;
    refused(&place, ports, &snapshot, &own);

    // A damaged one is not used, and a node that does not have it neither.
    let file = place.path(&format!("{own}/data/ensembles/store.snapshots/{snapshot}.db"));
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let from = ["--from-snapshot", &snapshot, "--snapshot-node", &own];
    let (created, said) = create(&place, "store", ports, &from);
    assert_eq!(created, 0, "{said}");
    assert!(said.contains(&format!("is founded on node {own} from snapshot {snapshot}")), "{said}");
    wait_for("its node refuses it", async || why(&place, "store").contains("is damaged: its")).await;
    let said = why(&place, "store");
    assert!(said.contains(&file) && said.contains(&own) && said.contains("delete ensemble store"), "{said}");
    assert!(!std::path::Path::new(&place.path("began")).exists());
    assert!(
        done(&place, &["ensemble", "get", "store"])
            .contains(&format!("founded from    {snapshot} on node {own}"))
    );

    // An agent that is killed while it is restored begins anew.
    std::fs::write(&file, &whole).unwrap();
    let began = || std::fs::read_to_string(place.path("began")).unwrap_or_default().lines().count();
    wait_for("it is being restored", async || began() == 1).await;
    place.kill_agent(&own);
    let half = place.path(&format!("{own}/data/ensembles/store/restored/member/snap"));
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(format!("{half}/db"), "half").unwrap();
    place.resume_agent(&own);
    let began = || std::fs::read_to_string(place.path("began")).unwrap_or_default().lines().count();
    wait_for("it is being restored again", async || began() == 2).await;
    let gate = place.path("gate");
    let opened = gate.clone();
    tokio::task::spawn_blocking(move || std::fs::write(opened, "open\n").unwrap()).await.unwrap();
    std::fs::remove_file(gate).unwrap();
    let first = complete(&place, 1).await;
    assert_eq!((first[0].number, &*first[0].node), (1, &*own));
    let client = client_of(&first[0], ports[0]);
    are_there(&client, &keys);
    assert_ne!(cluster_id(&client), former, "members of the former store are no members of this one");
    let later = post(&client, "/v3/kv/range", r#"{"key": "bGF0ZXI="}"#).unwrap();
    assert!(!later.contains(r#""count":"1""#), "{later}");

    // It grows, takes writes, and stays what it is.
    done(&place, &["ensemble", "scale", "store", "3", "--yes"]);
    let all = complete(&place, 3).await;
    assert!(post(&client, "/v3/kv/put", r#"{"key": "bmV3", "value": "AAAA"}"#).is_some());
    for member in &all {
        are_there(&client_of(member, ports[0]), &keys);
    }
    assert_eq!(began(), 2, "it is restored once");
    other_snapshots_are_refused_and_other_ensembles_take_them(&place, &keys).await;
}

/// An ensemble that has members keeps its data, and a snapshot of it founds another one beside it.
async fn other_snapshots_are_refused_and_other_ensembles_take_them(place: &Setup, keys: &[u32]) {
    let before = place.client().ensemble("default", "store").await.unwrap();
    let mut other = before.spec();
    other.restore.as_mut().unwrap().snapshot = "store-1f-1-2a".to_owned();
    let refused = place.client().set_ensemble("default", "store", &other).await.unwrap_err().to_string();
    assert!(
        refused.contains("was founded from snapshot") && refused.contains("into a new ensemble"),
        "{refused}"
    );
    let mut silent = before.spec();
    silent.restore = None;
    let same = place.client().set_ensemble("default", "store", &silent).await.unwrap();
    assert_eq!((same.revision, same.restore), (before.revision, before.restore));

    done(place, &["ensemble", "snapshot", "store", "-w"]);
    let status = place.client().ensemble("default", "store").await.unwrap().status.unwrap();
    let taken = status.snapshots.unwrap().taken.pop().unwrap();
    let ports = free_ports();
    let (created, said) = create(place, "copy", ports, &["--from-snapshot", &taken.name]);
    assert!(
        created == 0 && said.contains(&format!("on node {} from snapshot {}", taken.node, taken.name)),
        "{said}"
    );
    let mut members = Vec::new();
    wait_for("the copy serves", async || {
        members = place.client().ensemble("default", "copy").await.unwrap().status.unwrap().members;
        members.iter().any(|member| member.state == MemberPhase::Voting)
    })
    .await;
    let first = members.first().unwrap();
    assert_eq!(first.node, taken.node);
    let client = client_of(first, ports[0]);
    are_there(&client, keys);
    assert!(post(&client, "/v3/kv/range", r#"{"key": "bmV3"}"#).unwrap().contains(r#""count":"1""#));
}

/// Has etcd's own client do something in an ensemble with TLS, as whoever has certificates for it.
fn etcdctl(place: &Setup, ensemble: &str, endpoint: &str, arguments: &[&str]) -> String {
    let file = |name: &str| place.path(&format!("{ensemble}-client/{name}.pem"));
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", &format!("https://{endpoint}")]);
    command.args(["--cacert", &file("ca"), "--cert", &file("client"), "--key", &file("client-key")]);
    let said = command.args(arguments).output().unwrap();
    assert!(said.status.success(), "{}", text(&said.stderr));
    text(&said.stdout)
}

fn certify(place: &Setup, ensemble: &str) {
    done(place, &["ensemble", "certify", ensemble, "--out", &place.path(&format!("{ensemble}-client"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_an_ensemble_with_tls_founds_one_with_certificates_of_its_own() {
    let mut place = Setup::new().await;
    let (etcd, restorer) = programs();
    for number in 1..=NODES {
        let at = address(number);
        let programs = format!("etcd = {etcd:?}\netcdutl = {restorer:?}");
        place.start_agent(
            &node(number),
            &format!("addresses = {{ lo = [{at:?}] }}\n\n[ensembles]\n{programs}\n"),
        );
    }
    let (former, ports) = (free_ports(), free_ports());
    place.client().set_ensemble("default", "store", &spec(1, former, true)).await.unwrap();
    let host = |member: &EnsembleMember| {
        let peer = member.peer_url.clone().unwrap();
        peer.trim_start_matches("https://").split(':').next().unwrap().to_owned()
    };
    let first = complete(&place, 1).await.remove(0);
    certify(&place, "store");
    let at = format!("{}:{}", host(&first), former[0]);
    etcdctl(&place, "store", &at, &["put", "kept", "yes"]);
    done(&place, &["ensemble", "snapshot", "store", "-w"]);
    etcdctl(&place, "store", &at, &["put", "later", "no"]);
    let status = place.client().ensemble("default", "store").await.unwrap().status.unwrap();
    let taken = status.snapshots.unwrap().taken.pop().unwrap();

    let [client, peer] = ports.map(|port| port.to_string());
    let own =
        ["ensemble", "create", "copy", "--filter", "all", "--size", "3", "--from-snapshot", &taken.name];
    let missing = place.run(&[&own[..], &["--snapshot-node", "db-99"]].concat());
    let said = text(&missing.stderr);
    assert!(code(&missing) != 0 && said.contains("there is no node db-99"), "{said}");
    done(&place, &[&own[..], &["--client-port", &client, "--peer-port", &peer]].concat());
    let mut members = Vec::new();
    wait_for("the copy is complete", async || {
        let status = place.client().ensemble("default", "copy").await.unwrap().status.unwrap();
        members = status.members;
        status.is_complete && members.len() == 3
    })
    .await;
    certify(&place, "copy");
    for member in &members {
        let at = format!("{}:{}", host(member), ports[0]);
        assert!(etcdctl(&place, "copy", &at, &["get", "kept"]).contains("yes"));
        assert_eq!(etcdctl(&place, "copy", &at, &["get", "later"]), "");
    }
}
