//! The monitors of a real Ceph on four nodes: they join one after the other, with a manager beside the first two; of one that is lost with its
//! disk, the place is taken by another one before it leaves, and what was acknowledged is still there. Without a quorum nothing is changed, and
//! what a person removes from the store is believed. On request they are restarted one after the other, with their managers, and one is replaced.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_core::words::plural::plural;

use crate::place::{Setup, code, done, free_ports, text, wait_for};

const NODES: usize = 4;

fn node(number: usize) -> String {
    format!("disk-{number}")
}

/// An installation whose agents run members of ensembles, each on an address of its own.
async fn installed() -> Setup {
    let mut place = Setup::new().await;
    for number in 1..=NODES {
        let sections = format!("addresses = {{ lo = [\"127.0.34.{number}\"] }}\n\n[ensembles]\n");
        place.start_agent(&node(number), &sections);
    }
    place
}

/// The members, once there are so many, all of them vote, and nothing is left to be done.
async fn complete(place: &Setup, size: usize) -> Vec<EnsembleMember> {
    let client = place.client();
    let mut members = Vec::new();
    wait_for(&format!("{} vote", plural(size, "monitor")), async || {
        let status = client.ensemble("default", "disks").await.unwrap().status.unwrap();
        members = status.members;
        status.is_complete
            && members.len() == size
            && members.iter().all(|member| member.state == MemberPhase::Voting)
    })
    .await;
    members
}

/// The directory of the member of a node.
fn directory(place: &Setup, node: &str) -> String {
    place.path(&format!("{node}/data/ensembles/disks"))
}

/// The programs of this name on a node.
fn programs(place: &Setup, (program, node): (&str, &str)) -> Vec<String> {
    let found =
        Command::new("pgrep").args(["-f", &format!("^{program} .*{}/", directory(place, node))]).output();
    String::from_utf8(found.unwrap().stdout).unwrap().lines().map(str::to_owned).collect()
}

/// What the administrator is answered who works on a node; nothing while nobody answers.
fn ceph(place: &Setup, node: &str, words: &[&str]) -> Option<String> {
    let conf = format!("{}/ceph.conf", directory(place, node));
    let mut command = Command::new("timeout");
    let asked =
        command.args(["20", "ceph", "-c", &conf, "--connect-timeout", "10"]).args(words).output().unwrap();
    asked.status.success().then(|| text(&asked.stdout))
}

