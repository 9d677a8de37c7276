//! Managers outside the binary: copies of the example in the guide manage one service. The lock has one of them decide at a time, and its
//! number refuses the write of one that has lost it, whoever is killed, paused or restarted.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use bellwether_api::v1::profile::ProfileRevision;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_locks::pid_of;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/manager.py");

/// The lease of the lock.
const LEASE_SECONDS: &str = "4";

/// What the page on managers gives the token of one.
const CLAIMS: [&str; 3] = [
    "get node",
    "get,update:/params/fence,update:/params/primary profile/toy",
    "get,update:/holders slot/toy",
];

/// Runs a script as it stands, but the first one about to write while there is a file `pause` stops itself, between decision and write.
const RUNNER: &str = r#"
import os, runpy, signal, sys, urllib.request
pause, script = sys.argv[1:3]
call = urllib.request.urlopen
def urlopen(request, **more):
    if request.get_method() == "PATCH":
        try:
            os.remove(pause)
        except FileNotFoundError:
            return call(request, **more)
        os.kill(os.getpid(), signal.SIGSTOP)
    return call(request, **more)
urllib.request.urlopen = urlopen
sys.argv = sys.argv[2:]
runpy.run_path(script, run_name="__main__")
"#;

/// A copy of the manager, with a token of its own.
struct Manager {
    name: &'static str,
    process: Child,
    log: std::path::PathBuf,
}

impl Drop for Manager {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Manager {
    fn start(place: &Setup, name: &'static str) -> Self {
        let token = done(place, &["token", "create", name, "--role", "toy-manager"]);
        let log = place.log(name);
        let out = std::fs::File::create(&log).unwrap();
        let pause = place.path("pause");
        let mut command = python(place, &["-c", RUNNER, &pause, SCRIPT, "toy", "role=web", LEASE_SECONDS]);
        command.env("BELLWETHER_TOKEN", token.trim()).stderr(out.try_clone().unwrap()).stdout(out);
        Self { name, process: command.spawn().unwrap(), log }
    }

    async fn says(&self, line: &str) {
        let log = || std::fs::read_to_string(&self.log).unwrap();
        wait_for(&format!("{} says {line:?}", self.name), async || log().contains(line)).await;
    }

    /// The number of its lock, if it holds that.
    async fn number(&self, place: &Setup) -> Option<u64> {
        let view = place.client().slot("default", "toy", None, Duration::ZERO).await.ok()?;
        let mut holders = view.slot.holders.values();
        holders.find(|holder| holder.by == self.name).map(|holder| holder.fence)
    }

    /// The number of the lock that it acquired last, whether it still has that or not.
    fn last_number(&self) -> u64 {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let mut numbers = log.lines().filter_map(|line| line.strip_prefix("acquired the lock with number "));
        numbers.next_back().unwrap().parse().unwrap()
    }

    fn is_stopped(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        status.contains("State:\tT")
    }

