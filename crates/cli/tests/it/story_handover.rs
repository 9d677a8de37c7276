//! Data stores that hand over their leadership before they are changed: an etcd of three, and a Redis with two replicas, while somebody
//! writes. A change whose store has nobody to hand over to waits, and says so.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use bellwether_api::v1::cluster::view::ClusterView;

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::redis_client::RedisClient;
use crate::story_probes::{NODES, Program, newest, primary, replicas, start, view};
use crate::story_roles::{Writer, order, three_members, whole};

/// Time between two writes: slow enough that a second without a primary is not thousands of failures.
const PACE: Duration = Duration::from_millis(5);

const POLICY: &str =
    "entity set db --selector role=web --batch 3 --soak 1s --deadline 90s --unreachable 1 --store db";

pub(crate) fn set_policy(place: &Setup, more: &str) {
    let whole = format!("{POLICY} {more}");
    done(place, &whole.split_whitespace().collect::<Vec<_>>());
}

pub(crate) fn roll(place: &Setup, version: &str) {
    done(place, &["rollout", "start", "db", version, "-w", "--timeout", "120s"]);
}

/// The lines of an agent's log that have this text.
fn logged(place: &Setup, node: &str, what: &str) -> Vec<usize> {
    let log = std::fs::read_to_string(place.log(node)).unwrap();
    log.lines().enumerate().filter(|(_, line)| line.contains(what)).map(|(number, _)| number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_of_an_etcd_moves_its_leadership_before_it_is_stopped() {
    let (place, endpoints) = three_members("handover = true").await;
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    set_policy(&place, "--order followers-first --quorum true");
    roll(&place, "v1");
    let first = view(&place, "the leader and its followers", whole).await;
    let leader = primary(&first).unwrap().to_owned();
    assert!(NODES.iter().all(|node| logged(&place, node, "handed over").is_empty()), "a start needs none");

    let (since, writer) = (newest(&place).await, Writer::start(endpoints));
    roll(&place, "v2");
    let (written, failed) = writer.end();
    let succeeded = order(&place, since).await;
    assert_eq!(succeeded.last(), Some(&leader), "the leader is last: {succeeded:?}");
    let handed = logged(&place, &leader, "handed over the leadership");
    let begun = logged(&place, &leader, "step starting");
    assert_eq!(handed.len(), 1, "once, by the leader");
    // The steps of v1, then the handover, then those of v2.
    assert!(begun.iter().any(|step| *step < handed[0]) && begun.iter().any(|step| *step > handed[0]));
    for other in NODES.iter().filter(|node| **node != leader) {
        assert_eq!(logged(&place, other, "handed over"), [0; 0], "{other} did not lead");
    }
    let upgraded = view(&place, "the members together", whole).await;
    assert_ne!(primary(&upgraded), Some(&*leader));
    println!("etcd: {written} writes, {failed} failed with handover");
    assert!(written > 0);
}

fn connect(port: u16) -> std::io::Result<RedisClient> {
    RedisClient::connect(("127.0.0.1", port))
}

/// What a Redis says of its replication; nothing if it does not answer.
fn replication(port: u16) -> String {
    connect(port).and_then(|mut client| client.ask("INFO replication")).unwrap_or_default()
}

/// Writes one key after the other to whichever of three Redis takes it, until it is told to end.
struct KeyWriter {
    end: Sender<()>,
    thread: std::thread::JoinHandle<(Vec<u64>, u64)>,
}

impl KeyWriter {
    /// Writes keys that begin with this name.
    fn start(ports: [u16; 3], name: &'static str) -> Self {
        let (end, ended) = channel();
        Self { end, thread: std::thread::spawn(move || write(ports, name, &ended)) }
    }

    /// The numbers of the keys that were acknowledged, and how many writes failed.
    fn end(self) -> (Vec<u64>, u64) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

fn write(ports: [u16; 3], name: &str, ended: &Receiver<()>) -> (Vec<u64>, u64) {
    let (mut acknowledged, mut failed) = (Vec::new(), 0);
    let mut ports = ports.into_iter().cycle();
    let mut client = None;
    for number in 0.. {
        let set = format!("SET {name}{number} {number}");
        let answer = match client.take() {
            Some(client) => Ok(client),
            None => connect(ports.next().unwrap()),
        };
        match answer.and_then(|mut client| Ok((client.ask(&set)?, client))) {
            Ok((answer, same)) if answer == "+OK" => {
                acknowledged.push(number);
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

/// A directory of a Redis, with the configuration that it starts from and may rewrite.
fn configure(place: &Setup, name: &str, port: u16, of: Option<u16>) -> String {
    let dir = place.path(&format!("redis-{name}"));
    std::fs::create_dir_all(&dir).unwrap();
    let follows = of.map_or_else(String::new, |of| format!("replicaof 127.0.0.1 {of}\n"));
    let lines = format!(
        "port {port}\nbind 127.0.0.1\ndir {dir}\nsave \"\"\nappendonly yes\nrepl-diskless-sync-delay 0\n{follows}"
    );
    std::fs::write(format!("{dir}/redis.conf"), lines).unwrap();
    format!("{dir}/redis.conf")
}

/// The agent's sections of a Redis as its process. One build of Redis is packaged, so that all versions are the same program under other
/// paths: what is changed is the process.
fn redis_member(place: &Setup, port: u16, args: &[&str]) -> String {
    for version in ["v1", "v2", "v3"] {
        let dir = place.path(version);
        if std::fs::create_dir(&dir).is_ok() {
            std::os::unix::fs::symlink("/usr/bin/redis-server", format!("{dir}/redis-server")).unwrap();
        }
    }
    let (programs, args) = (place.path(""), args.join("\", \""));
    format!(
        "[probe.db]\nredis = \"127.0.0.1:{port}\"\ninterval = \"200ms\"\nhandover = true\n\n\
         [entity.db]\n\n[entity.db.process]\nargv = [\"{programs}/{{version}}/redis-server\", \"{args}\"]\n\n\
         [[entity.db.check]]\nname = \"open\"\ntcp = \"127.0.0.1:{port}\"\ninterval = \"300ms\"\n"
    )
}

pub(crate) fn together(view: &ClusterView) -> bool {
    let streams = |of: &bellwether_api::v1::cluster::view::NodeStores| {
        of.stores
            .get("db")
            .and_then(|store| store.facts.shards.get("0"))
            .is_some_and(|shard| shard.streaming != Some(false))
    };
    primary(view).is_some() && replicas(view) == 2 && view.nodes.iter().all(streams)
}

/// Three agents, each with a Redis as its process; the first is the primary, whose agent has these lines in its entity too.
pub(crate) async fn three_redis_members(first: &str) -> (Setup, [u16; 3]) {
    let (mut place, ports) = (Setup::new().await, free_ports::<3>());
    for (index, (node, port)) in NODES.iter().zip(ports).enumerate() {
        let config = configure(&place, node, port, (index > 0).then_some(ports[0]));
        let sections = redis_member(&place, port, &[&config]);
        let more = if index == 0 { first } else { "" };
        place.start_agent(node, &sections.replace("[entity.db]\n", &format!("[entity.db]\n{more}\n")));
    }
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    (place, ports)
}

/// What each Redis says of its replication: exactly one is the primary.
fn assert_one_primary(ports: [u16; 3]) {
    let said: Vec<String> = ports.into_iter().map(replication).collect();
    assert_eq!(said.iter().filter(|said| said.contains("role:master")).count(), 1, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_fails_over_before_its_primary_is_changed_and_keeps_every_acknowledged_write() {
    let (place, ports) = three_redis_members("").await;
    set_policy(&place, "--order followers-first --quorum true");
    roll(&place, "v1");
    let first = view(&place, "the primary and its replicas", together).await;
    assert_eq!(primary(&first), Some("db-1"));

    let (since, writer) = (newest(&place).await, KeyWriter::start(ports, "a"));
    roll(&place, "v2");
    let (handed_over, failed) = writer.end();
    assert_eq!(order(&place, since).await.last().map(String::as_str), Some("db-1"), "the primary is last");
    assert_eq!(logged(&place, "db-1", "handed over the leadership").len(), 1);
    let moved = view(&place, "another primary", together).await;
    let next = primary(&moved).unwrap().to_owned();
    assert_ne!(next, "db-1");

    // Side by side with the order by name, in which the primary is restarted under its writers.
    done(&place, &["entity", "set", "db", "--unset", "order,quorum,store", "--batch", "1"]);
    let writer = KeyWriter::start(ports, "b");
    roll(&place, "v3");
    let (by_name, failed_by_name) = writer.end();
    let last = view(&place, "all three at the end", together).await;
    assert_eq!(primary(&last), Some(&*next), "nobody handed over");
    println!(
        "redis: {} writes, {failed} failed with handover; {} writes, {failed_by_name} failed by name",
        handed_over.len(),
        by_name.len()
    );
    assert!(!handed_over.is_empty() && !by_name.is_empty());

    assert_one_primary(ports);
    let index = NODES.iter().position(|node| *node == next).unwrap();
    let mut client = connect(ports[index]).unwrap();
    for (name, written) in [("a", handed_over), ("b", by_name)] {
        for number in written {
            assert_eq!(client.ask(&format!("GET {name}{number}")).unwrap(), number.to_string());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_hands_over_before_it_is_rolled_back() {
    // The last target, which was the primary, finds the version bad.
    let bad = r#"validate = ["sh", "-c", "test $BELLWETHER_VERSION != v2"]"#;
    let (place, ports) = three_redis_members(bad).await;
    set_policy(&place, "--order followers-first --quorum true --rollback 1");
    roll(&place, "v1");
    view(&place, "the primary and its replicas", together).await;
    let writer = KeyWriter::start(ports, "a");
    let ended = place.run(&["rollout", "start", "db", "v2", "-w", "--timeout", "120s"]);
    let (written, failed) = writer.end();
    println!("redis: {} writes, {failed} failed with a rollback", written.len());
    let said = text(&ended.stdout);
    assert!(!ended.status.success() && said.contains("rolled back"), "{said}{}", text(&ended.stderr));
    let handed = |node: &&&str| !logged(&place, node, "handed over the leadership").is_empty();
    assert!(handed(&&NODES[0]), "before the update");
    assert!(NODES.iter().skip(1).any(|node| handed(&node)), "before the rollback of who took over");
    let last = view(&place, "all three at the end", together).await;
    assert_one_primary(ports);
    let index = NODES.iter().position(|node| Some(*node) == primary(&last)).unwrap();
    let mut client = connect(ports[index]).unwrap();
    for number in written {
        assert_eq!(client.ask(&format!("GET a{number}")).unwrap(), number.to_string());
    }
}

/// Waits until the target says that it waits with this reason.
async fn waits(place: &Setup, node: &str, reason: &str) {
    let (client, target) = (place.client(), format!("target/db/{node}"));
    wait_for(reason, async || {
        client.why("default", &target).await.unwrap().lines.join("\n").contains(reason)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_with_nobody_to_hand_over_to_waits_and_says_so_until_there_is_somebody() {
    const NOBODY: &str = "data store db is the primary and cannot hand over: it has no follower";
    let (mut place, [port, other]) = (Setup::new().await, free_ports::<2>());
    let config = configure(&place, "db-1", port, None);
    let sections = redis_member(&place, port, &[&config]);
    place.start_agent("db-1", &sections);
    set_policy(&place, "");
    roll(&place, "v1");
    done(&place, &["rollout", "start", "db", "v2"]);
    waits(&place, "db-1", NOBODY).await;
    let shown = text(&place.run(&["rollout", "get", "db"]).stdout);
    let words: Vec<&str> = shown.split(['\n', '│', ' ']).filter(|word| !word.is_empty()).collect();
    assert!(words.join(" ").contains("cannot hand over: it has no follower"), "{shown}");

    // A person says otherwise.
    done(&place, &["entity", "set", "db", "--unset", "store"]);
    wait_for("the change", async || replication(port).contains("role:master") && runs(&place, "v2").await)
        .await;

    // The next one waits again, and its agent dies. What an agent leaves that dies in the middle: the replica has taken over, and no file
    // says so yet. The next agent starts no second primary.
    set_policy(&place, "");
    done(&place, &["rollout", "start", "db", "v3"]);
    waits(&place, "db-1", NOBODY).await;
    place.kill_agent("db-1");
    assert!(replication(port).contains("role:master"), "it goes on");
    let replica = configure(&place, "other", other, Some(port));
    let _other: Program = start("redis-server", &[replica], PathBuf::from(place.path("other.log")));
    wait_for("the replica", async || replication(port).contains("state=online")).await;
    assert_eq!(connect(port).unwrap().ask("FAILOVER TIMEOUT 30000").unwrap(), "+OK");
    wait_for("the failover", async || {
        replication(port).contains("role:slave")
            && replication(port).contains("master_failover_state:no-failover")
    })
    .await;
    assert!(!std::fs::read_to_string(&config).unwrap().contains("replicaof"), "nobody has rewritten it");
    place.resume_agent("db-1");
    wait_for("the change", async || runs(&place, "v3").await).await;
    wait_for("the replica again", async || replication(port).contains("master_link_status:up")).await;
    assert!(replication(other).contains("role:master"));
    assert!(
        !std::fs::read_to_string(replica_file(&place)).unwrap().contains("replicaof"),
        "nor is it one later"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_would_forget_its_role_or_that_a_sentinel_watches_is_left_to_people() {
    let mut place = Setup::new().await;
    let [watched, bare, one, two, sentinel] = free_ports::<5>();
    let config = configure(&place, "db-1", watched, None);
    let sections = redis_member(&place, watched, &[&config]);
    place.start_agent("db-1", &sections);
    let dir = place.path("db-2");
    let port = bare.to_string();
    let args = [
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--dir",
        &dir,
        "--save",
        "",
        "--repl-diskless-sync-delay",
        "0",
    ];
    let sections = redis_member(&place, bare, &args);
    place.start_agent("db-2", &sections);
    set_policy(&place, "");
    roll(&place, "v1");
    let replica = |name: &str, port: u16, of: u16| {
        let config = configure(&place, name, port, Some(of));
        start("redis-server", &[config], PathBuf::from(place.path(&format!("{name}.log"))))
    };
    let _replicas = [replica("one", one, watched), replica("two", two, bare)];
    let file = place.path("sentinel.conf");
    std::fs::write(
        &file,
        format!("port {sentinel}\nbind 127.0.0.1\nsentinel monitor shop 127.0.0.1 {watched} 1\n"),
    )
    .unwrap();
    let args = [file, "--sentinel".to_owned()];
    let _sentinel = start("redis-server", &args, PathBuf::from(place.path("sentinel.log")));
    let masters = || connect(sentinel).and_then(|mut client| client.ask("INFO sentinel")).unwrap_or_default();
    wait_for("the Sentinel knows the replica", async || {
        masters().contains("status=ok,address=") && masters().contains("slaves=1")
    })
    .await;
    wait_for("the replicas", async || {
        [watched, bare].iter().all(|port| replication(*port).contains("state=online"))
    })
    .await;

    let since = newest(&place).await;
    done(&place, &["rollout", "start", "db", "v2"]);
    waits(&place, "db-1", "cannot hand over: a Sentinel watches it: hand over by SENTINEL FAILOVER").await;
    waits(&place, "db-2", "running without a config file").await;
    assert!(
        [watched, bare].iter().all(|port| replication(*port).contains("role:master")),
        "nothing was moved"
    );

    // The Sentinel hands over; the change of what is a replica now goes on.
    assert_eq!(connect(sentinel).unwrap().ask("SENTINEL FAILOVER shop").unwrap(), "+OK");
    wait_for("the change of db-1", async || order(&place, since).await == ["db-1"]).await;
    wait_for("the replica again", async || replication(watched).contains("role:slave")).await;
    assert!(replication(one).contains("role:master"));
    aborts_before_it_begins(&place, "db-2").await;
}

/// An abort has a target that cannot begin stay on what it runs, also once it could begin.
async fn aborts_before_it_begins(place: &Setup, node: &str) {
    let begun = logged(place, node, "step starting");
    done(place, &["rollout", "abort", "db", "--reason", "not tonight"]);
    let target = format!("target/db/{node}");
    wait_for("the target stays on what it runs", async || {
        let why = text(&place.run(&["why", &target]).stdout).to_owned();
        why.contains("on v1") && !why.contains("blocked")
    })
    .await;
    assert_eq!(logged(place, node, "step starting"), begun, "nothing was begun");
    assert!(done(place, &["events"]).contains("target.withdrawn"));
}

fn replica_file(place: &Setup) -> String {
    format!("{}/redis.conf", place.path("redis-other"))
}

async fn runs(place: &Setup, version: &str) -> bool {
    let view = place.client().current_rollout("default", "db", None, Duration::ZERO).await.unwrap();
    view.progress.last_known_good.as_deref() == Some(version)
}
