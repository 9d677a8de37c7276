//! Standstills: an agent that is stopped, alone or with all that it started, as a suspended machine is; one that loses its power;
//! and a service that takes its time to start. None of them makes a good version look failed.

use std::fs;
use std::time::Duration;

use bellwether_api::v1::rollout::RolloutView;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Setup, below, done, wait_for};

/// Longer than every limit here.
const STANDSTILL: Duration = Duration::from_secs(4);

const NODE: &str = "web-1";

/// A service that ends in its own time, once it is allowed to.
const SERVICE: &str = "echo $$ >> \"$1/started\"\n\
     trap 'touch \"$1/stopping\"; until test -e \"$1/end\"; do sleep 0.05; done; touch \"$1/ended\"; exit 0' TERM\n\
     while :; do sleep 0.05; done\n";

/// An apply that begins, and goes on once it is allowed to.
const APPLY: &str = "touch \"$1/applying\"; until test -e \"$1/apply\"; do sleep 0.05; done\n";

/// A check that counts how often it was asked.
const CHECK: &str = "echo >> \"$1/asked\"; test -e \"$1/ready\"\n";

/// What stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Agent,
    Machine,
}

struct Node(Setup);

impl Node {
    /// A node with these limits of its entity, whose server leaves it time to come back.
    async fn start(limits: &str) -> Self {
        let mut place = Setup::new().await;
        place.kill_server();
        let config = fs::read_to_string(place.path("server.toml")).unwrap();
        let patient = config.replace("unreachable_after = \"3s\"", "unreachable_after = \"60s\"");
        fs::write(place.path("server.toml"), patient).unwrap();
        place.start_server().await;
        let home = place.path(NODE);
        fs::create_dir_all(&home).unwrap();
        for (name, script) in [("service.sh", SERVICE), ("apply.sh", APPLY), ("check.sh", CHECK)] {
            fs::write(format!("{home}/{name}"), script).unwrap();
        }
        let command = |name: &str| format!("[\"/bin/sh\", \"{home}/{name}\", {home:?}]");
        let sections = format!(
            "[entity.web]\n{limits}\nstatic = {}\n[entity.web.process]\nargv = {}\nstop_timeout = \"3s\"\n\
             [[entity.web.check]]\nname = \"ready\"\nexec = {}\ninterval = \"100ms\"\ntimeout = \"1s\"\nfall = 2\nrise = 1\n",
            command("apply.sh"),
            command("service.sh"),
            command("check.sh"),
        );
        place.start_agent(NODE, &sections);
        done(&place, &["entity", "set", "web", "--selector", "all", "--soak", "0s", "--batch", "100%"]);
        Self(place)
    }

    fn path(&self, name: &str) -> String {
        self.0.path(&format!("{NODE}/{name}"))
    }

    fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().count()
    }

    fn allow(&self, what: &str) {
        fs::write(self.path(what), "").unwrap();
    }

    async fn until_there_is(&self, what: &str) {
        let path = self.path(what);
        wait_for(&format!("there is {what}"), async || fs::exists(&path).unwrap()).await;
    }

    /// What the agent says about the entity, in one line.
    fn line(&self) -> String {
        let status = bellwether_agent::status::read(self.path("data").as_ref());
        let line = status.ok().and_then(|status| Some(status.entities.get("web")?.line.clone()));
        line.unwrap_or_default()
    }

    async fn until_it_waits_for_its_check(&self) {
        wait_for("the check is waited for", async || {
            self.line().contains("waits for check ready: exit code 1")
        })
        .await;
    }

    /// The processes of the node but for the agent.
    fn children(&self) -> Vec<Pid> {
        let agent = self.0.agent_pid(NODE);
        let home = self.path("");
        below(home.trim_end_matches('/').as_ref()).into_iter().filter(|pid| *pid != agent).collect()
    }

    /// Stops the agent, or all of the machine, for longer than every limit, and allows this meanwhile.
    async fn stand_still(&self, stopped: Stopped, allowed: &str) {
        let agent = self.0.agent_pid(NODE);
        kill_process(agent, Signal::STOP).unwrap();
        let children = if stopped == Stopped::Machine { self.children() } else { Vec::new() };
        signal(&children, Signal::STOP);
        tokio::time::sleep(STANDSTILL).await;
        self.allow(allowed);
        kill_process(agent, Signal::CONT).unwrap();
        signal(&children, Signal::CONT);
    }

    async fn good(&self, version: &str) -> RolloutView {
        let of_version = |view: &RolloutView| {
            let rollout = view.rollout.as_ref();
            rollout.is_some_and(|rollout| rollout.version == version && rollout.ended_ms.is_some())
        };
        let view = self.0.until(&format!("the rollout of {version} ended"), of_version).await;
        let rollout = view.rollout.as_ref().unwrap();
        assert_eq!(view.progress.last_known_good.as_deref(), Some(version), "{view:#?}");
        assert!(rollout.failures.is_empty(), "{view:#?}");
        view
    }

    /// Everything that was ever reported as a failure.
    async fn failures(&self) -> Vec<String> {
        let all = self.0.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
        let failed =
            all.into_iter().filter(|event| event.kind.contains("fail") || event.cause.contains("fail"));
        failed.map(|event| format!("{} {}: {}", event.kind, event.subject, event.cause)).collect()
    }
}

/// Signals those that are still there.
fn signal(processes: &[Pid], what: Signal) {
    for pid in processes {
        let sent = kill_process(*pid, what);
        assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
    }
}

