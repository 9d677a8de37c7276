//! Runs that are undone, on real processes: by themselves when they fail, and on request; on the nodes that began them, before all else.

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_workflows::{installed, lines, reports, state};

/// Applies a workflow `work` that `unwork` undoes, each of one task that notes its node in `out`; `work` then runs this script.
fn apply(place: &Setup, out: &str, then: &str) {
    let task = |name: &str, script: &str| {
        format!(
            "kind: task\nname: {name}\nsteps: [{{name: do, script: {{text: \"echo {name} $BELLWETHER_NODE >> {out}\\n{script}\\n\"}}}}]\n---\n\
             kind: stage\nname: {name}\ntasks: [{name}]\n---\n"
        )
    };
    let workflows = "kind: workflow\nname: work\nstages: [work]\nrollback: unwork\n---\n\
                     kind: workflow\nname: unwork\nstages: [unwork]\n---\n\
                     kind: workflow\nname: other\nstages: [unwork]\n";
    let documents = format!("{}{}{workflows}", task("work", then), task("unwork", "true"));
    let applied = place.run_with(&["apply", "-f", "-"], &documents);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
}

fn run(place: &Setup, args: &[&str]) -> String {
    let run = done(place, &[args, &["-o", "name"]].concat());
    run.trim().trim_start_matches("run/").to_owned()
}

