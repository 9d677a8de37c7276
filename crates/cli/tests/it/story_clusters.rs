//! Clusters on real processes: a leader that dies is replaced; the manager's host dies or is cut off, and nothing of the manager runs in
//! two places or twice; a wait for workflows ends as its exit code says.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use bellwether_rt::tasks::Tasks;
use rustix::process::Pid;
use serde_json::Value;

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_jobs::{not_runnable, states};
use crate::story_locks::{lives, way_to};
use crate::story_workflows::{ALLOWED, apply, lines, reports, state, why};

/// Sections of agents that may host managers.
fn hosts() -> String {
    format!("{ALLOWED}\nhosts_logical = true")
}

/// An installation with agents that may host managers, and a cluster `shop` of all of them.
pub(crate) async fn clustered(agents: &[&str], flags: &[&str]) -> Setup {
    let mut place = Setup::new().await;
    for name in agents {
        place.start_agent(name, &hosts());
    }
    for name in agents {
        wait_for("the agent reports", async || reports(&place, name)).await;
    }
    make_cluster(&place, flags).await;
    place
}

async fn make_cluster(place: &Setup, flags: &[&str]) {
    done(place, &[&["cluster", "create", "shop", "--filter", "role=web"], flags].concat());
    wait_for("it has a leader", async || leader(place).is_some()).await;
    wait_for("its manager has a host that runs it", async || reports(place, "shop-manager")).await;
}

fn cluster(place: &Setup, name: &str) -> Value {
    serde_json::from_str(&done(place, &["cluster", "get", name, "-o", "json"])).unwrap()
}

/// The leaders with their fencing numbers.
fn leaders(place: &Setup) -> Vec<(String, u64)> {
    let shown = cluster(place, "shop");
    let leading = shown.get("leading").and_then(Value::as_object).unwrap().iter();
    leading.map(|(name, role)| (name.clone(), role.get("fence").and_then(Value::as_u64).unwrap())).collect()
}

/// The leader with its fencing number, once there is one.
fn leader(place: &Setup) -> Option<(String, u64)> {
    leaders(place).into_iter().next()
}

/// The host of the manager with its fencing number.
pub(crate) fn host(place: &Setup) -> (String, u64) {
    let shown = cluster(place, "shop");
    let word = |field: &str| shown.pointer(&format!("/manager/{field}")).cloned().unwrap();
    (word("host").as_str().unwrap().to_owned(), word("fence").as_u64().unwrap())
}

/// Runs the workflow on the manager; answers the run.
pub(crate) fn run_on_manager(place: &Setup) -> String {
    let run = done(place, &["cluster", "run", "shop", "work", "-o", "name"]);
    run.trim().trim_start_matches("run/").to_owned()
}

/// The process number that a script wrote here first.
fn pid_in(path: &str) -> Pid {
    let pid = lines(path).first().and_then(|line| line.split_whitespace().next()?.parse().ok());
    Pid::from_raw(pid.unwrap()).unwrap()
}