/// Sends a signal to the programs of this name on a node.
fn signal(place: &Setup, signal: &str, (program, node): (&str, &str)) {
    for pid in programs(place, (program, node)) {
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

/// Who works on a node finds all monitors, and a manager that works.
async fn is_well(place: &Setup, node: &str, members: &[EnsembleMember]) {
    wait_for("the store has a manager, and is well", async || {
        let Some(said) = ceph(place, node, &["status", "-f", "json"]) else { return false };
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        let names = status.pointer("/quorum_names").and_then(|names| names.as_array()).unwrap();
        status.pointer("/mgrmap/available") == Some(&true.into()) && names.len() == members.len()
    })
    .await;
}

/// Whether the first of these lines is before the second one.
fn is_before(lines: &str, first: &str, second: &str) -> bool {
    let at = |part: &str| lines.lines().position(|line| line.contains(part));
    at(first).zip(at(second)).is_some_and(|(first, second)| first < second)
}

/// A monitor has joined before another one left: what was told of the latter.
fn joined_before(place: &Setup, joined: u64, left: u64) -> String {
    let events = done(place, &["events", "--limit", "1000"]);
    let (joined, left) =
        (format!("joining → voting: member {joined}"), format!("leaving → removed: member {left}"));
    assert!(is_before(&events, &joined, &left), "{events}");
    events.lines().find(|line| line.contains(&left)).unwrap().to_owned()
}

/// The monitor of this node, which is the first one, is lost with its disk. The manager beside it runs on until the node is told that the
/// monitor has left.
async fn a_lost_one_leaves_after_another_has_joined(place: &Setup, first: &str) {
    signal(place, "-9", ("ceph-mon", first));
    // Whole, as its manager goes on writing into what it has open.
    std::fs::rename(directory(place, first), place.path("lost")).unwrap();
    let why = ["why", "ensemble/disks"];
    wait_for("its node says why", async || {
        text(&place.run(&why).stdout).contains("it is not started: its data are gone")
    })
    .await;
    wait_for("another one takes its place", async || {
        complete(place, 3).await.iter().all(|member| member.number != 1)
    })
    .await;
    let members = complete(place, 3).await;
    assert!(members.iter().any(|member| member.number == 4), "numbers are not used again: {members:?}");
    let second = members.first().unwrap().node.clone();
    wait_for("its manager is gone", async || programs(place, ("ceph-mgr", first)).is_empty()).await;
    // The store notices that after half a minute, and only then has another one take over.
    wait_for("the store goes on without it", async || {
        let said = ceph(place, &second, &["mgr", "stat", "-f", "json"]);
        said.is_some_and(|said| !said.contains("\"disks-1\""))
    })
    .await;
    is_well(place, &second, &members).await;
    assert_eq!(ceph(place, &second, &["config-key", "get", "alpha"]).as_deref().map(str::trim), Some("1"));
    let left = joined_before(place, 4, 1);
    assert!(left.contains("it did not work, or nobody heard of it, for too long"), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn monitors_of_ceph_join_one_after_the_other_and_a_lost_one_leaves_after_another_has_joined() {
    let mut place = installed().await;
    let [port] = free_ports().map(|port| port.to_string());
    let create = ["ensemble", "create", "disks", "--service", "ceph", "--filter", "all", "--size", "1"];
    let settings = ["--port", &port, "--failover-after", "30s"];
    done(&place, &create.iter().chain(&settings).copied().collect::<Vec<_>>());
    let first = complete(&place, 1).await[0].node.clone();
    assert!(ceph(&place, &first, &["config-key", "set", "alpha", "1"]).is_some());

    done(&place, &["ensemble", "scale", "disks", "3", "--yes"]);
    let members = complete(&place, 3).await;
    is_well(&place, &first, &members).await;
    let managers: usize = (1..=NODES).map(|at| programs(&place, ("ceph-mgr", &node(at))).len()).sum();
    assert_eq!(managers, 2, "beside the first two monitors");
    let shown = done(&place, &["ensemble", "get", "disks"]);
    assert!(
        shown.contains(&format!("ceph on port {port}")) && shown.contains("3 of 3 members vote"),
        "{shown}"
    );
    assert!(done(&place, &["ensemble", "list"]).contains("ceph"));
    done(&place, &["wait", "--service", "disks", "--functional", "3", "--timeout", "1m"]);
    let refused = place.run(&["ensemble", "snapshot", "disks"]);
    assert!(text(&refused.stderr).contains("not for Ceph yet"), "{}", text(&refused.stderr));

    // An agent that is killed leaves its monitor and its manager as they are, and takes them over again.
    let before = [("ceph-mon", &*first), ("ceph-mgr", &*first)].map(|of| programs(&place, of));
    assert!(before.iter().all(|programs| programs.len() == 1), "{before:?}");
    place.kill_agent(&first);
    place.resume_agent(&first);
    wait_for("the agent reports", async || done(&place, &["node", "get", &first]).contains("up")).await;
    complete(&place, 3).await;
    assert_eq!([("ceph-mon", &*first), ("ceph-mgr", &*first)].map(|of| programs(&place, of)), before);

    a_lost_one_leaves_after_another_has_joined(&place, &first).await;

    let why = ["why", "ensemble/disks"];
    done(&place, &["ensemble", "delete", "disks", "--yes"]);
    wait_for("all members have left", async || {
        let said = place.run(&why);
        code(&said) != 0 && text(&said.stdout).is_empty()
    })
    .await;
    for at in 1..=NODES {
        assert!(!Path::new(&directory(&place, &node(at))).exists(), "{at}");
        let left = ["ceph-mon", "ceph-mgr"].map(|program| programs(&place, (program, &node(at))).len());
        assert_eq!(left, [0, 0], "{at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_no_monitor_is_replaced_and_one_that_a_person_removed_is() {
    let mut place = installed().await;
    let [port] = free_ports().map(|port| port.to_string());
    let create = ["ensemble", "create", "disks", "--service", "ceph", "--filter", "all", "--size", "3"];
    let settings = ["--port", &port, "--failover-after", "30s"];
    done(&place, &create.iter().chain(&settings).copied().collect::<Vec<_>>());
    let numbers = |members: &[EnsembleMember]| members.iter().map(|member| member.number).collect::<Vec<_>>();
    let members = complete(&place, 3).await;

    // All are told to end, without an error: none of them can say that another one was removed, and each is started again.
    let nodes: Vec<String> = members.iter().map(|member| member.node.clone()).collect();
    let monitors = |place: &Setup| -> Vec<String> {
        nodes.iter().flat_map(|node| programs(place, ("ceph-mon", node))).collect()
    };
    let before = monitors(&place);
    nodes.iter().for_each(|node| signal(&place, "-TERM", ("ceph-mon", node)));
    wait_for("all are started again", async || {
        let after = monitors(&place);
        after.len() == 3 && after.iter().all(|pid| !before.contains(pid))
    })
    .await;
    assert_eq!(numbers(&complete(&place, 3).await), [1, 2, 3]);

    // Two machines are away for longer than one monitor may be.
    let away = nodes.get(1..).unwrap_or_default();
    for node in away {
        place.kill_agent(node);
        signal(&place, "-9", ("ceph-mon", node));
    }
    let why = ["why", "ensemble/disks"];
    wait_for("quorum is lost", async || {
        text(&place.run(&why).stdout).contains("quorum is lost: 0 of 3 members that vote work")
    })
    .await;
    away.iter().for_each(|node| place.resume_agent(node));
    assert_eq!(numbers(&complete(&place, 3).await), [1, 2, 3]);

    // A person removes one from the store.
    let first = nodes.first().unwrap();
    assert!(ceph(&place, first, &["mon", "rm", "disks-3"]).is_some());
    wait_for("it is believed to be gone", async || numbers(&complete(&place, 3).await) == [1, 2, 4]).await;
    is_well(&place, first, &complete(&place, 3).await).await;
    done(&place, &["ensemble", "delete", "disks", "--yes"]);
    wait_for("all members have left", async || code(&place.run(&why)) != 0).await;
}

/// The pids of the monitors and managers of all nodes, by node.
fn daemons(place: &Setup) -> [BTreeMap<String, Vec<String>>; 2] {
    ["ceph-mon", "ceph-mgr"].map(|program| {
        let all = (1..=NODES).map(|at| (node(at), programs(place, (program, &node(at)))));
        all.filter(|(_, pids)| !pids.is_empty()).collect()
    })
}

/// All monitors are restarted, while somebody writes; the node that leads is the last.
async fn are_restarted(place: &Setup, members: &[EnsembleMember]) {
    let first = members.first().unwrap().node.clone();
    let status = ceph(place, &first, &["quorum_status", "-f", "json"]).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let leader =
        status.pointer("/quorum_leader_name").unwrap().as_str().unwrap().replace("disks-", "member ");
    let asked = place.run(&["ensemble", "restart", "disks"]);
    let said = text(&asked.stderr);
    assert!(code(&asked) == 64 && said.contains("those that do not work first, the leader last"), "{said}");
    assert!(!said.contains("does not serve while"), "{said}");
    let (before, mut written) = (daemons(place), Vec::new());
    done(place, &["ensemble", "restart", "disks", "--yes", "--reason", "another release"]);
    let mut key = 0;
    wait_for("all are restarted", async || {
        key += 1;
        let is_written = ceph(place, &first, &["config-key", "set", &format!("key-{key}"), "1"]).is_some();
        written.extend(is_written.then(|| format!("key-{key}")));
        let [monitors, _] = daemons(place);
        assert!(monitors.len() >= 2, "two are away at once: {monitors:?}");
        done(place, &["events", "--limit", "1000"]).contains("ensemble.restarted")
    })
    .await;
    assert_eq!(complete(place, 3).await, members, "they are the same members");
    wait_for("the managers are restarted, too", async || daemons(place)[1].len() == before[1].len()).await;
    for (before, after) in before.iter().zip(daemons(place)) {
        assert!(before.keys().eq(after.keys()), "{before:?} and {after:?}");
        let is_other =
            |(node, pids): (&String, &Vec<String>)| pids.len() == 1 && before.get(node) != Some(pids);
        assert!(after.iter().all(is_other), "{before:?} and {after:?}");
    }
    let events = done(place, &["events", "--limit", "1000"]);
    let restarted: Vec<&str> =
        events.lines().filter(|line| line.contains("ensemble.member_restarted")).collect();
    assert!(
        restarted.len() == 3 && restarted.last().unwrap().contains(&format!("{leader} on ")),
        "{leader}: {restarted:?}"
    );
    is_well(place, &first, members).await;
    assert!(!written.is_empty());
    for key in written {
        assert_eq!(ceph(place, &first, &["config-key", "get", &key]).as_deref().map(str::trim), Some("1"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn monitors_of_ceph_are_restarted_on_request_with_their_managers_and_one_is_replaced() {
    let place = installed().await;
    let [port] = free_ports().map(|port| port.to_string());
    let create = ["ensemble", "create", "disks", "--service", "ceph", "--filter", "all", "--size", "3"];
    let settings = ["--port", &port, "--failover-after", "1h"];
    done(&place, &create.iter().chain(&settings).copied().collect::<Vec<_>>());
    let members = complete(&place, 3).await;
    let first = members.first().unwrap().clone();
    is_well(&place, &first.node, &members).await;
    wait_for("both managers run", async || daemons(&place)[1].len() == 2).await;
    are_restarted(&place, &members).await;

    let number = first.number.to_string();
    let asked = place.run(&["ensemble", "replace", "disks", &number]);
    let said = text(&asked.stderr);
    let (added, removed) = (said.find("is added on node"), said.find("somebody asked for another one"));
    assert!(code(&asked) == 64 && added.is_some() && added < removed, "{said}");
    done(&place, &["ensemble", "replace", "disks", &number, "--yes", "--reason", "a slow disk"]);
    let mut after = Vec::new();
    wait_for("it is replaced", async || {
        after = complete(&place, 3).await;
        after.iter().all(|member| member.number != first.number)
    })
    .await;
    assert!(joined_before(&place, 4, first.number).contains("somebody asked for another one"));
    wait_for("nothing of it runs", async || daemons(&place).iter().all(|all| !all.contains_key(&first.node)))
        .await;
    is_well(&place, &after.first().unwrap().node, &after).await;
    assert!(!done(&place, &["why", "ensemble/disks"]).contains("replace"));
    done(&place, &["ensemble", "delete", "disks", "--yes"]);
    wait_for("all members have left", async || code(&place.run(&["why", "ensemble/disks"])) != 0).await;
}
