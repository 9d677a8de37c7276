//! An agent dies at every named moment of a handover of its Redis, of three that somebody writes to: the rollout ends, one is the primary,
//! the others replicate from that one, also by their configurations, and every write that a replica had acknowledged is kept.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use bellwether_rt::fail::FailPoint;
use bellwether_testbed::Options;

use super::{small, under};
use crate::bed::Bed;
use crate::redis_client::RedisClient;

const MEMBERS: usize = 3;

const PORT: u16 = 6379;

/// Time between two writes: slow enough that a second without a primary is not thousands of failures.
const PACE: Duration = Duration::from_millis(5);

/// A Redis as the process of the entity, which starts from a configuration that it may rewrite.
const SECTIONS: &str = "[probe.db]\nredis = \"127.0.0.1:6379\"\ninterval = \"200ms\"\nhandover = true\n\n\
    [entity.web]\n\n[entity.web.process]\nargv = [\"/usr/bin/redis-server\", \"{home}/redis.conf\"]\n\n\
    [[entity.web.check]]\nname = \"open\"\ntcp = \"127.0.0.1:6379\"\ninterval = \"300ms\"\n";

const POLICY: &str = "entity set web --selector role=web --batch 3 --soak 1s --deadline 90s --unreachable 1 \
                      --store db --order followers-first --quorum true";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_a_handover_leaves_one_primary_that_all_replicate_from() {
    let mut bed = Bed::start(Options { sections: SECTIONS.to_owned(), ..small(0, 1, MEMBERS) }).await;
    let addresses = configure(&bed);
    bed.run(1, &["cluster", "create", "shop", "--filter", "role=web"]);
    bed.run(1, &POLICY.split_whitespace().collect::<Vec<_>>());
    bed.roll("v0").await;
    bed.ended("v0").await;
    all_replicate_from_one(&bed, &addresses, "the start").await;
    let writer = Writer::start(addresses.clone());
    for (number, point) in under("handover.").into_iter().enumerate() {
        let version = format!("v{}", number + 1);
        let primary = addresses.iter().position(|address| leads(address)).unwrap() + 1;
        let agent = format!("agent-{primary}");
        bed.obey(&format!("kill {agent}"));
        bed.arm(&agent, point, 0);
        bed.roll(&version).await;
        bed.killed(&agent);
        bed.obey(&format!("start {agent}"));
        bed.ended(&version).await;
        all_replicate_from_one(&bed, &addresses, point.name()).await;
    }
    // Nobody wants the change any more: what it began is ended all the same.
    let primary = addresses.iter().position(|address| leads(address)).unwrap() + 1;
    let agent = format!("agent-{primary}");
    bed.obey(&format!("kill {agent}"));
    bed.arm(&agent, FailPoint::HandoverFollowed, 0);
    bed.roll("unwanted").await;
    bed.killed(&agent);
    bed.run(1, &["rollout", "abort", "web"]);
    bed.obey(&format!("start {agent}"));
    all_replicate_from_one(&bed, &addresses, "an abort").await;
    a_power_loss_before_its_role_is_written(&mut bed, &addresses).await;
    let (acknowledged, failed) = writer.end();
    println!("{} writes, {failed} failed", acknowledged.len());
    assert!(!acknowledged.is_empty());
    let primary = addresses.iter().find(|address| leads(address)).unwrap();
    let mut client = RedisClient::connect(primary).unwrap();
    for number in acknowledged {
        assert_eq!(client.ask(&format!("GET a{number}")).unwrap(), number.to_string());
    }
    (1..=MEMBERS).for_each(|agent| bed.obey(&format!("stop agent-{agent}")));
}

/// A machine loses its power in the moment in which its Redis follows, and its configuration still says that it leads: it does not remain a
/// second primary, and the handover is not made once more.
async fn a_power_loss_before_its_role_is_written(bed: &mut Bed, addresses: &[String]) {
    let primary = || addresses.iter().enumerate().find(|(_, address)| leads(address)).unwrap();
    let (before, former) = primary();
    let agent = format!("agent-{}", before + 1);
    bed.obey(&format!("kill {agent}"));
    bed.arm(&agent, FailPoint::HandoverFollowed, 0);
    bed.roll("power").await;
    bed.killed(&agent);
    let (_, chosen) = primary();
    let mut client = RedisClient::connect(former).unwrap();
    drop(client.ask("SHUTDOWN NOSAVE"));
    bed.obey(&format!("start {agent}"));
    bed.ended("power").await;
    all_replicate_from_one(bed, addresses, "a power loss").await;
    assert!(leads(chosen), "it handed over once");
}