fn runnable(place: &Setup) -> Vec<String> {
    let listed = done(place, &["node", "list", "runnable", "-o", "name"]);
    listed.lines().map(|line| line.trim_start_matches("node/").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_is_undone_where_it_began_before_what_waits_there() {
    let place = installed(&["web-1", "web-2", "web-3"]).await;
    let (out, go) = (place.path("out"), place.path("go"));
    apply(&place, &out, &format!("while [ ! -e {go} ]; do sleep 0.05; done; [ $BELLWETHER_NODE != web-2 ]"));
    let flags = ["workflow", "run", "work", "-l", "all", "--batch", "2", "--on-failure", "rollback"];
    let first = run(&place, &flags);
    wait_for("two nodes began it", async || lines(&out).len() == 2).await;
    let other = run(&place, &["workflow", "run", "other", "-l", "name = web-2", "--queue"]);
    std::fs::write(&go, "").unwrap();
    wait_for("it is rolled back", async || state(&place, &first) == "rolled_back").await;
    wait_for("the other run ends", async || state(&place, &other) == "succeeded").await;
    // What undoes it may still be at work on the other node.
    let undone = || {
        let shown = done(&place, &["run", "get", &format!("run/{first}")]);
        shown.lines().find_map(|line| line.strip_prefix("rollback  undone by run ")).map(str::to_owned)
    };
    wait_for("it is undone", async || undone().is_some()).await;
    let slip = place.run(&["run", "get", &format!("run/{}", first.replace("work", "wrok"))]);
    assert!(text(&slip.stderr).contains(&format!("did you mean {first}?")), "{}", text(&slip.stderr));
    let undo = undone().unwrap();
    done(&place, &["rollout", "status", &undo, "--wait", "--timeout", "60s"]);
    let mut did = lines(&out);
    // The other run wrote the last line of its node: it waited until that was undone.
    let of_second = did.iter().filter(|line| line.ends_with("web-2")).count();
    assert_eq!(of_second, 3, "{did:?}");
    assert_eq!(did.iter().filter(|line| line.ends_with("web-3")).count(), 0, "{did:?}");
    did.sort();
    did.dedup();
    assert_eq!(did, ["unwork web-1", "unwork web-2", "work web-1", "work web-2"]);
    let end = |run: &str| {
        let jobs = done(&place, &["job", "list", "--run", run, "-o", "json"]);
        let jobs: Vec<serde_json::Value> = serde_json::from_str(&jobs).unwrap();
        let of_second = jobs.iter().find(|job| job.get("node").is_some_and(|node| node == "web-2"));
        let ended = of_second.and_then(|job| job.get("ended")?.as_str().map(str::to_owned));
        ended.unwrap_or_else(|| panic!("{run}: {jobs:?}"))
    };
    assert!(end(&undo) <= end(&other), "what undoes a run is not behind others");
    wait_for("all nodes run others", async || runnable(&place) == ["web-1", "web-2", "web-3"]).await;
    let listed = |filter: &str| done(&place, &["run", "list", filter, "-o", "name"]);
    for filter in ["state = \"rolled back\"", "state = rolled_back", "undone_by", "undo_state = succeeded"] {
        assert_eq!(listed(filter).trim(), first, "{filter}");
    }
    assert_eq!(listed(&format!("undoes = {first}")).trim(), undo);
    let wide = done(&place, &["run", "list", "-o", "wide", "--sort", "started"]);
    let wide: Vec<&str> = wide.lines().collect();
    assert!(wide.len() == 4 && wide[0].contains("UNDOES") && wide[1].contains(&undo), "{wide:?}");
    wait_for("what failed is no state of its node any more", async || {
        done(&place, &["node", "list", "status.configure = failed", "-o", "name"]).is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_undone_once_on_request_also_while_it_is_in_progress() {
    let mut place = installed(&["web-1", "web-2"]).await;
    let out = place.path("out");
    apply(&place, &out, "sleep 600");
    let first = run(&place, &["workflow", "run", "work", "-l", "all", "--batch", "1"]);
    let other = run(&place, &["workflow", "run", "other", "-l", "all", "--queue"]);
    let nothing = place.run(&["run", "undo", &other]);
    assert_eq!(code(&nothing), 7);
    assert!(text(&nothing.stderr).contains("named no other one that undoes it"), "{}", text(&nothing.stderr));
    wait_for("a node began it", async || lines(&out).len() == 1).await;
    assert!(done(&place, &["run", "get", &first]).contains("start it with: bellwether run undo"));
    let busy = place.run(&["run", "undo", &first]);
    assert!(text(&busy.stderr).contains("--queue"), "{}", text(&busy.stderr));
    let would = text(&place.run(&["run", "undo", &first, "--dry-run", "--force"]).stderr);
    assert!(would.contains("would run 1 task on 1 node"), "{would}");
    assert_eq!(state(&place, &first), "in_progress", "nothing is ended in vain");
    for shown in [done(&place, &["run", "list"]), done(&place, &["run", "get", &first])] {
        assert!(shown.contains("in progress") && !shown.contains("in_progress"), "{shown}");
    }

    let undo = run(&place, &["run", "undo", &first, "--force"]);
    place.kill_server();
    place.start_server().await;
    wait_for("the agents are back", async || reports(&place, "web-1") && reports(&place, "web-2")).await;
    wait_for("it is undone", async || state(&place, &undo) == "succeeded").await;
    assert_eq!(state(&place, &first), "aborted");
    wait_for("the other run ends", async || state(&place, &other) == "succeeded").await;
    let mut did = lines(&out);
    did.sort();
    assert_eq!(did, ["unwork web-1", "unwork web-2", "work web-1"], "the other run lost web-1");
    let again = place.run(&["run", "undo", &first]);
    assert_eq!(code(&again), 7);
    let said = text(&again.stderr);
    assert!(said.contains(&format!("run {undo} undoes it already")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_a_run_waits_for_what_undoes_it_no_longer_than_was_said() {
    let place = installed(&["web-1"]).await;
    let out = place.path("out");
    apply(&place, &out, "false");
    let undo = format!("while [ ! -e {} ]; do sleep 0.05; done", place.path("go"));
    let task = format!("kind: task\nname: unwork\nsteps: [{{name: do, script: {{text: \"{undo}\"}}}}]\n");
    assert_eq!(code(&place.run_with(&["apply", "-f", "-"], &task)), 0);
    let watch = ["workflow", "run", "work", "-l", "all", "--on-failure", "rollback", "-w", "--timeout", "5s"];
    let watched = place.run(&watch);
    let said = text(&watched.stderr);
    assert_eq!(code(&watched), 3, "{said}");
    assert!(said.contains("run unwork-") && said.contains("did not end within 5s"), "{said}");
    let listed = done(&place, &["run", "list", "undone_by", "-o", "name"]);
    let why = done(&place, &["why", &format!("run/{}", listed.trim())]);
    assert!(why.contains("; run unwork-") && why.contains("undoes it, and is in progress"), "{why}");
    std::fs::write(place.path("go"), "").unwrap();
    wait_for("it is undone", async || {
        done(&place, &["why", &format!("run/{}", listed.trim())]).contains("; undone by run unwork-")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_was_aborted_is_finished_by_another_where_it_was_not_done() {
    let place = installed(&["web-1", "web-2"]).await;
    let out = place.path("out");
    apply(&place, &out, "true");
    let first = run(&place, &["workflow", "run", "work", "-l", "all", "--batch", "100%"]);
    wait_for("it ends", async || state(&place, &first) == "succeeded").await;
    done(&place, &["node", "pause", "web-2", "--reason", "later"]);
    let undo = run(&place, &["run", "undo", &first]);
    wait_for("one node is done", async || lines(&out).contains(&"unwork web-1".to_owned())).await;
    wait_for("it is known", async || done(&place, &["run", "get", &undo]).contains("2, 1 done")).await;
    let shown = done(&place, &["run", "get", &first]);
    assert!(shown.contains(&format!("run {undo} undoes it: ")), "{shown}");
    done(&place, &["rollout", "abort", &undo]);
    wait_for("it is aborted", async || state(&place, &undo) == "aborted").await;
    let shown = done(&place, &["run", "get", &first]);
    assert!(shown.contains(&format!("the rest with: bellwether run undo {first}")), "{shown}");
    done(&place, &["node", "resume", "web-2"]);
    let rest = run(&place, &["run", "undo", &first]);
    wait_for("the rest is done", async || state(&place, &rest) == "succeeded").await;
    let mut did = lines(&out);
    did.sort();
    assert_eq!(did, ["unwork web-1", "unwork web-2", "work web-1", "work web-2"]);
    assert_eq!(code(&place.run(&["run", "undo", &first])), 7);
}
