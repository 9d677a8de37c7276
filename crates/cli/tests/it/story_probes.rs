//! Probes of real data stores: three Redis, one of them the primary, and three members of an etcd. What each node's own agent sees is
//! an event of that node, told once; what a store thinks of another is not believed.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bellwether_api::v1::cluster::view::{Agreement, ClusterView};
use bellwether_api::v1::probes::StoreState;
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::story_workflows::ALLOWED;

pub(crate) const NODES: [&str; 3] = ["db-1", "db-2", "db-3"];

/// A program of this story, killed at its end.
pub(crate) struct Program(Child);

impl Program {
    /// Starts it, with its output in a file.
    pub(crate) fn of(mut command: Command, log: std::fs::File) -> Self {
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(crate) fn start(program: &str, args: &[String], log: PathBuf) -> Program {
    let mut command = Command::new(program);
    command.args(args);
    Program::of(command, std::fs::File::create(log).unwrap())
}

pub(crate) fn redis(place: &Setup, port: u16, of: Option<u16>) -> Program {
    let dir = place.path(&format!("redis-{port}"));
    std::fs::create_dir_all(&dir).unwrap();
    let mut args = vec!["--port".to_owned(), port.to_string(), "--bind".to_owned(), "127.0.0.1".to_owned()];
    args.extend(["--dir", &dir, "--save", "", "--repl-diskless-sync-delay", "0"].map(str::to_owned));
    args.extend(
        of.into_iter().flat_map(|of| ["--replicaof".to_owned(), "127.0.0.1".to_owned(), of.to_string()]),
    );
    start("redis-server", &args, PathBuf::from(format!("{dir}/log")))
}

fn ask_redis(port: u16, words: &[&str]) {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    writeln!(stream, "{}\r", words.join(" ")).unwrap();
    let mut answer = [0; 64];
    let count = stream.read(&mut answer).unwrap();
    assert!(text(&answer).starts_with("+OK\r\n"), "{words:?} {count}");
}

pub(crate) async fn view(place: &Setup, what: &str, holds: impl Fn(&ClusterView) -> bool) -> ClusterView {
    let client = place.client();
    let mut last = None;
    wait_for(what, async || {
        last = Some(client.cluster_view("default", "shop").await.unwrap());
        last.as_ref().is_some_and(&holds)
    })
    .await;
    last.unwrap()
}

/// What was told of a store that died: a question that was under way then is unanswered, before the next one is refused.
pub(crate) fn died(told: &[String]) {
    let is_seen_dying = told == ["store.unknown up > unknown", "store.down unknown > down"];
    assert!(is_seen_dying || told == ["store.down up > down"], "{told:?}");
}

/// The node of the only primary.
pub(crate) fn primary(view: &ClusterView) -> Option<&str> {
    let primaries = &view.stores.get("db")?.shards.get("0")?.primaries;
    primaries.iter().next().filter(|_| primaries.len() == 1).map(String::as_str)
}

pub(crate) fn replicas(view: &ClusterView) -> u64 {
    view.stores.get("db").and_then(|store| store.shards.get("0")).map_or(0, |shard| shard.replicas)
}

pub(crate) fn state(view: &ClusterView, node: &str) -> Option<StoreState> {
    view.nodes.iter().find(|of| of.node == node)?.stores.get("db").map(|store| store.state)
}

pub(crate) fn is_connected(view: &ClusterView, node: &str) -> Option<bool> {
    view.nodes.iter().find(|of| of.node == node)?.stores.get("db")?.facts.shards.get("0")?.streaming
}

/// Number of replicas that the store of a node itself lists.
fn listed(view: &ClusterView, node: &str) -> Option<usize> {
    let facts = &view.nodes.iter().find(|of| of.node == node)?.stores.get("db")?.facts;
    facts.members.as_ref().map(std::collections::BTreeMap::len)
}

/// What was told of a node's store since an event, as kind, before and after; and the number of the newest event.
pub(crate) async fn told(place: &Setup, node: &str, since: u64) -> Vec<String> {
    let events =
        place.client().events("default", Some(since), 1_000, std::time::Duration::ZERO).await.unwrap();
    let subject = format!("store/{node}/db");
    let of = events.items.into_iter().filter(|event| event.subject == subject);
    of.map(|event| {
        let part = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        format!("{} {} > {}", event.kind, part(event.before), part(event.after))
    })
    .collect()
}

/// What was told of a cluster since an event, once it is this: as kind, before and after, in order.
pub(crate) async fn decided(place: &Setup, since: u64, expected: &[&str]) {
    let mut told = Vec::new();
    let is_all = async || {
        let client = place.client();
        let events = client.events("default", Some(since), 1_000, std::time::Duration::ZERO).await.unwrap();
        let of = events
            .items
            .into_iter()
            .filter(|event| event.subject == "cluster/shop" && event.kind != "cluster.changed");
        let part = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        told = of
            .map(|event| format!("{} {} > {}", event.kind, part(event.before), part(event.after)))
            .collect();
        told.len() >= expected.len()
    };
    wait_for("what is decided on the cluster", is_all).await;
    assert_eq!(told, expected);
}

/// Of what was told, the changes of a store's state.
pub(crate) fn states(told: &[String]) -> Vec<&str> {
    let kinds = ["store.up ", "store.down ", "store.unknown ", "store.removed "];
    let is_state = |event: &&str| kinds.iter().any(|kind| event.starts_with(kind));
    told.iter().map(String::as_str).filter(is_state).collect()
}

pub(crate) async fn newest(place: &Setup) -> u64 {
    let events = place.client().events("default", Some(0), 1_000, std::time::Duration::ZERO).await.unwrap();
    events.items.last().map_or(0, |event| event.seq)
}

/// Three Redis with their agents: the first is the primary.
pub(crate) async fn three_redis() -> (Setup, [u16; 3], Vec<Program>) {
    let mut place = Setup::new().await;
    let ports = free_ports::<3>();
    let of = [None, Some(ports[0]), Some(ports[0])];
    let stores: Vec<Program> = ports.iter().zip(of).map(|(port, of)| redis(&place, *port, of)).collect();
    for (node, port) in NODES.iter().zip(ports) {
        let probe = format!(
            "{ALLOWED}\n[probe.db]\nredis = \"127.0.0.1:{port}\"\ninterval = \"200ms\"\ntimeout = \"1s\"\n"
        );
        place.start_agent(node, &probe);
    }
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    let whole = |view: &ClusterView| {
        primary(view) == Some("db-1")
            && replicas(view) == 2
            && ["db-2", "db-3"].iter().all(|node| is_connected(view, node) == Some(true))
            && listed(view, "db-1") == Some(2)
    };
    view(&place, "the primary and its replicas", whole).await;
    (place, ports, stores)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_dies_a_replica_is_promoted_and_each_change_is_told_once_by_its_own_node() {
    let (place, ports, mut stores) = three_redis().await;
    let first = view(&place, "the primary", |view| primary(view) == Some("db-1")).await;
    assert_eq!(first.stores["db"].problems, [""; 0]);
    let shown = done(&place, &["cluster", "view", "shop"]);
    assert!(shown.contains("shard 0: primary db-1, 2 replicas"), "{shown}");
    assert!(done(&place, &["node", "get", "db-1"]).contains("store     db up since"));

    // The primary dies: its own agent tells so; the replicas tell of their own replication, and of nothing else.
    let since = newest(&place).await;
    stores[0].kill();
    let cut = |view: &ClusterView| {
        state(view, "db-1") == Some(StoreState::Down)
            && ["db-2", "db-3"].iter().all(|node| is_connected(view, node) == Some(false))
    };
    let headless = view(&place, "the death of the primary", cut).await;
    assert_eq!(headless.stores["db"].problems, ["shard 0 has no primary"]);
    assert!(done(&place, &["why", "cluster/shop"]).contains("data stores db: shard 0 has no primary"));
    let from = format!("shard=0 from=127.0.0.1:{}", ports[0]);
    died(&told(&place, "db-1", since).await);
    let lost = format!("shard.replication_changed {from} connected=true > {from} connected=false");
    assert_eq!(told(&place, "db-2", since).await, [lost.as_str()]);
    assert_eq!(told(&place, "db-3", since).await, [lost.as_str()]);

    let raised = ["cluster.condition_raised - > store_down", "cluster.condition_raised - > no_primary"];
    decided(&place, since, &raised).await;

    // One is promoted, the other follows it, and the former primary comes back as a replica.
    let since = newest(&place).await;
    ask_redis(ports[1], &["REPLICAOF", "NO", "ONE"]);
    let promoted = |view: &ClusterView| primary(view) == Some("db-2");
    view(&place, "the promotion", promoted).await;
    ask_redis(ports[2], &["REPLICAOF", "127.0.0.1", &ports[1].to_string()]);
    // Only then the former primary: one that is up, and of which a report of before is known still, would have a replica of its own.
    let follows = |view: &ClusterView| is_connected(view, "db-3") == Some(true);
    view(&place, "the replica of the new primary", follows).await;
    stores[0] = redis(&place, ports[0], Some(ports[1]));
    let healed = |view: &ClusterView| {
        primary(view) == Some("db-2")
            && replicas(view) == 2
            && ["db-1", "db-3"].iter().all(|node| is_connected(view, node) == Some(true))
    };
    let healed = view(&place, "all three", healed).await;
    assert_eq!(healed.stores["db"].problems, [""; 0]);
    let two = told(&place, "db-2", since).await;
    assert_eq!(
        two.first().map(String::as_str),
        Some("shard.role_changed shard=0 role=replica > shard=0 role=primary")
    );
    assert_eq!(states(&two), [""; 0], "{two:?}");
    let one = told(&place, "db-1", since).await;
    assert_eq!(one.first().map(String::as_str), Some("store.up down > up"), "{one:?}");
    assert_eq!(states(&one), ["store.up down > up"], "{one:?}");
    let healed = [
        "cluster.primary_changed db-1 > db-2",
        "cluster.condition_cleared no_primary > -",
        "cluster.condition_cleared store_down > -",
    ];
    decided(&place, since, &healed).await;
    looks_back(&place, since).await;
}

/// The cluster after an event, when its primary was dead and nobody had taken its place.
async fn looks_back(place: &Setup, event: u64) {
    let was = place.client().past_cluster_view("default", "shop", event).await.unwrap();
    let store = |node: &str| was.nodes.get(node).and_then(|stores| stores.get("db")).unwrap();
    let states = NODES.map(|node| store(node).state.as_str());
    assert_eq!(states, ["down", "up", "up"]);
    assert_eq!(store("db-1").roles.get("0").map(String::as_str), Some("primary"));
    let kinds: Vec<&str> = was.conditions.iter().map(|condition| condition.kind.as_str()).collect();
    assert_eq!(kinds, ["no_primary", "store_down"]);
    let shown = done(place, &["cluster", "view", "shop", "--at", &event.to_string()]);
    for line in ["! shard 0 has no primary (no_primary)", "db-1  ✗ down", "(not connected)"] {
        assert!(shown.contains(line), "{line:?} in {shown}");
    }
    let failed = place.run(&["cluster", "view", "shop", "--at", "1000000"]);
    assert!(text(&failed.stderr).contains("it is known at events"), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_decided_on_a_disabled_cluster_and_what_happened_meanwhile_is_seen_later() {
    let (place, ports, mut stores) = three_redis().await;
    done(&place, &["cluster", "set", "shop", "--mode", "disabled"]);
    let since = newest(&place).await;
    stores[2].kill();
    view(&place, "the death of a replica", |view| state(view, "db-3") == Some(StoreState::Down)).await;
    assert!(done(&place, &["cluster", "view", "shop"]).contains("disabled: no events, nothing is started"));
    stores[2] = redis(&place, ports[2], Some(ports[0]));
    view(&place, "the replica", |view| state(view, "db-3") == Some(StoreState::Up)).await;
    stores[1].kill();
    view(&place, "the death of another", |view| state(view, "db-2") == Some(StoreState::Down)).await;
    done(&place, &["cluster", "set", "shop", "--mode", "observe"]);
    decided(&place, since, &["cluster.condition_raised - > store_down"]).await;
    let seen = view(&place, "the condition", |view| !view.conditions.is_empty()).await;
    assert_eq!(seen.conditions[0].reason, "down on db-2", "db-3 came and went unseen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_and_one_whose_agent_is_silent_are_unknown() {
    let (mut place, _, stores) = three_redis().await;
    // A store that hangs is unknown, with the reason; when it goes on, it is up.
    let since = newest(&place).await;
    stores[2].signal(Signal::STOP);
    view(&place, "the store that hangs", |view| state(view, "db-3") == Some(StoreState::Unknown)).await;
    let shown = done(&place, &["cluster", "view", "shop"]);
    assert!(shown.contains("no answer within 1s"), "{shown}");
    let why = done(&place, &["why", "db-3"]);
    assert!(why.contains("data store db has been unknown for"), "{why}");
    stores[2].signal(Signal::CONT);
    view(&place, "the store that goes on", |view| state(view, "db-3") == Some(StoreState::Up)).await;
    let three = told(&place, "db-3", since).await;
    assert_eq!(states(&three), ["store.unknown up > unknown", "store.up unknown > up"], "{three:?}");

    // The agent of the primary dies and the store lives: nobody says that it is down.
    let since = newest(&place).await;
    place.kill_agent("db-1");
    let unseen =
        view(&place, "the silent agent", |view| state(view, "db-1") == Some(StoreState::Unknown)).await;
    assert_eq!(unseen.stores["db"].problems, ["no primary of shard 0 is known; it was last db-1"]);
    assert_eq!(is_connected(&unseen, "db-2"), Some(true), "a replica still streams from it");
    place.resume_agent("db-1");
    view(&place, "the primary again", |view| primary(view) == Some("db-1")).await;
    assert_eq!(
        states(&told(&place, "db-1", since).await),
        ["store.unknown up > unknown", "store.up unknown > up"]
    );

    // An agent that is stopped and goes on, as behind a cable that was cut, is the same one: it tells again what it told before.
    let since = newest(&place).await;
    kill_process(place.agent_pid("db-1"), Signal::STOP).unwrap();
    view(&place, "the stopped agent", |view| state(view, "db-1") == Some(StoreState::Unknown)).await;
    kill_process(place.agent_pid("db-1"), Signal::CONT).unwrap();
    view(&place, "the primary once more", |view| primary(view) == Some("db-1")).await;
    let events = told(&place, "db-1", since).await;
    assert_eq!(states(&events), ["store.unknown up > unknown", "store.up unknown > up"]);

    // A probe that is no longer configured is removed, also from a node whose agent probes nothing any more.
    let since = newest(&place).await;
    place.stop_agent("db-3");
    let config = place.path("db-3/agent.toml");
    let whole = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, whole.split("[probe.db]").next().unwrap()).unwrap();
    place.resume_agent("db-3");
    let gone = view(&place, "the probe that is gone", |view| state(view, "db-3").is_none()).await;
    assert_eq!(gone.stores["db"].problems, ["no probe of this name on db-3"]);
    assert_eq!(told(&place, "db-3", since).await, ["store.removed up > -"]);

    // A machine that is installed anew under the name, and probes nothing, has no stores of the one before.
    place.kill_agent("db-2");
    view(&place, "the silent machine", |view| state(view, "db-2") == Some(StoreState::Unknown)).await;
    done(&place, &["node", "decommission", "db-2", "--yes"]);
    std::fs::remove_dir_all(place.path("db-2")).unwrap();
    place.start_agent("db-2", "");
    let is_new = |view: &ClusterView| view.nodes.iter().any(|of| of.node == "db-2" && of.stores.is_empty());
    view(&place, "the machine without stores", is_new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_an_etcd_agree_until_one_dies_and_another_leads() {
    let mut place = Setup::new().await;
    let (clients, peers) = (free_ports::<3>(), free_ports::<3>());
    let cluster: Vec<String> =
        NODES.iter().zip(peers).map(|(name, port)| format!("{name}=http://127.0.0.1:{port}")).collect();
    let mut stores = Vec::new();
    for ((name, client), peer) in NODES.iter().zip(clients).zip(peers) {
        let (at, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let dir = place.path(&format!("etcd-{name}"));
        let flags = [
            ["--name", name],
            ["--data-dir", &dir],
            ["--listen-client-urls", &at],
            ["--advertise-client-urls", &at],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &cluster.join(",")],
        ];
        let args: Vec<String> = flags.into_iter().flatten().map(str::to_owned).collect();
        stores.push(start("etcd", &args, PathBuf::from(place.path(&format!("etcd-{name}.log")))));
        let probe = format!("[probe.db]\netcd = \"{at}\"\ninterval = \"200ms\"\n");
        place.start_agent(name, &probe);
    }
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    let whole = |view: &ClusterView| primary(view).is_some() && replicas(view) == 2;
    let first = view(&place, "the leader and its followers", whole).await;
    let db = &first.stores["db"];
    assert_eq!((db.agreement, db.cluster_ids.len(), db.versions.len()), (Agreement::Agreed, 1, 1));
    assert_eq!(db.problems, [""; 0]);
    let leader = primary(&first).unwrap().to_owned();

    let since = newest(&place).await;
    let index = NODES.iter().position(|name| *name == leader).unwrap();
    stores[index].kill();
    let other = |view: &ClusterView| {
        state(view, &leader) == Some(StoreState::Down) && primary(view).is_some_and(|node| node != leader)
    };
    let after = view(&place, "another leader", other).await;
    died(&told(&place, &leader, since).await);
    let next = primary(&after).unwrap();
    let told = told(&place, next, since).await;
    let last = told.last().map(String::as_str).unwrap_or_default();
    assert!(last.starts_with("shard.role_changed ") && last.ends_with("> shard=0 role=primary"), "{told:?}");
    assert_eq!(states(&told), [""; 0], "{told:?}");

    // Without a quorum the last one has no leader: its process is up, and that is all.
    let next = next.to_owned();
    let index = NODES.iter().position(|name| *name == next).unwrap();
    stores[index].kill();
    let alone = NODES.iter().find(|name| **name != leader && **name != next).unwrap();
    let named = format!("shard 0 has no primary; up without a role: {alone}");
    let has_none = |view: &ClusterView| view.conditions.iter().any(|condition| condition.reason == named);
    let headless = view(&place, "the member without a leader", has_none).await;
    assert_eq!(state(&headless, alone), Some(StoreState::Up));
    let shown = done(&place, &["cluster", "view", "shop"]);
    assert!(shown.contains("it has no leader, and serves no writes"), "{shown}");
}
