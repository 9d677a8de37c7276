//! The guard of a job on real processes: whatever becomes of an agent, what its job started ends, and on a logical node before another
//! host begins.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Setup, done, wait_for};
use crate::story_clusters::{clustered, host, run_on_manager};
use crate::story_jobs::{not_runnable, states};
use crate::story_locks::lives;
use crate::story_workflows::{ALLOWED, apply, installed, lines, reports, start, state, why};

/// A script that writes its number and that of a child, which hides in a session of its own, without a name of the run, and
/// ignores SIGTERM.
fn hiding(pids: &str) -> String {
    format!(
        "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; while true; do sleep 0.1; done' &\n\
         trap '' TERM\necho $$ >> {pids}\nwhile true; do sleep 0.1; done"
    )
}

fn pids(path: &str) -> Vec<Pid> {
    lines(path).iter().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap()).collect()
}

/// The parent of a process.
fn parent(pid: Pid) -> Pid {
    let about = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let parent = about.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    Pid::from_raw(parent.trim().parse().unwrap()).unwrap()
}

/// A manager whose job runs; answers its run, its host, and what it started.
async fn manager_at_work(place: &Setup) -> (String, String, Vec<Pid>) {
    let begun = place.path("begun");
    // Whatever it says of itself: another host would not know of it.
    let script = hiding(&begun).replace("env -i", "env -i BELLWETHER_DETACHED=true");
    apply(place, &[("loop", "", &script)]);
    let run = run_on_manager(place);
    wait_for("it begins", async || lines(&begun).len() == 2).await;
    wait_for("it is told", async || states(place, &run) == ["shop-manager/0 running"]).await;
    (run, host(place).0, pids(&begun))
}

