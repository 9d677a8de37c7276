//! Servers that cannot know: cut off from their store, with a store without a quorum, with a store without space. What they tell
//! says how old it is, nobody says of itself that it leads, and readiness says what is impossible.

use std::process::Stdio;

use bellwether_api::client::CallError;
use bellwether_testbed::Options;

use crate::bed::{Bed, options};

/// What a command prints to stdout and stderr.
fn printed(bed: &Bed, server: usize, args: &[&str]) -> (String, String) {
    let output = tokio::task::block_in_place(|| bed.inner.command(server, args).unwrap().output().unwrap());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Why a server is not ready; nothing if it is, or does not answer.
async fn unready(bed: &Bed, server: usize) -> Option<String> {
    match bed.client(server).text("/readyz", std::time::Duration::from_secs(10)).await {
        Err(CallError::Problem(problem)) => Some(problem.detail),
        Ok(_) | Err(_) => None,
    }
}

/// Waits until a server says that it is ready, and its answers are current.
async fn is_current(bed: &Bed, server: usize) {
    bed.wait_for("the server is ready and its answers are current", async || {
        let is_ready = bed.client(server).text("/readyz", std::time::Duration::from_secs(10)).await.is_ok();
        let (status, warned) = printed(bed, server, &["status"]);
        is_ready && warned.is_empty() && status.contains(" up") && !status.contains("was up")
    })
    .await;
}

const STALE: &str = "has had no answer from its store for";

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_cut_off_from_its_store_says_how_old_its_answers_are_and_not_that_it_leads() {
    let mut bed = Bed::start(Options { agents: 2, ..options() }).await;
    let lost = bed.leader_but(&[]).await;
    let (name, other) = (format!("server-{lost}"), lost % 3 + 1);
    (1..=3).for_each(|member| bed.obey(&format!("cut {name} etcd-{member}")));
    bed.leader_but(&[lost]).await;
    bed.wait_for("its answers say how old they are", async || {
        printed(&bed, lost, &["status"]).1.contains(&format!("warning: server {name} {STALE}"))
    })
    .await;

    let plane = bed.client(lost).control_plane().await.unwrap();
    assert!(plane.leader.is_none_or(|leader| leader.server != name), "it says that it leads");
    let (status, _) = printed(&bed, lost, &["status"]);
    assert!(status.contains("2 was up") && !status.contains("is the leader"), "{status}");
    let (listed, warned) = printed(&bed, lost, &["node", "list"]);
    assert!(listed.contains("was up"), "{listed}");
    assert_eq!(warned.matches(STALE).count(), 1, "once for a command: {warned}");
    // What programs read is as it is without the age.
    let (json, warned) = printed(&bed, lost, &["node", "list", "-o", "json"]);
    assert!(json.contains("\"up\"") && warned.contains(STALE), "{json}{warned}");
    for args in [["why", "node/agent-1"], ["server", "list"]] {
        let (_, warned) = printed(&bed, lost, &args);
        assert!(warned.contains(STALE), "{args:?}: {warned}");
    }
    let reason = unready(&bed, lost).await.unwrap();
    assert!(reason.contains("store"), "{reason}");

    // Nobody else warns of anything.
    let (_, warned) = printed(&bed, other, &["server", "list"]);
    assert_eq!(warned, "");
    assert_eq!(unready(&bed, other).await, None);
    bed.obey("heal");
    is_current(&bed, lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_of_the_store_every_server_says_so_and_a_command_that_waits_says_when_it_is_over() {
    let mut bed = Bed::start(Options { agents: 2, ..options() }).await;
    // One that goes on for longer than the story does.
    bed.run(1, &["entity", "set", "web", "--selector", "role=web", "--batch", "1", "--soak", "1h"]);
    bed.roll("v1").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    ["kill etcd-1", "kill etcd-2"].into_iter().for_each(|order| bed.obey(order));
    for server in 1..=3 {
        bed.wait_for("every screen says how old it is", async || {
            ["status", "server list", "node list", "rollout get web"].into_iter().all(|line| {
                let args: Vec<&str> = line.split(' ').collect();
                printed(&bed, server, &args).1.contains(STALE)
            })
        })
        .await;
        let (status, _) = printed(&bed, server, &["status"]);
        assert!(status.contains("2 was up") && !status.contains("is the leader"), "{status}");
        assert!(unready(&bed, server).await.is_some(), "it is ready without a quorum");
    }

    let said = bed.inner.dir().join("waits.err");
    let mut waits = bed.inner.command(1, &["rollout", "get", "web", "-w"]).unwrap();
    waits.stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
    let mut waits = waits.spawn().unwrap();
    let says = |wanted: &str| std::fs::read_to_string(&said).is_ok_and(|said| said.contains(wanted));
    bed.wait_for("a command that waits says it", async || says(STALE)).await;
    tokio::task::block_in_place(|| bed.inner.start_parts(&["etcd-1".to_owned(), "etcd-2".to_owned()]))
        .unwrap();
    bed.wait_for("a command that waits says that it is over", async || says("reaches its store again")).await;
    waits.kill().unwrap();
    waits.wait().unwrap();
    for server in 1..=3 {
        is_current(&bed, server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_has_no_space_every_screen_says_so_and_the_servers_are_shown_as_they_are_known() {
    let some = Options { etcd: 1, servers: 2, agents: 2, quota_bytes: Some(4 << 20), ..options() };
    let mut bed = Bed::start(some).await;
    let filled = |number: usize| {
        let (key, value) = (format!("filler-{number}"), "x".repeat(100_000));
        tokio::task::block_in_place(|| bed.inner.etcdctl(1, &["put", &key, &value])).is_err()
    };
    assert!((0..1_000).any(filled), "etcd never filled up");
    for server in 1..=2 {
        bed.wait_for("every screen says that the store takes no changes", async || {
            ["status", "server list", "node list"].into_iter().all(|line| {
                let args: Vec<&str> = line.split(' ').collect();
                printed(&bed, server, &args).1.contains("warning: the store is read-only: etcd has reached")
            })
        })
        .await;
        let reason = unready(&bed, server).await.unwrap();
        assert!(reason.contains("read-only") && reason.contains("NOSPACE"), "{reason}");
    }

    // A machine that dies now stays as it was last recorded, and nobody takes that for a fact.
    bed.obey("kill agent-2");
    for server in 1..=2 {
        let (status, warned) = printed(&bed, server, &["status"]);
        assert!(status.contains("2 was up") && status.contains("is the leader"), "{status}");
        assert!(warned.contains("record whether nodes are up"), "{warned}");
        let (listed, _) = printed(&bed, server, &["node", "list"]);
        assert_eq!(listed.matches("was up").count(), 2, "{listed}");
        let (told, _) = printed(&bed, server, &["why", "node/agent-2"]);
        assert!(told.starts_with("it was up; since the store takes no changes"), "{told}");
    }

    // No lease is granted: one that is started now cannot register, and is known all the same, to itself and to the other.
    bed.obey("kill server-2");
    bed.wait_for("its registration is over", async || {
        bed.client(1).control_plane().await.is_ok_and(|plane| plane.servers.len() == 1)
    })
    .await;
    // Not waited for: it cannot be ready.
    bed.obey("start server-2 LC_ALL=C");
    for server in 1..=2 {
        bed.wait_for("both are shown", async || {
            let (listed, _) = printed(&bed, server, &["server", "list"]);
            let row = listed.lines().find(|line| line.starts_with("server-2"));
            row.is_some_and(|row| row.contains("not registered")) && listed.contains("server-1")
        })
        .await;
    }

    tokio::task::block_in_place(|| {
        bed.inner.etcdctl(1, &["del", "filler", "--prefix"]).unwrap();
        let said = bed.inner.etcdctl(1, &["endpoint", "status", "-w", "json"]).unwrap();
        let revision = said.split("\"revision\":").nth(1).unwrap();
        let digits: String = revision.chars().take_while(char::is_ascii_digit).collect();
        bed.inner.etcdctl(1, &["compact", &digits]).unwrap();
        bed.inner.etcdctl(1, &["defrag"]).unwrap();
        bed.inner.etcdctl(1, &["alarm", "disarm"]).unwrap();
    });
    for server in 1..=2 {
        is_current(&bed, server).await;
    }
    let (listed, _) = printed(&bed, 1, &["server", "list"]);
    assert!(listed.contains("server-2") && !listed.contains("not registered"), "{listed}");
}