/// An installation with one agent, which knows the server only by a way that can be cut.
async fn reached_by_a_way(name: &str) -> (Setup, Tasks) {
    let mut place = Setup::new().await;
    let (port, way) = way_to(place.port).await;
    place.kill_server();
    let settings = place.path("server.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{before}address = \"https://127.0.0.1:{port}\"\n")).unwrap();
    place.start_server().await;
    place.start_agent(name, &hosts());
    wait_for("the agent reports", async || reports(&place, name)).await;
    place.stop_agent(name);
    let config = place.path(&format!("{name}/agent.toml"));
    let direct = std::fs::read_to_string(&config).unwrap();
    let [from, to] = [place.port, port].map(|port| format!("127.0.0.1:{port}"));
    std::fs::write(&config, direct.replace(&from, &to)).unwrap();
    place.resume_agent(name);
    wait_for("the agent reports", async || reports(&place, name)).await;
    (place, way)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_killed_is_replaced_with_a_larger_fencing_number_and_stays_replaced() {
    let mut place = clustered(&["web-1", "web-2", "web-3"], &["--replace-after", "4s"]).await;
    let (former, fence) = leader(&place).unwrap();
    place.kill_agent(&former);
    wait_for("another leads", async || leader(&place).is_some_and(|(name, _)| name != former)).await;
    let (next, larger) = leader(&place).unwrap();
    assert!(larger > fence, "{larger} is not above {fence}");
    let said = done(&place, &["events", "--about", "cluster/shop"]);
    assert!(said.contains(&format!("{former} was unreachable for 4s")), "{said}");
    place.resume_agent(&former);
    let is_back = format!("name = {former} and presence = up");
    wait_for("the former is back", async || {
        done(&place, &["node", "list", &is_back, "--count"]).trim() == "1"
    })
    .await;
    assert_eq!(leader(&place), Some((next, larger)), "who was replaced does not get the role back");
    let shown = done(&place, &["node", "list", "cluster/leader Eq true", "-o", "name"]);
    assert_eq!(shown.lines().count(), 1, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_of_a_killed_host_begins_elsewhere_and_runs_nothing_twice() {
    let mut place = clustered(&["web-1", "web-2"], &["--replace-after", "4s"]).await;
    let begun = place.path("begun");
    apply(&place, &[("slow", "", &format!("echo $$ >> {begun}\nsleep 600"))]);
    let run = run_on_manager(&place);
    wait_for("it begins", async || lines(&begun).len() == 1).await;
    wait_for("it is told", async || states(&place, &run) == ["shop-manager/0 running"]).await;
    let (former, fence) = host(&place);
    place.kill_agent(&former);
    wait_for("another hosts it", async || host(&place).0 != former).await;
    assert!(host(&place).1 > fence);
    wait_for("the job is lost", async || states(&place, &run) == ["shop-manager/0 lost"]).await;
    assert_eq!(lines(&begun).len(), 1, "it ran twice");
    not_runnable(&place, "shop-manager").await;
    done(&place, &["rollout", "abort", &run]);
    done(&place, &["node", "runnable", "shop-manager"]);
    apply(&place, &[("next", "", "true")]);
    let run = run_on_manager(&place);
    wait_for("the next runs there", async || state(&place, &run) == "succeeded").await;
    place.resume_agent(&former);
    wait_for("the former is back", async || reports(&place, &former)).await;
    let old = place.path(&format!("{former}/data/logical"));
    let is_empty = async || std::fs::read_dir(&old).map_or(true, |mut left| left.next().is_none());
    wait_for("it forgets the manager", is_empty).await;
    let script = pid_in(&begun);
    wait_for("what its former self left running is ended", async || !lives(script)).await;
    assert_eq!(lines(&begun).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_of_a_manager_goes_on_at_an_idempotent_task_on_its_next_host() {
    let mut place = clustered(&["web-1", "web-2"], &["--replace-after", "4s"]).await;
    let (out, go) = (place.path("out"), place.path("go"));
    let says = |word: &str| format!("echo {word} >> {out}");
    let waits = format!("{}\nwhile ! [ -e {go} ]; do sleep 0.1; done", says("two"));
    apply(
        &place,
        &[
            ("one", "", &format!("{}\necho '{{\"word\": \"three\"}}' > $BELLWETHER_OUTPUTS", says("one"))),
            ("two", "idempotent: true\n", &waits),
            ("three", "", &says("{{ outputs['one'].word }}")),
        ],
    );
    let run = run_on_manager(&place);
    wait_for("the second task begins", async || lines(&out) == ["one", "two"]).await;
    let (former, _) = host(&place);
    place.kill_agent(&former);
    wait_for("it begins on the next host", async || lines(&out) == ["one", "two", "two"]).await;
    std::fs::write(&go, "").unwrap();
    wait_for("the run ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "two", "two", "three"]);
    assert_ne!(host(&place).0, former);
    assert_eq!(
        states(&place, &run),
        ["shop-manager/0 finished", "shop-manager/1 finished", "shop-manager/2 finished"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_a_host_that_is_cut_off_is_dead_before_another_begins() {
    let (mut place, way) = reached_by_a_way("web-1").await;
    make_cluster(&place, &["--replace-after", "4s"]).await;
    place.start_agent("web-2", &hosts());
    wait_for("the other agent reports", async || reports(&place, "web-2")).await;
    let (former, fence) = host(&place);
    let order = place.path("order");
    let script =
        format!("trap '' TERM\necho $$ >> {order}\nwhile true; do echo $$ old >> {order}; sleep 0.1; done");
    apply(&place, &[("loop", "", &script)]);
    let run = run_on_manager(&place);
    wait_for("it runs", async || lines(&order).len() > 3).await;
    assert_eq!(host(&place), (former.clone(), fence), "it stays where it is");
    let script = pid_in(&order);
    way.cancel();
    wait_for("another hosts it", async || {
        let is_moved = host(&place).0 != former;
        assert!(!is_moved || !lives(script), "two hosts run the manager");
        is_moved
    })
    .await;
    wait_for("the job is lost", async || states(&place, &run) == ["shop-manager/0 lost"]).await;
    not_runnable(&place, "shop-manager").await;
    done(&place, &["node", "runnable", "shop-manager"]);
    apply(&place, &[("next", "", &format!("echo next >> {order}"))]);
    let next = run_on_manager(&place);
    wait_for("the next runs", async || state(&place, &next) == "succeeded").await;
    assert_eq!(lines(&order).last().map(String::as_str), Some("next"));
    assert_eq!(lines(&order).iter().filter(|line| !line.contains("old")).count(), 2, "it ran twice");
    assert!(host(&place).1 > fence);
    wait_for("the other machine never ended", async || {
        lines(&place.log(&former).display().to_string())
            .iter()
            .any(|line| line.contains("what runs on it ends"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_starts_again_goes_on_with_the_manager_that_it_hosts() {
    let mut place = clustered(&["web-1", "web-2"], &["--replace-after", "60s"]).await;
    let out = place.path("out");
    let stops = format!("echo one >> {out}\nexit 16");
    apply(&place, &[("one", "", &stops), ("two", "", &format!("echo two >> {out}"))]);
    let run = run_on_manager(&place);
    let stopped = async || why(&place, &run, "shop-manager").contains("goes on when the agent starts again");
    wait_for("the run stops", stopped).await;
    let before = host(&place);
    place.stop_agent(&before.0);
    place.resume_agent(&before.0);
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "two"]);
    assert_eq!(host(&place), before);
    assert_eq!(states(&place, &run), ["shop-manager/0 finished", "shop-manager/1 finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_belongs_to_the_oldest_cluster_that_matches_it_and_to_the_next_after_that() {
    let place = clustered(&["web-1", "web-2"], &["--replace-after", "60s"]).await;
    let made = place.run(&["cluster", "create", "none", "--filter", "role=db"]);
    assert!(text(&made.stderr).contains("no node matches its filter"), "{}", text(&made.stderr));
    let said = text(&place.run(&["why", "cluster/none"]).stdout);
    assert!(said.contains("no leader: there is no member"), "{said}");
    let made = place.run(&["cluster", "create", "all", "--filter", "all"]);
    assert!(text(&made.stderr).contains("2 more match its filter"), "{}", text(&made.stderr));
    let members = |of: &str| cluster(&place, of).get("members").and_then(Value::as_u64).unwrap();
    assert_eq!([members("shop"), members("none"), members("all")], [2, 0, 0]);
    let leads = |of: &str| !cluster(&place, of).get("leading").and_then(Value::as_object).unwrap().is_empty();
    assert!(leads("shop") && !leads("all"));
    let said = text(&place.run(&["why", "cluster/all"]).stdout);
    assert!(said.contains("members of older clusters: web-1 (shop), web-2 (shop)"), "{said}");
    done(&place, &["cluster", "delete", "shop", "--yes"]);
    wait_for("the other has a leader", async || leads("all")).await;
    assert_eq!(members("all"), 2);
    let managers = async || done(&place, &["node", "list", "logical", "-o", "name"]);
    wait_for("its manager ends with it", async || !managers().await.contains("shop-manager")).await;
    let left = |name: &str| {
        let found = std::fs::read_dir(place.path(&format!("{name}/data/logical"))).into_iter().flatten();
        found.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("shop-"))
    };
    wait_for("its host forgets it", async || !left("web-1") && !left("web-2")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_workflows_says_by_its_exit_code_how_it_ended() {
    let place = clustered(&["web-1", "web-2"], &["--replace-after", "60s"]).await;
    let code_file = place.path("code");
    let wait =
        |flags: &[&str]| place.run(&[&["cluster", "wait", "shop", "--workflow-complete"], flags].concat());
    assert_eq!(code(&wait(&["--timeout", "20s"])), 0, "nothing ever ran");
    let script =
        format!("while [ ! -e {code_file} ]; do sleep 0.1; done; read code < {code_file}; exit $code");
    apply(&place, &[("one", "", &script)]);
    let start = |node: &str| {
        let on = format!("name = {node}");
        done(&place, &["cluster", "start-workflow", "work", "--cluster", "shop", "--on", &on])
    };
    start("web-1");
    let late = wait(&["--timeout", "1s"]);
    assert_eq!(code(&late), 3, "{}", text(&late.stderr));
    assert!(text(&late.stderr).contains("web-1: run work-"), "{}", text(&late.stderr));
    assert_eq!(code(&wait(&["--timeout", "20s", "--on", "name = web-2"])), 0, "it runs nothing");
    let mut waiting = place.command(&["cluster", "wait", "shop", "--workflow-complete", "--timeout", "50s"]);
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    assert!(first.contains("is in progress"), "{first}");
    done(&place, &["node", "runnable", "shop-manager", "--no", "--reason", "a person looks"]);
    assert_eq!(waiting.wait().unwrap().code(), Some(8));
    assert!(said.next().unwrap().unwrap().contains("shop-manager is not runnable"));
    done(&place, &["node", "runnable", "shop-manager"]);
    std::fs::write(&code_file, "0\n").unwrap();
    assert_eq!(code(&wait(&["--timeout", "50s"])), 0);
    std::fs::write(&code_file, "3\n").unwrap();
    start("web-2");
    let failed = wait(&["--timeout", "50s", "--fail-on-failure"]);
    assert_eq!(code(&failed), 1, "{}", text(&failed.stderr));
    std::fs::remove_file(&code_file).unwrap();
    start("web-1");
    let failed = wait(&["--timeout", "20s", "--fail-on-failure"]);
    assert_eq!(code(&failed), 1, "a failure from before is one: {}", text(&failed.stderr));
    assert!(text(&failed.stderr).contains("web-2: run work-"), "{}", text(&failed.stderr));
    assert_eq!(code(&wait(&["--timeout", "1s"])), 3, "a failure that may be retried is waited for");
    // It does not begin, since its node is not runnable.
    let run = start("web-2").trim().to_owned();
    done(&place, &["rollout", "abort", &run]);
    let aborted = wait(&["--timeout", "50s", "--fail-on-failure", "--on", "name = web-2"]);
    assert_eq!(code(&aborted), 1, "{}", text(&aborted.stderr));
    let said = format!("web-2: run {run} was aborted before it began there");
    assert!(text(&aborted.stderr).contains(&said), "{}", text(&aborted.stderr));
}
