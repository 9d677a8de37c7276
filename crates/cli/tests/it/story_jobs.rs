//! Jobs on real processes: each task of a run on a node is told with how it ended; one whose end nobody saw is lost, one whose run
//! is aborted ends; they are forgotten with their run.

use std::path::Path;

use serde_json::Value;

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_workflows::{apply, installed, lines, start, state, why};

/// The states of the jobs of a run, by name without the run.
pub(crate) fn states(place: &Setup, run: &str) -> Vec<String> {
    let listed = done(place, &["job", "list", "--run", run, "-o", "json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let word = |job: &Value, field: &str| job.get(field).and_then(Value::as_str).unwrap().to_owned();
    let prefix = format!("{run}/");
    listed
        .iter()
        .map(|job| format!("{} {}", word(job, "name").strip_prefix(&prefix).unwrap(), word(job, "state")))
        .collect()
}

/// Waits until a node begins no runs: the verdict about what failed there follows its report.
pub(crate) async fn not_runnable(place: &Setup, node: &str) {
    wait_for("it begins no other run", async || {
        done(place, &["node", "list", "not runnable", "-o", "name"]).contains(node)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_task_on_each_node_is_a_job_that_tells_how_it_ended() {
    let place = installed(&["web-1", "web-2"]).await;
    let fails = "echo out of paper; [ \"$BELLWETHER_NODE\" = web-1 ] || exit 3";
    apply(&place, &[("one", "", "true"), ("two", "", fails)]);
    let run = start(&place, &[]);
    wait_for("it fails on a node", async || state(&place, &run) == "paused").await;
    let all = ["web-1/0 finished", "web-1/1 finished", "web-2/0 finished", "web-2/1 failed"];
    wait_for("all is told", async || states(&place, &run) == all).await;
    let failed = format!("{run}/web-2/1");
    let shown = done(&place, &["job", "get", &failed]);
    for part in ["two of stage all", "failed (3)", "attempts  1"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(done(&place, &["job", "get", &format!("{run}/web-2")]), shown, "the last one");
    let script = done(&place, &["job", "get", &failed, "--script"]);
    assert!(
        script.starts_with("step do: script, /bin/sh -eu") && script.contains("out of paper"),
        "{script}"
    );
    let reason = why(&place, &run, "web-2");
    assert!(reason.contains(&format!("job {failed} is failed")), "{reason}");
    let on_node = done(&place, &["node", "jobs", "web-1"]);
    assert!(on_node.contains("web-1/1") && !on_node.contains("web-2"), "{on_node}");
    let count = done(&place, &["job", "list", "state = failed", "--count"]);
    assert_eq!(count.trim(), "1");
    let missing = place.run(&["job", "get", &format!("{run}/web-2/7")]);
    assert!(text(&missing.stderr).contains("cannot find job"), "{}", text(&missing.stderr));
    assert_eq!(code(&place.run(&["job", "get", "odd"])), 64);
    done(&place, &["rollout", "abort", &run]);
    wait_for("it is aborted", async || state(&place, &run) == "aborted").await;
    done(&place, &["run", "delete", &run, "--yes"]);
    wait_for("they are forgotten", async || done(&place, &["job", "list", "--count"]).trim() == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_run_ends_the_job_that_runs_and_begins_no_other() {
    let place = installed(&["web-1"]).await;
    let (begun, never) = (place.path("begun"), place.path("never"));
    let script = format!("echo $$ >> {begun}\nsleep 600");
    apply(&place, &[("slow", "", &script), ("next", "", &format!("touch {never}"))]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&begun).len() == 1).await;
    let refused = place.run(&["workflow", "run", "work", "-l", "all"]);
    assert_eq!(code(&refused), 7);
    assert!(
        text(&refused.stderr).contains(&format!("run {run} is in progress on node web-1")),
        "{}",
        text(&refused.stderr)
    );
    let behind = start(&place, &["--queue"]);
    let waits = format!("run {run} is in progress on this node");
    wait_for("the other waits", async || why(&place, &behind, "web-1").contains(&waits)).await;
    for run in [&behind, &run] {
        done(&place, &["rollout", "abort", run]);
    }
    wait_for("it is cancelled", async || states(&place, &run) == ["web-1/0 cancelled"]).await;
    assert!(states(&place, &behind).is_empty(), "it has taken none of its tasks");
    let pid: i32 = lines(&begun).first().unwrap().parse().unwrap();
    let gone = async || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_err();
    wait_for("its script has ended", gone).await;
    assert_eq!(lines(&begun).len(), 1, "the other never began");
    assert!(!Path::new(&never).exists());
    let kept = place.path(&format!("web-1/data/ledger/runs/{run}"));
    wait_for("the agent forgets it", async || !Path::new(&kept).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_end_nobody_saw_is_lost() {
    let mut place = installed(&["web-1"]).await;
    let begun = place.path("begun");
    apply(&place, &[("one", "", "true"), ("slow", "", &format!("echo begun >> {begun}\nsleep 600"))]);
    let run = start(&place, &[]);
    wait_for("it begins", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 running"]).await;
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it is lost", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 lost"]).await;
    not_runnable(&place, "web-1").await;
    done(&place, &["rollout", "abort", &run]);
    done(&place, &["node", "runnable", "web-1"]);
    let run = start(&place, &[]);
    wait_for("it begins", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 running"]).await;
    place.kill_agent("web-1");
    std::fs::remove_dir_all(place.path("web-1/data/ledger")).unwrap();
    place.resume_agent("web-1");
    wait_for("it is lost", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 lost"]).await;
    assert_eq!(lines(&begun).len(), 2, "nothing ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ended_stays_ended_on_a_node_whose_ledger_is_gone() {
    let mut place = installed(&["web-1"]).await;
    let begun = place.path("begun");
    apply(&place, &[("one", "", &format!("echo begun >> {begun}"))]);
    let run = start(&place, &[]);
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    place.stop_agent("web-1");
    std::fs::remove_dir_all(place.path("web-1/data/ledger")).unwrap();
    place.resume_agent("web-1");
    let status = place.path("web-1/data/status.json");
    wait_for("the agent knows of it", async || {
        std::fs::read_to_string(&status).is_ok_and(|status| status.contains(&run))
    })
    .await;
    let next = start(&place, &[]);
    wait_for("the next one ends", async || state(&place, &next) == "succeeded").await;
    assert_eq!(state(&place, &run), "succeeded");
    assert_eq!(states(&place, &run), ["web-1/0 finished"]);
    assert_eq!(lines(&begun).len(), 2, "nothing ran twice");
    let shown = done(&place, &["why", &format!("target/{run}/web-1")]);
    assert!(!shown.contains("no recipe") && !shown.contains("not configured"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_queued_begins_after_the_whole_run_before_it() {
    let mut place = installed(&["web-1"]).await;
    let out = place.path("out");
    let says = |word: &str, more: &str| format!("echo {word} >> {out}\n{more}");
    apply(&place, &[("one", "", &says("one", "exit 16")), ("two", "", &says("two", "true"))]);
    let run = start(&place, &[]);
    let stops = "goes on when the agent starts again";
    wait_for("it stops between its tasks", async || why(&place, &run, "web-1").contains(stops)).await;
    let behind = start(&place, &["--queue"]);
    let waits = format!("run {run} is in progress on this node");
    wait_for("the other waits", async || why(&place, &behind, "web-1").contains(&waits)).await;
    place.stop_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it ends", async || state(&place, &run) == "succeeded").await;
    wait_for("the other stops too", async || lines(&out).len() == 3).await;
    place.stop_agent("web-1");
    place.resume_agent("web-1");
    wait_for("the other ends", async || state(&place, &behind) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "two", "one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_queued_comes_to_no_node_before_one_that_has_yet_to_come_there() {
    let place = installed(&["web-1", "web-2"]).await;
    let (out, go) = (place.path("out"), place.path("go"));
    let waits = format!("while [ ! -e {go} ]; do sleep 0.1; done\n");
    let says = |word: &str, before: &str| format!("{before}echo {word} $BELLWETHER_NODE >> {out}");
    apply(&place, &[("one", "", &says("one", &waits))]);
    let first = start(&place, &["--batch", "1"]);
    wait_for("it runs", async || states(&place, &first) == ["web-1/0 running"]).await;
    apply(&place, &[("two", "", &says("two", ""))]);
    let second = start(&place, &["--queue", "--batch", "100%"]);
    let behind = format!("run {first} was started before it, and has not come to this node yet");
    wait_for("it says why", async || why(&place, &second, "web-2").contains(&behind)).await;
    std::fs::write(go, "").unwrap();
    wait_for("the second ends", async || state(&place, &second) == "succeeded").await;
    assert_eq!(state(&place, &first), "succeeded");
    for node in ["web-1", "web-2"] {
        let did: Vec<String> = lines(&out).into_iter().filter(|line| line.ends_with(node)).collect();
        assert_eq!(did, [format!("one {node}"), format!("two {node}")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_keeps_other_runs_from_the_node_until_it_is_retried() {
    let place = installed(&["web-1"]).await;
    let (out, mended) = (place.path("out"), place.path("mended"));
    let two = format!("echo two >> {out}\n[ -e {mended} ] || exit 3");
    apply(&place, &[("one", "", &format!("echo one >> {out}")), ("two", "", &two), ("three", "", "true")]);
    let run = start(&place, &[]);
    wait_for("it fails", async || state(&place, &run) == "paused").await;
    wait_for("its failure is told", async || code(&place.run(&["get-failures"])) == 1).await;
    let behind = start(&place, &["--from", "all/three"]);
    let waits = async || why(&place, &behind, "web-1").contains(&format!("not runnable: run {run} failed"));
    wait_for("the other waits", waits).await;
    assert_eq!(done(&place, &["node", "list", "not runnable", "-o", "name"]).trim(), "web-1");
    assert!(done(&place, &["node", "get", "web-1"]).contains("runnable  no since"));
    assert!(text(&place.run(&["why", "node/web-1"]).stdout).contains("bellwether node runnable web-1"));
    let shown = done(&place, &["job", "get", &format!("{run}/web-1")]);
    for part in
        ["reason    task two (2 of 3), step do: exit code 3", "bellwether job logs", "bellwether job retry"]
    {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
    std::fs::write(&mended, "").unwrap();
    let retried = place.run(&["job", "retry", &format!("{run}/web-1"), "--reason", "mended"]);
    let note = text(&retried.stderr);
    assert!(code(&retried) == 0 && note.contains("is paused until the task is complete"), "{note}");
    let all = ["web-1/0 finished", "web-1/1 finished", "web-1/2 finished"];
    wait_for("it goes on", async || states(&place, &run) == all).await;
    assert_eq!(lines(&out), ["one", "two", "two"], "what was complete did not run again");
    wait_for("it goes on by itself", async || state(&place, &run) == "succeeded").await;
    let has_failures = async || code(&place.run(&["get-failures"])) != 0;
    wait_for("nothing of it is failed", async || !has_failures().await).await;
    wait_for("the other runs", async || state(&place, &behind) == "succeeded").await;
    assert_eq!(states(&place, &behind), ["web-1/0 finished"], "it began at the last task");
    let again = place.run(&["job", "retry", &format!("{run}/web-1")]);
    assert!(text(&again.stderr).contains("the run has ended"), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("--from STAGE/TASK"), "{}", text(&again.stderr));
    let why = text(&place.run(&["why", "node/web-1"]).stdout);
    assert!(!why.contains(&run) && !why.contains(&behind), "runs that have succeeded: {why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_a_person_made_not_runnable_begins_no_run_until_that_ends() {
    let place = installed(&["web-1"]).await;
    apply(&place, &[("one", "", "true")]);
    done(&place, &["node", "runnable", "web-1", "--no", "--reason", "its disk is replaced"]);
    let run = start(&place, &[]);
    let waits = async || why(&place, &run, "web-1").contains("its disk is replaced");
    wait_for("it waits, and says why", waits).await;
    assert!(states(&place, &run).is_empty());
    done(&place, &["node", "runnable", "web-1"]);
    wait_for("it runs", async || state(&place, &run) == "succeeded").await;
    let unchanged = place.run(&["node", "runnable", "web-1"]);
    assert!(text(&unchanged.stderr).contains("unchanged"), "{}", text(&unchanged.stderr));
    let wrong = place.run(&["workflow", "run", "work", "-l", "all", "--from", "all/nine"]);
    assert!(text(&wrong.stderr).contains("its tasks: all/one"), "{}", text(&wrong.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_with_attempts_fails_after_the_last_of_them() {
    let place = installed(&["web-1"]).await;
    let out = place.path("out");
    let script = format!("echo try >> {out}\n[ $(wc -l < {out}) -ge 3 ] || exit 3");
    let policy = "idempotent: true\nretry: {attempts: 2}\n";
    apply(&place, &[("flaky", policy, &script)]);
    let run = start(&place, &[]);
    wait_for("it fails", async || state(&place, &run) == "paused").await;
    assert_eq!(lines(&out).len(), 2);
    done(&place, &["job", "retry", &format!("{run}/web-1")]);
    wait_for("it is complete", async || states(&place, &run) == ["web-1/0 finished"]).await;
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    assert!(done(&place, &["job", "get", &format!("{run}/web-1")]).contains("attempts  3"));
    let refused =
        "kind: task\nname: once\nretry: {attempts: 2}\nsteps: [{name: do, script: {text: 'true'}}]\n";
    let refused = place.run_with(&["apply", "-f", "-"], refused);
    assert!(text(&refused.stderr).contains("mark it as idempotent"), "{}", text(&refused.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_left_in_the_background_ends_with_it() {
    let place = installed(&["web-1"]).await;
    let pids = place.path("pids");
    let script = format!(
        "sleep 600 & echo $! >> {pids}\n(nohup sleep 600 >/dev/null 2>&1 & echo $! >> {pids})\nsetsid sleep 600 & echo $! >> {pids}"
    );
    apply(&place, &[("leaves", "", &script)]);
    let run = start(&place, &[]);
    wait_for("it has ended", async || states(&place, &run) == ["web-1/0 finished"]).await;
    let left = lines(&pids);
    assert_eq!(left.len(), 3);
    let runs = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    wait_for("nothing of it is left", async || !left.iter().any(runs)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_does_not_begin_once_another_failed_before_it() {
    let place = installed(&["web-1"]).await;
    let (gate, out) = (place.path("gate"), place.path("out"));
    let fails =
        format!("while [ ! -e {gate} ]; do sleep 0.1; done\n[ -e {out} ] || exit 3\necho again >> {out}");
    apply(&place, &[("fails", "", &fails)]);
    let first = start(&place, &[]);
    wait_for("it runs", async || states(&place, &first) == ["web-1/0 running"]).await;
    apply(&place, &[("next", "", &format!("echo next >> {out}"))]);
    let behind = [start(&place, &["--queue"]), start(&place, &["--queue"])];
    let waits = format!("run {first} is in progress on this node");
    for run in &behind {
        wait_for("it waits", async || why(&place, run, "web-1").contains(&waits)).await;
    }
    std::fs::write(gate, "").unwrap();
    wait_for("it fails", async || states(&place, &first) == ["web-1/0 failed"]).await;
    for run in &behind {
        let says = async || why(&place, run, "web-1").contains(&format!("run {first} failed"));
        wait_for("it says why it waits", says).await;
        assert!(states(&place, run).is_empty(), "it has taken none of its tasks");
    }
    assert!(lines(&out).is_empty());
    let marked = async || done(&place, &["node", "list", "not runnable", "-o", "name"]).contains("web-1");
    wait_for("the node is not runnable", marked).await;
    std::fs::write(&out, "mended\n").unwrap();
    done(&place, &["job", "retry", &format!("{first}/web-1")]);
    for run in &behind {
        wait_for("it runs", async || state(&place, run) == "succeeded").await;
    }
    assert_eq!(states(&place, &first), ["web-1/0 finished"]);
    assert_eq!(lines(&out), ["mended", "again", "next", "next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_does_not_begin_on_a_node_that_a_person_made_not_runnable() {
    let place = installed(&["web-1"]).await;
    let (gate, out) = (place.path("gate"), place.path("out"));
    apply(
        &place,
        &[("slow", "", &format!("while [ ! -e {gate} ]; do sleep 0.1; done")), ("last", "", "true")],
    );
    let first = start(&place, &[]);
    wait_for("it runs", async || states(&place, &first) == ["web-1/0 running"]).await;
    apply(&place, &[("next", "", &format!("echo next >> {out}"))]);
    let behind = start(&place, &["--queue"]);
    let waits = format!("run {first} is in progress on this node");
    wait_for("it waits", async || why(&place, &behind, "web-1").contains(&waits)).await;
    done(&place, &["node", "runnable", "web-1", "--no", "--reason", "its disk is replaced"]);
    let stored = async || {
        let order = place.path("web-1/data/ledger/order.json");
        std::fs::read_to_string(order).is_ok_and(|order| order.contains("its disk is replaced"))
    };
    wait_for("the node has the order", stored).await;
    std::fs::write(gate, "").unwrap();
    wait_for("the run that had begun goes on", async || state(&place, &first) == "succeeded").await;
    let says = async || why(&place, &behind, "web-1").contains("its disk is replaced");
    wait_for("the other says why it waits", says).await;
    assert!(lines(&out).is_empty());
    done(&place, &["node", "runnable", "web-1"]);
    wait_for("it runs", async || state(&place, &behind) == "succeeded").await;
}