/// Waits until another node hosts the manager. Nothing of the former may live then; the next runs there.
async fn moves_on(place: &Setup, run: &str, (former, started): (&str, &[Pid])) {
    wait_for("another hosts it", async || {
        let is_moved = host(place).0 != former;
        assert!(!is_moved || !started.iter().any(|pid| lives(*pid)), "two hosts run the manager");
        is_moved
    })
    .await;
    wait_for("the job is lost", async || states(place, run) == ["shop-manager/0 lost"]).await;
    not_runnable(place, "shop-manager").await;
    done(place, &["node", "runnable", "shop-manager"]);
    apply(place, &[("next", "", "true")]);
    let next = run_on_manager(place);
    wait_for("the next runs", async || state(place, &next) == "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_a_host_that_is_killed_is_dead_before_another_begins() {
    let mut place = clustered(&["web-1", "web-2"], &["--replace-after", "4s"]).await;
    let (run, former, started) = manager_at_work(&place).await;
    place.kill_agent(&former);
    moves_on(&place, &run, (&former, &started)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_a_host_that_is_stopped_is_dead_before_another_begins() {
    let place = clustered(&["web-1", "web-2"], &["--replace-after", "4s"]).await;
    let (run, former, started) = manager_at_work(&place).await;
    let agent = place.agent_pid(&former);
    kill_process(agent, Signal::STOP).unwrap();
    moves_on(&place, &run, (&former, &started)).await;
    kill_process(agent, Signal::CONT).unwrap();
    let is_back = format!("name = {former} and presence = up");
    wait_for("the former is back", async || {
        done(&place, &["node", "list", &is_back, "--count"]).trim() == "1"
    })
    .await;
    assert_eq!(lines(&place.path("begun")).len(), 2, "it ran twice");
}

/// Decommissions the host of a manager. A host that comes later may be away for ten minutes; this one was told another lease.
fn decommission(place: &Setup, host: &str) {
    done(place, &["cluster", "set", "shop", "--replace-after", "10m"]);
    done(place, &["node", "decommission", host, "--yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_decommissioned_ends_and_the_manager_moves_when_its_lease_is_over() {
    let place = clustered(&["web-1", "web-2"], &["--replace-after", "4s"]).await;
    let (run, former, started) = manager_at_work(&place).await;
    let agent = place.agent_pid(&former);
    decommission(&place, &former);
    let shown = done(&place, &["why", "cluster/shop"]);
    assert!(shown.contains("decommissioned") || host(&place).0 != former, "{shown}");
    wait_for("its agent ends", async || !lives(agent)).await;
    assert!(!started.iter().any(|pid| lives(*pid)), "what it hosted goes on");
    moves_on(&place, &run, (&former, &started)).await;
    let log = std::fs::read_to_string(place.log(&former)).unwrap();
    let repeated = log.lines().filter(|line| line.contains("logical")).count();
    assert!(repeated < 10, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_a_stopped_host_that_is_decommissioned_is_dead_before_another_begins() {
    let place = clustered(&["web-1", "web-2"], &["--replace-after", "4s"]).await;
    let (run, former, started) = manager_at_work(&place).await;
    let agent = place.agent_pid(&former);
    kill_process(agent, Signal::STOP).unwrap();
    decommission(&place, &former);
    moves_on(&place, &run, (&former, &started)).await;
    kill_process(agent, Signal::CONT).unwrap();
    wait_for("its agent ends", async || !lives(agent)).await;
    assert_eq!(lines(&place.path("begun")).len(), 2, "it ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_started_ends_with_an_agent_that_is_killed() {
    let mut place = installed(&["web-1"]).await;
    let begun = place.path("begun");
    apply(&place, &[("loop", "", &hiding(&begun))]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&begun).len() == 2).await;
    let started = pids(&begun);
    let data = place.path("web-1/data");
    let [work, former] = ["work", "former-work"].map(|name| Path::new(&data).join(name));
    assert!(work.join(&run).exists());
    place.kill_agent("web-1");
    wait_for("all of it ends", async || !started.iter().any(|pid| lives(*pid))).await;
    place.resume_agent("web-1");
    wait_for("it is lost", async || states(&place, &run) == ["web-1/0 lost"]).await;
    assert_eq!(lines(&begun).len(), 2, "it ran twice");
    wait_for("its params are gone", async || !work.join(&run).exists() && !former.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_detached_goes_on_with_all_it_starts_and_nothing_else_does() {
    let place = installed(&["web-1"]).await;
    let (stays, ends) = (place.path("stays"), place.path("ends"));
    let looped = |pids: &str| format!("sh -c 'echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait'");
    let (stay, end) = (looped(&stays), looped(&ends));
    // One of a session of its own, and one with the mark, but neither with both.
    let script = format!(
        "BELLWETHER_DETACHED=true setsid {stay} >/dev/null 2>&1 &\n\
         setsid {end} &\nBELLWETHER_DETACHED=true {end} &\n\
         until [ \"$(wc -l < {stays})\" = 2 ] && [ \"$(wc -l < {ends})\" = 4 ]; do sleep 0.1; done"
    );
    apply(&place, &[("leave", "", &script)]);
    let run = start(&place, &[]);
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert!(!pids(&ends).iter().any(|pid| lives(*pid)), "it goes on");
    let stay = pids(&stays);
    assert!(stay.iter().all(|pid| lives(*pid)), "it was ended");
    for pid in stay {
        kill_process(pid, Signal::KILL).unwrap();
    }
}

/// As in a container: its session is not of its own namespace of processes, and has no number there.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_started_ends_with_it_where_an_agent_has_no_session() {
    let mut place = Setup::new().await;
    let inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"].map(str::to_owned);
    place.start_agent_on(&inside, "web-1", ALLOWED);
    wait_for("the agent reports", async || reports(&place, "web-1")).await;
    let (pids, seen) = (place.path("pids"), place.path("seen"));
    let loops = "sh -c 'while true; do sleep 0.1; done' >/dev/null 2>&1 & echo $!";
    // Until the shell in the background has become another program, it is in the session of the job.
    let detached = "until [ $(cut -d' ' -f6 /proc/$!/stat) = $! ]; do sleep 0.05; done";
    let leave =
        format!("(BELLWETHER_DETACHED=true setsid {loops}; {detached}; setsid {loops}; {loops}) >> {pids}");
    let look =
        format!("for pid in $(cat {pids}); do kill -0 $pid && echo lives || echo ended; done >> {seen}");
    apply(&place, &[("leave", "", &leave), ("look", "", &look)]);
    let run = start(&place, &[]);
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&seen), ["lives", "ended", "ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_begins_again_does_so_after_the_end_of_all_that_a_killed_agent_left() {
    let mut place = installed(&["web-1"]).await;
    let (begun, beside) = (place.path("begun"), place.path("beside"));
    let script = format!(
        "if [ -e {begun} ]; then for pid in $(cat {begun}); do [ ! -e /proc/$pid ] || echo $pid >> {beside}; done; exit 0; fi\n{}",
        hiding(&begun)
    );
    apply(&place, &[("loop", "idempotent: true\n", &script)]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&begun).len() == 2).await;
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it runs again", async || state(&place, &run) == "succeeded").await;
    assert!(!Path::new(&beside).exists(), "{:?} still ran", lines(&beside));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_guard_is_killed_has_failed_and_nothing_of_it_goes_on() {
    let place = installed(&["web-1"]).await;
    let begun = place.path("begun");
    apply(&place, &[("slow", "", &format!("echo $$ >> {begun}\nsleep 600"))]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&begun).len() == 1).await;
    let script = pids(&begun).pop().unwrap();
    let guard = parent(script);
    assert_ne!(guard, place.agent_pid("web-1"));
    kill_process(guard, Signal::KILL).unwrap();
    wait_for("it has failed", async || states(&place, &run) == ["web-1/0 failed"]).await;
    assert!(!lives(script));
    let reason = why(&place, &run, "web-1");
    assert!(reason.contains("the guard of the job ended before its script: killed by signal 9"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_asked_to_end_when_its_agent_stops() {
    let mut place = installed(&["web-1"]).await;
    let out = place.path("out");
    let script = format!("trap 'echo asked >> {out}; exit 0' TERM\necho begun >> {out}\nsleep 600 &\nwait");
    apply(&place, &[("slow", "", &script)]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&out).len() == 1).await;
    place.stop_agent("web-1");
    assert_eq!(lines(&out), ["begun", "asked"]);
    place.resume_agent("web-1");
    wait_for("it is lost", async || states(&place, &run) == ["web-1/0 lost"]).await;
    assert_eq!(lines(&out).len(), 2, "it ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_finds_what_the_step_before_it_left_running() {
    let place = installed(&["web-1"]).await;
    let (pid, seen) = (place.path("pid"), place.path("seen"));
    let task = serde_json::json!({
        "kind": "task", "name": "two",
        "steps": [
            {"name": "begin", "script": {"text": format!("sleep 600 & echo $! > {pid}")}},
            {"name": "look", "script": {"text": format!("kill -0 $(cat {pid}) && echo yes > {seen}")}},
        ],
    });
    apply(&place, &[("one", "", "true")]);
    let documents = format!(
        "{task}\n---\nkind: stage\nname: all\ntasks: [two]\n---\nkind: workflow\nname: work\nstages: [all]\n"
    );
    let applied = place.run_with(&["apply", "-f", "-"], &documents);
    assert!(applied.status.success(), "{}", crate::place::text(&applied.stderr));
    let run = start(&place, &[]);
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&seen), ["yes"]);
    assert!(!pids(&pid).iter().any(|pid| lives(*pid)), "it ends with the task");
    let shown: Value = serde_json::from_str(&done(&place, &["job", "list", "-o", "json"])).unwrap();
    assert_eq!(shown.as_array().map(Vec::len), Some(1));
}