/// Writes the configuration of each Redis, the first of which is the primary; answers where they listen.
fn configure(bed: &Bed) -> Vec<String> {
    let address = |agent: usize| bed.inner.address(&format!("agent-{agent}")).unwrap();
    for agent in 1..=MEMBERS {
        let home = bed.inner.home(&format!("agent-{agent}"));
        let dir = home.join("redis");
        std::fs::create_dir_all(&dir).unwrap();
        let of = if agent == 1 { String::new() } else { format!("replicaof {} {PORT}\n", address(1)) };
        let lines = format!(
            "port {PORT}\nprotected-mode no\ndir {}\nsave \"\"\nappendonly yes\nrepl-diskless-sync-delay 0\n{of}",
            dir.display()
        );
        std::fs::write(home.join("redis.conf"), lines).unwrap();
    }
    (1..=MEMBERS).map(|agent| format!("{}:{PORT}", address(agent))).collect()
}

/// What a Redis says of its replication; nothing if it does not answer.
fn replication(address: &str) -> BTreeMap<String, String> {
    let said = RedisClient::connect(address).and_then(|mut client| client.ask("INFO replication"));
    let said = said.unwrap_or_default();
    let fields = said.lines().filter_map(|line| line.trim_end().split_once(':'));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn leads(address: &str) -> bool {
    replication(address).get("role").is_some_and(|role| role == "master")
}

/// What a Redis replicates from, if that is connected.
fn upstream(address: &str) -> Option<String> {
    let said = replication(address);
    let is_up = said.get("master_link_status").is_some_and(|status| status == "up");
    let (host, port) = said.get("master_host").zip(said.get("master_port"))?;
    is_up.then(|| format!("{host}:{port}"))
}

/// What a Redis replicates from once it starts anew.
fn configured(bed: &Bed, agent: usize) -> Option<String> {
    let file = bed.inner.home(&format!("agent-{agent}")).join("redis.conf");
    let text = std::fs::read_to_string(file).unwrap();
    let of = text.lines().find_map(|line| line.strip_prefix("replicaof "))?;
    Some(of.replace(' ', ":"))
}

/// Waits until one leads and the others replicate from that one, also after a restart, and nothing is said against the cluster.
async fn all_replicate_from_one(bed: &Bed, addresses: &[String], after: &str) {
    let mut seen = Vec::new();
    bed.wait_for(&format!("all replicate from one primary, after {after}"), async || {
        let each = addresses
            .iter()
            .zip(1..)
            .map(|(address, agent)| (leads(address), upstream(address), configured(bed, agent)));
        let now: Vec<_> = each.collect();
        if now != seen {
            eprintln!("after {after}: {now:?}");
            seen.clone_from(&now);
        }
        let mut leaders = addresses.iter().zip(&now).filter(|(_, (leads, ..))| *leads);
        let (Some((primary, _)), None) = (leaders.next(), leaders.next()) else { return false };
        now.iter().all(|(leads, upstream, configured)| match leads {
            true => configured.is_none(),
            false => upstream.as_ref() == Some(primary) && configured.as_ref() == Some(primary),
        })
    })
    .await;
    bed.wait_for("no condition is true of the cluster", async || {
        let view = bed.ask(async |client| client.cluster_view("default", "shop").await).await;
        view.is_some_and(|view| view.conditions.is_empty())
    })
    .await;
}

/// Writes one key after the other to whichever Redis takes it, until it is told to end.
struct Writer {
    end: Sender<()>,
    thread: std::thread::JoinHandle<(Vec<u64>, u64)>,
}

impl Writer {
    fn start(addresses: Vec<String>) -> Self {
        let (end, ended) = channel();
        Self { end, thread: std::thread::spawn(move || write(&addresses, &ended)) }
    }

    /// The numbers of the keys that a replica acknowledged, and how many writes failed.
    fn end(self) -> (Vec<u64>, u64) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

fn write(addresses: &[String], ended: &Receiver<()>) -> (Vec<u64>, u64) {
    let (mut acknowledged, mut failed) = (Vec::new(), 0);
    let mut addresses = addresses.iter().cycle();
    let mut client = None;
    for number in 0.. {
        let connected = match client.take() {
            Some(client) => Ok(client),
            None => RedisClient::connect(addresses.next().unwrap()),
        };
        let written = connected.and_then(|mut client| {
            let is_set = client.ask(&format!("SET a{number} {number}"))? == "+OK";
            let is_safe = is_set && client.ask("WAIT 1 2000")? != ":0";
            Ok((is_set, is_safe, client))
        });
        match written {
            Ok((true, is_safe, same)) => {
                acknowledged.extend(is_safe.then_some(number));
                client = Some(same);
            }
            Ok(_) | Err(_) => failed += 1,
        }
        if ended.recv_timeout(PACE) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    (acknowledged, failed)
}
