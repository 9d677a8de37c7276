//! An ensemble of Redis: the leader of the control plane dies at every named moment of a failover and of a handover, agents die when they
//! have made their step of one, and the machine of the primary is cut off. There is one primary afterwards, the others follow it, and it has
//! each write that a replica had.

use std::process::Command;
use std::time::Duration;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::replication::MemberRole;
use bellwether_api::v1::ensemble::service::{RedisSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::{EnsembleSize, EnsembleSpec, FailoverEnsemble};
use bellwether_rt::fail::FailPoint;
use bellwether_testbed::Options;
use tokio::time::Instant;

use super::{small, under};
use crate::bed::Bed;

const AGENTS: usize = 4;
const SIZE: usize = 3;
const PORT: u16 = 6379;

/// Decisions by which another member is the primary: the replicas leave the former one, one is promoted, and is seen and followed.
const CHANGES: u32 = 3;

struct Play {
    bed: Bed,
    /// Number of the last key that a replica had.
    written: u32,
}

fn spec() -> EnsembleSpec {
    let redis = RedisSpec { tls: Some(false), ..RedisSpec::default() };
    EnsembleSpec {
        service: ServiceAgentSpec { redis: Some(redis), ..ServiceAgentSpec::default() },
        size: Some(EnsembleSize::Number(3)),
        filter: "all".to_owned(),
        failover_after: Some("30s".to_owned()),
        ..EnsembleSpec::default()
    }
}

impl Play {
    async fn start(etcd: usize, servers: usize) -> Self {
        let sections = "[ensembles]\n".to_owned();
        let bed = Bed::start(Options { sections, ..small(etcd, servers, AGENTS) }).await;
        bed.client(1).set_ensemble("default", "cache", &spec()).await.unwrap();
        let mut play = Self { bed, written: 0 };
        play.writes("it is created").await;
        play
    }

    /// The members, once all of them serve, with one primary.
    async fn complete(&self, what: &str) -> Vec<EnsembleMember> {
        let mut found = Vec::new();
        self.bed
            .wait_for(&format!("{SIZE} members serve after {what}"), async || {
                let asked = self.bed.ask(async |client| client.ensemble("default", "cache").await).await;
                let Some(status) = asked.and_then(|of| of.status) else { return false };
                found = status.members;
                let primaries =
                    found.iter().filter(|member| member.role == Some(MemberRole::Primary)).count();
                let all_serve = found.iter().all(|member| member.state == MemberPhase::Serving);
                status.is_complete && found.len() == SIZE && primaries == 1 && all_serve
            })
            .await;
        found
    }

    async fn primary(&self, what: &str) -> EnsembleMember {
        let members = self.complete(what).await;
        members.into_iter().find(|member| member.role == Some(MemberRole::Primary)).unwrap()
    }

    /// What a member answers to commands, one a line, within its own machine; empty if it does not.
    fn ask(&self, node: &str, commands: &str) -> String {
        let host = self.bed.inner.host(node).unwrap();
        let address = self.bed.inner.address(node).unwrap();
        let words = format!("timeout 10 redis-cli -h {address} -p {PORT} <<'END'\n{commands}\nEND");
        let said = self.bed.inner.network.run(host, &["sh", "-c", &words]).unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    /// Some more keys, each on a replica, after all that were before.
    async fn writes(&mut self, what: &str) {
        self.all_is_there(what).await;
        let primary = self.primary(what).await.node;
        let next = self.written + 20;
        let sets: Vec<String> = (self.written..next).map(|key| format!("SET key-{key} {key}\n")).collect();
        let commands = format!("{}WAIT 1 5000", sets.concat());
        let mut said = String::new();
        self.bed
            .wait_for(&format!("a replica has the writes after {what}"), async || {
                said = self.ask(&primary, &commands);
                said.lines().last().is_some_and(|count| count.trim().parse::<u32>().unwrap_or(0) >= 1)
                    && !said.contains("NOREPLICAS")
            })
            .await;
        self.written = next;
    }

    async fn all_is_there(&self, what: &str) {
        let primary = self.primary(what).await.node;
        let gets: Vec<String> = (0..self.written).map(|key| format!("GET key-{key}\n")).collect();
        let expected: Vec<String> = (0..self.written).map(|key| key.to_string()).collect();
        let said = self.ask(&primary, &gets.concat());
        let found: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(found, expected, "{what}: a write is lost");
    }

    async fn acknowledge(&self) {
        let request = FailoverEnsemble { acknowledge: true, ..FailoverEnsemble::default() };
        self.bed
            .wait_for("the last failover is acknowledged", async || {
                let asked = async |client: bellwether_api::client::Client| {
                    client.fail_over_ensemble("default", "cache", &request).await
                };
                self.bed.ask(asked).await.is_some()
            })
            .await;
    }

    /// The Redis of a node ends, as by a crash.
    fn kill_redis(&self, node: &str) {
        let address = self.bed.inner.address(node).unwrap();
        let pattern = format!("^redis-server {address}:{PORT}");
        assert!(Command::new("pkill").args(["-9", "-f", &pattern]).status().unwrap().success(), "{node}");
    }

    /// Nothing is decided any more: what was seen of the last change is recorded.
    async fn is_at_rest(&self) {
        let mut last = (0, Instant::now());
        self.bed
            .wait_for("nothing is recorded any more", async || {
                let page = self.bed.ask(async |client| client.ensembles("default").await).await;
                let Some(revision) = page.map(|page| page.revision) else { return false };
                if revision != last.0 {
                    last = (revision, Instant::now());
                }
                last.1.elapsed() > Duration::from_secs(3)
            })
            .await;
    }

    /// The primary is to hand over; who is asked may die before it answers.
    async fn hand_over(&self) {
        let request = FailoverEnsemble::default();
        let asked = async |client: bellwether_api::client::Client| {
            client.fail_over_ensemble("default", "cache", &request).await
        };
        drop(self.bed.ask(asked).await);
    }

    /// A leader begins with a change and dies at a point; the one before it goes on.
    async fn dies_in_the_lead(&mut self, (point, passings): (FailPoint, u32), hands_over: bool) {
        let kind = if hands_over { "handover" } else { "failover" };
        let what = format!("{kind} at {}, {passings}", point.name());
        self.acknowledge().await;
        let former = self.primary(&what).await;
        self.is_at_rest().await;
        let (before, next) = self.bed.both_servers().await;
        self.bed.obey(&format!("kill {next}"));
        self.bed.obey(&format!("stop {before}"));
        if !hands_over {
            self.kill_redis(&former.node);
        }
        self.bed.arm(&next, point, passings);
        if hands_over {
            let number: usize = next.trim_start_matches("server-").parse().unwrap();
            let leads = async || self.bed.leader().await == Some(number);
            self.bed.wait_for("the next one leads", leads).await;
            self.hand_over().await;
        }
        self.bed.killed(&next);
        self.bed.obey(&format!("start {before}"));
        self.bed.obey(&format!("start {next}"));
        self.bed
            .wait_for(&format!("another one is the primary after {what}"), async || {
                if hands_over && self.primary(&what).await.number == former.number {
                    self.hand_over().await;
                }
                self.primary(&what).await.number != former.number
            })
            .await;
        self.writes(&what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_moment_of_a_failover_is_followed_by_one_that_ends_it() {
    let mut play = Play::start(1, 2).await;
    for point in under("ensemble.") {
        for passings in 0..CHANGES {
            play.dies_in_the_lead((point, passings), false).await;
            play.dies_in_the_lead((point, passings.min(1)), true).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_killed_after_their_step_of_a_failover_are_followed_by_ones_that_go_on() {
    let mut play = Play::start(0, 1).await;
    for hands_over in [false, true, false] {
        let what = format!("agents die, handover {hands_over}");
        play.acknowledge().await;
        let members = play.complete(&what).await;
        let former = play.primary(&what).await;
        let nodes: Vec<String> = members.iter().map(|member| member.node.clone()).collect();
        for node in &nodes {
            play.bed.obey(&format!("kill {node}"));
            play.bed.arm(node, FailPoint::MemberChanged, 0);
        }
        play.complete(&what).await;
        if hands_over {
            play.hand_over().await;
        } else {
            play.kill_redis(&former.node);
        }
        // The primary hands over, or its replicas leave it.
        let steps = |node: &&String| (**node == former.node) == hands_over;
        for node in nodes.iter().filter(steps) {
            play.bed.killed(node);
            play.bed.obey(&format!("start {node}"));
        }
        for node in &nodes {
            play.bed.obey(&format!("kill {node}"));
            play.bed.obey(&format!("start {node}"));
        }
        play.bed
            .wait_for(&format!("another one is the primary: {what}"), async || {
                play.primary(&what).await.number != former.number
            })
            .await;
        play.writes(&what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_whose_machine_is_cut_off_takes_no_writes_and_comes_back_as_a_replica() {
    let mut play = Play::start(0, 1).await;
    let former = play.primary("it is created").await;
    play.bed.obey(&format!("cut {}", former.node));
    play.bed
        .wait_for("it takes no writes", async || {
            play.ask(&former.node, "SET lonely 1").contains("NOREPLICAS")
        })
        .await;
    play.bed
        .wait_for("another one is the primary", async || {
            let view = play.bed.client(1).ensemble("default", "cache").await.unwrap().status.unwrap();
            view.members
                .iter()
                .any(|member| member.role == Some(MemberRole::Primary) && member.number != former.number)
        })
        .await;
    play.bed.obey(&format!("heal {}", former.node));
    play.writes("its machine is back").await;
    let primary = play.primary("its machine is back").await;
    assert_ne!(primary.number, former.number);
    play.bed
        .wait_for("who was the primary follows", async || {
            play.complete("it follows").await.iter().all(|member| {
                let said = play.ask(&member.node, "ROLE");
                said.starts_with("master") == (member.number == primary.number)
            })
        })
        .await;
    assert_eq!(play.ask(&primary.node, "EXISTS lonely").trim(), "0");
}