async fn a_standstill_fails_no_version(stopped: Stopped) {
    let node = Node::start("timeout = \"3s\"").await;
    done(&node.0, &["rollout", "start", "web", "v1"]);
    node.until_there_is("applying").await;
    node.stand_still(stopped, "apply").await;
    node.until_it_waits_for_its_check().await;
    node.stand_still(stopped, "ready").await;
    node.good("v1").await;

    done(&node.0, &["rollout", "start", "web", "v2"]);
    node.until_there_is("stopping").await;
    node.stand_still(stopped, "end").await;
    node.good("v2").await;
    assert!(fs::exists(node.path("ended")).unwrap(), "the process of v1 was killed before its time");
    assert_eq!(node.lines("started"), 2);
    assert_eq!(node.failures().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_agent_fails_no_version_while_it_applies_checks_or_stops() {
    a_standstill_fails_no_version(Stopped::Agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_machine_fails_no_version_while_it_applies_checks_or_stops() {
    a_standstill_fails_no_version(Stopped::Machine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_starter_succeeds_after_many_more_failed_checks_than_would_fail_it_later() {
    let node = Node::start("").await;
    node.allow("apply");
    done(&node.0, &["rollout", "start", "web", "v1"]);
    node.until_it_waits_for_its_check().await;
    wait_for("many checks failed", async || node.lines("asked") >= 20).await;
    node.allow("ready");
    node.good("v1").await;
    assert_eq!(node.failures().await, Vec::<String>::new());
    assert_eq!(node.lines("started"), 1);

    fs::remove_file(node.path("ready")).unwrap();
    wait_for("failures count after the first pass", async || node.line().contains("check ready is failing"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ended_with_its_machine_is_started_again_and_nothing_failed() {
    let mut node = Node::start("").await;
    node.allow("apply");
    node.allow("ready");
    done(&node.0, &["rollout", "start", "web", "v1"]);
    node.good("v1").await;
    for started in 2..4 {
        let children = node.children();
        node.0.kill_agent(NODE);
        signal(&children, Signal::KILL);
        node.0.resume_agent(NODE);
        wait_for("it was started again", async || node.lines("started") == started).await;
        wait_for("it runs as before", async || node.line() == "runs v1, assigned v1").await;
    }
    assert_eq!(node.failures().await, Vec::<String>::new());
}

/// Lives of an agent after which its soak must be over.
const LIVES: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_again_and_again_goes_on_with_its_soak() {
    let mut node = Node::start("").await;
    for allowed in ["apply", "ready", "end"] {
        node.allow(allowed);
    }
    done(&node.0, &["entity", "set", "web", "--soak", "6s", "--deadline", "5m"]);
    done(&node.0, &["rollout", "start", "web", "v1"]);
    for life in 1..=LIVES {
        // It lives for much less than the soak, and observes some of it each time.
        let asked = node.lines("asked");
        wait_for("some of the soak is over", async || node.lines("asked") >= asked + 20).await;
        let view = node.0.client().current_rollout("default", "web", None, Duration::ZERO).await.unwrap();
        if view.rollout.is_some_and(|rollout| rollout.ended_ms.is_some()) {
            break;
        }
        assert!(life < LIVES, "its soak never ends");
        node.0.kill_agent(NODE);
        node.0.resume_agent(NODE);
    }
    node.good("v1").await;
    assert_eq!(node.lines("started"), 1, "the service ran all the time");
}

/// A version that soaks while there is no server, and whose check has just begun to fail.
async fn failing_unseen() -> Node {
    let mut node = Node::start("").await;
    for allowed in ["apply", "ready", "end"] {
        node.allow(allowed);
    }
    done(&node.0, &["rollout", "start", "web", "v1"]);
    node.good("v1").await;
    done(&node.0, &["entity", "set", "web", "--soak", "20s", "--deadline", "5m"]);
    done(&node.0, &["rollout", "start", "web", "v2"]);
    wait_for("the soak has begun", async || {
        done(&node.0, &["why", "target/web/web-1"]).contains("healthy for")
    })
    .await;
    node.0.kill_server();
    fs::remove_file(node.path("ready")).unwrap();
    wait_for("the check fails", async || node.line().contains("check ready is failing")).await;
    node
}

/// The server is back, and learns of the failure.
async fn is_known_bad(node: &mut Node) {
    node.0.start_server().await;
    let rolled_back = |view: &RolloutView| !view.progress.bad.is_empty();
    let view = node.0.until("the version is known bad", rolled_back).await;
    let failure = view.rollout.as_ref().unwrap().failures.first().cloned();
    assert!(
        failure.is_some_and(|failure| failure.evidence.summary.starts_with("in its soak: check ready")),
        "{view:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_fails_in_the_soak_while_no_server_is_there_fails_the_version() {
    let mut node = failing_unseen().await;
    node.allow("ready");
    wait_for("the check passes", async || node.line() == "runs v2, assigned v2").await;
    is_known_bad(&mut node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_failed_in_the_soak_is_remembered_by_the_agents_next_life() {
    let mut node = failing_unseen().await;
    let stored = node.path("data/ledger/checks");
    let has_failure =
        |file: fs::DirEntry| fs::read_to_string(file.path()).is_ok_and(|text| text.contains("soak_failure"));
    wait_for("the failure is stored", async || fs::read_dir(&stored).unwrap().flatten().any(has_failure))
        .await;
    node.0.kill_agent(NODE);
    // It recovers while nobody looks.
    node.allow("ready");
    node.0.resume_agent(NODE);
    wait_for("the check passes", async || node.line() == "runs v2, assigned v2").await;
    is_known_bad(&mut node).await;
}
