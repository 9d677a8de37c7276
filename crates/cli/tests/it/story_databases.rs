//! Probes of a PostgreSQL with a standby and of a ZooKeeper of three, both as Debian packages them.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bellwether_api::v1::probes::StoreState;

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::story_probes::{
    NODES, Program, died, is_connected, newest, primary, replicas, start, state, states, told, view,
};

/// The user that PostgreSQL runs as, which may not be root.
const USER: &str = "postgres";

/// PostgreSQL's programs, of the newest version that is installed.
fn programs() -> PathBuf {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten().map(|entry| entry.path().join("bin"));
    versions.filter(|path| path.join("postgres").exists()).max().unwrap()
}

/// A command that runs as that user if this is root.
fn as_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
    command
}

fn run(mut command: Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
}

/// A directory that the user may use.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        let id = |flag: &str| {
            let output = Command::new("id").args([flag, USER]).output().unwrap();
            text(&output.stdout).trim().parse().unwrap()
        };
        chown(dir.path(), Some(id("-u")), Some(id("-g"))).unwrap();
    }
    dir
}

fn postgres(data: &Path, port: u16) -> Program {
    let mut command = as_user(&programs().join("postgres"));
    let socket = data.parent().unwrap();
    command.arg("-D").arg(data).args(["-p", &port.to_string(), "-h", "127.0.0.1"]).arg("-k").arg(socket);
    Program::of(command, std::fs::File::create(socket.join(format!("log-{port}"))).unwrap())
}

async fn answers(port: u16) {
    wait_for("PostgreSQL answers", async || {
        let mut ready = Command::new(programs().join("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status().unwrap().success()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_is_promoted_beside_a_live_primary_is_a_conflict() {
    let (dir, ports) = (directory(), free_ports::<2>());
    let data = [dir.path().join("one"), dir.path().join("two")];
    let mut initdb = as_user(&programs().join("initdb"));
    initdb.arg("-D").arg(&data[0]).args(["--auth", "trust", "-U", USER, "--no-sync"]);
    run(initdb);
    let mut first = postgres(&data[0], ports[0]);
    answers(ports[0]).await;
    let mut copy = as_user(&programs().join("pg_basebackup"));
    copy.args([
        "-h",
        "127.0.0.1",
        "-p",
        &ports[0].to_string(),
        "-U",
        USER,
        "-R",
        "--no-sync",
        "--checkpoint=fast",
        "-D",
    ]);
    copy.arg(&data[1]);
    run(copy);
    let _second = postgres(&data[1], ports[1]);
    let mut place = Setup::new().await;
    for (node, port) in NODES.iter().zip(ports) {
        let probe = format!("[probe.db]\npostgresql = \"127.0.0.1:{port}\"\ninterval = \"200ms\"\n");
        place.start_agent(node, &probe);
    }
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    let streams = |view: &_| {
        primary(view) == Some("db-1") && replicas(view) == 1 && is_connected(view, "db-2") == Some(true)
    };
    let both = view(&place, "the primary and its standby", streams).await;
    let db = &both.stores["db"];
    assert_eq!((db.cluster_ids.len(), db.versions.len(), db.problems.len()), (1, 1, 0), "{db:?}");
    let lagging = |view: &bellwether_api::v1::cluster::view::ClusterView| {
        view.stores["db"].shards["0"].lags.get("db-2").is_some_and(|lag| lag.unit == "bytes")
    };
    view(&place, "how far the standby is behind", lagging).await;

    let since = newest(&place).await;
    let mut promote = as_user(&programs().join("pg_ctl"));
    promote.arg("promote").arg("-D").arg(&data[1]);
    run(promote);
    // The first one takes the standby for a member until it has noticed that nobody replicates.
    let two = |view: &bellwether_api::v1::cluster::view::ClusterView| {
        view.stores["db"].problems == ["shard 0 has 2 primaries: db-1, db-2"]
    };
    let conflict = view(&place, "two primaries", two).await;
    assert_eq!(conflict.stores["db"].cluster_ids.len(), 1, "they say that they are the same");
    assert_eq!(conflict.stores["db"].shards["0"].lags.len(), 0);
    let events = told(&place, "db-2", since).await;
    let changed = "shard.role_changed shard=0 role=replica > shard=0 role=primary";
    assert!(events.iter().any(|event| event == changed), "{events:?}");
    assert_eq!(states(&told(&place, "db-1", since).await), [""; 0]);

    let since = newest(&place).await;
    first.kill();
    view(&place, "the death of the first", |view| state(view, "db-1") == Some(StoreState::Down)).await;
    let seen = told(&place, "db-1", since).await;
    died(&states(&seen).into_iter().map(str::to_owned).collect::<Vec<_>>());
}

/// A member of a ZooKeeper of three.
fn zookeeper(
    place: &Setup,
    index: usize,
    (clients, peers, votes): (&[u16; 3], &[u16; 3], &[u16; 3]),
) -> Program {
    let dir = PathBuf::from(place.path(&format!("zookeeper-{index}")));
    std::fs::create_dir_all(dir.join("data")).unwrap();
    std::fs::write(dir.join("data/myid"), index.to_string()).unwrap();
    let members = peers.iter().zip(votes).enumerate();
    let members = members.map(|(id, (peer, vote))| format!("server.{id}=127.0.0.1:{peer}:{vote}\n"));
    let config = format!(
        "tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n\
         admin.enableServer=false\n{}",
        dir.join("data").display(),
        clients.get(index).unwrap(),
        members.collect::<String>()
    );
    std::fs::write(dir.join("zoo.cfg"), config).unwrap();
    let jar = "/usr/share/java/zookeeper.jar";
    let args = [
        "-Xmx64m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        jar,
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
    ];
    let mut args: Vec<String> = args.map(str::to_owned).to_vec();
    args.push(dir.join("zoo.cfg").display().to_string());
    start("java", &args, dir.join("log"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zookeeper_without_a_quorum_says_that_it_is_down() {
    let mut place = Setup::new().await;
    let [clients, peers, votes] = [(); 3].map(|()| free_ports::<3>());
    let mut stores: Vec<Program> =
        (0..3).map(|index| zookeeper(&place, index, (&clients, &peers, &votes))).collect();
    for (node, port) in NODES.iter().zip(clients) {
        let probe = format!("[probe.db]\nzookeeper = \"127.0.0.1:{port}\"\ninterval = \"200ms\"\n");
        place.start_agent(node, &probe);
    }
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);
    let whole = |view: &_| primary(view).is_some() && replicas(view) == 2;
    let first = view(&place, "the leader and its followers", whole).await;
    assert_eq!((first.stores["db"].versions.len(), first.stores["db"].problems.len()), (1, 0));
    let leader = primary(&first).unwrap().to_owned();
    let index = NODES.iter().position(|name| *name == leader).unwrap();

    let since = newest(&place).await;
    stores[index].kill();
    let other = |view: &_| {
        state(view, &leader) == Some(StoreState::Down) && primary(view).is_some_and(|node| node != leader)
    };
    view(&place, "another leader", other).await;
    let seen = told(&place, &leader, since).await;
    died(&states(&seen).into_iter().map(str::to_owned).collect::<Vec<_>>());

    let rest = (0..3).filter(|other| *other != index).collect::<Vec<_>>();
    stores[rest[0]].kill();
    let alone = NODES[rest[1]];
    view(&place, "the one without a quorum", |view| state(view, alone) == Some(StoreState::Down)).await;
    let shown = done(&place, &["cluster", "view", "shop"]);
    assert!(shown.contains("it serves no requests: it is in no quorum"), "{shown}");
}