    fn signal(&self, signal: Signal) {
        kill_process(pid_of(&self.process), signal).unwrap();
    }
}

/// Python with the environment of the command line.
fn python(place: &Setup, args: &[&str]) -> Command {
    let cli = place.command(&[]);
    let mut command = Command::new("/usr/bin/python3");
    let variables = cli.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.args(args).env_clear().envs(variables).stdin(Stdio::null());
    command
}

/// An installation with nodes, of which a profile is to name the primary.
async fn installed(nodes: &[&str]) -> Setup {
    let mut place = Setup::new().await;
    done(&place, &["cluster", "create", "toy", "--filter", "role=web", "--leaders", "0"]);
    done(&place, &[&["role", "set", "toy-manager"], &CLAIMS[..]].concat());
    for name in nodes {
        place.start_agent(name, "");
    }
    place
}

async fn profile(place: &Setup) -> ProfileRevision {
    place.client().profile("default", "toy").await.unwrap()
}

fn fence(revision: &ProfileRevision) -> u64 {
    revision.params.get("fence").and_then(Value::as_u64).unwrap_or_default()
}

fn primary(revision: &ProfileRevision) -> Option<String> {
    revision.params.get("primary").and_then(Value::as_str).map(str::to_owned)
}

/// Waits for a primary other than this one, and answers it.
async fn another_primary(place: &Setup, former: Option<&str>) -> String {
    let mut found = None;
    wait_for(&format!("another than {former:?} is the primary"), async || {
        found = primary(&profile(place).await);
        found.is_some() && found.as_deref() != former
    })
    .await;
    found.unwrap()
}

/// Kills the agent of the node that is the primary, and answers the node.
async fn kill_primary(place: &mut Setup) -> String {
    let node = another_primary(place, None).await;
    place.kill_agent(&node);
    node
}

/// Waits until one of the managers holds the lock and has written its number; answers which.
async fn acting(place: &Setup, managers: &[Manager]) -> usize {
    let mut found = None;
    wait_for("a manager acts", async || {
        for (index, manager) in managers.iter().enumerate() {
            let number = manager.number(place).await;
            if number.is_some() && number == Some(fence(&profile(place).await)) {
                found = Some(index);
                return true;
            }
        }
        false
    })
    .await;
    found.unwrap()
}

/// Every number is of one manager, and none wrote after one with a larger number.
async fn one_at_a_time(place: &Setup) {
    let mut revisions = place.client().profile_revisions("default", "toy").await.unwrap().items;
    revisions.retain(|revision| fence(revision) > 0);
    revisions.sort_by_key(|revision| revision.revision);
    let numbers: Vec<u64> = revisions.iter().map(fence).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let mut writers = BTreeMap::new();
    for revision in &revisions {
        let writer = writers.entry(fence(revision)).or_insert(&revision.by);
        assert_eq!(*writer, &revision.by, "two wrote with number {}", fence(revision));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_managers_decides_and_a_write_of_one_that_has_lost_the_lock_is_refused() {
    let mut place = installed(&["web-1", "web-2", "web-3"]).await;
    let mut managers = vec![Manager::start(&place, "red"), Manager::start(&place, "blue")];
    let first = acting(&place, &managers).await;
    managers[1 - first].says("waiting for the lock: ").await;

    // The node of the primary dies.
    let dead = kill_primary(&mut place).await;
    another_primary(&place, Some(&dead)).await;
    place.resume_agent(&dead);

    // It does again, and the manager is stopped when it has decided which node is next: the other one has the lock after its lease.
    std::fs::write(place.path("pause"), "").unwrap();
    let dead = kill_primary(&mut place).await;
    wait_for("a manager is stopped", async || managers.iter().any(Manager::is_stopped)).await;
    let stopped = managers.iter().position(Manager::is_stopped).unwrap();
    let number = managers[stopped].last_number();
    wait_for("the other one acts", async || fence(&profile(&place).await) > number).await;
    another_primary(&place, Some(&dead)).await;

    // It goes on where it was, and writes what it had decided.
    managers[stopped].signal(Signal::CONT);
    managers[stopped].says(&format!("wrote nothing with number {number}: ")).await;
    managers[stopped].says(&format!("lost the lock with number {number}: ")).await;
    one_at_a_time(&place).await;
    place.resume_agent(&dead);

    // kill -9 of the one that holds the lock: the other one has a larger number.
    let killed = acting(&place, &managers).await;
    let number = managers[killed].last_number();
    drop(managers.remove(killed));
    wait_for("the other one acts", async || managers[0].number(&place).await > Some(number)).await;
    let dead = kill_primary(&mut place).await;
    another_primary(&place, Some(&dead)).await;
    one_at_a_time(&place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_renews_its_lock_outlives_the_server_and_releases_when_it_is_asked_to_end() {
    let mut place = installed(&["web-1", "web-2"]).await;
    let mut managers = vec![Manager::start(&place, "red")];
    acting(&place, &managers).await;
    let renewals = r#"path =~ "/slots/toy/renew$" and status = 200"#;
    let are_there = async || done(&place, &["audit", "list", renewals, "-o", "json"]).contains("/renew");
    wait_for("it renews its lock", are_there).await;
    place.kill_server();
    managers[0].says("no answer, retrying: ").await;
    place.start_server().await;
    let dead = kill_primary(&mut place).await;
    another_primary(&place, Some(&dead)).await;
    acting(&place, &managers).await;

    managers[0].signal(Signal::TERM);
    let mut ended = None;
    wait_for("it ends", async || {
        ended = managers[0].process.try_wait().unwrap();
        ended.is_some()
    })
    .await;
    let log = std::fs::read_to_string(&managers[0].log).unwrap();
    assert_eq!(ended.unwrap().code(), Some(0), "{log}");
    assert!(log.ends_with("released the lock\n"), "{log}");
    assert_eq!(managers[0].number(&place).await, None);
    one_at_a_time(&place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_cannot_begin_says_why() {
    let place = Setup::new().await;
    let run = |args: &[&str], variables: &[(&str, &str)]| -> Output {
        let all = [&[SCRIPT], args].concat();
        python(&place, &all).envs(variables.iter().copied()).output().unwrap()
    };
    let cases = [
        (&["toy"][..], &[][..], 2, "usage: manager.py SERVICE FILTER"),
        (&["toy", "role=web", "soon"], &[], 2, "usage: manager.py SERVICE FILTER"),
        (&["toy", "role=web"], &[("BELLWETHER_TOKEN", "")], 2, "BELLWETHER_TOKEN is not set"),
        (&["toy", "role=web"], &[("BELLWETHER_TOKEN", "bwt_wrong")], 1, "see BELLWETHER_TOKEN"),
        (&["toy", "role=("], &[], 1, "invalid filter"),
    ];
    for (args, variables, expected, said) in cases {
        let output = run(args, variables);
        let stderr = text(&output.stderr);
        assert_eq!(code(&output), expected, "{args:?}: {stderr}");
        assert!(stderr.contains(said) && !stderr.contains("Traceback"), "{args:?}: {stderr}");
    }
    let held = place.client().slot("default", "toy", None, Duration::ZERO).await.unwrap();
    assert!(held.slot.holders.is_empty(), "{held:?}");
}
