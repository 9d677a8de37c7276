//! Task lists on real processes: what a node has not begun can be changed, also while its last task runs; a run takes the place of another
//! one only when that is said.

use serde_json::Value;

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_jobs::states;
use crate::story_workflows::{apply, installed, lines, start, state};

/// The tasks of the run on a node, each with its state.
fn tasks(place: &Setup, node: &str) -> Vec<String> {
    let list: Value =
        serde_json::from_str(&done(place, &["job", "tasks", "list", node, "-o", "json"])).unwrap();
    let word =
        |task: &Value, field: &str| task.get(field).and_then(Value::as_str).unwrap_or("pending").to_owned();
    let listed = list.get("tasks").and_then(Value::as_array).unwrap();
    listed.iter().map(|task| format!("{} {}", word(task, "task"), word(task, "state"))).collect()
}

/// Tasks that each note their name, the first of which waits for a file of this name.
fn noting<'a>(out: &str, go: &str, names: &[&'a str]) -> Vec<(&'a str, &'static str, String)> {
    let waits = format!("while ! [ -e {go} ]; do sleep 0.05; done\n");
    let script = |index: usize, name: &str| {
        let before = if index == 0 { waits.as_str() } else { "" };
        format!("{before}echo {name} >> {out}")
    };
    names.iter().enumerate().map(|(index, name)| (*name, "", script(index, name))).collect()
}

fn applied(place: &Setup, tasks: &[(&str, &str, String)]) {
    let tasks: Vec<(&str, &str, &str)> =
        tasks.iter().map(|(name, policy, script)| (*name, *policy, script.as_str())).collect();
    apply(place, &tasks);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_that_a_node_has_not_begun_can_be_changed_and_those_that_it_has_cannot() {
    let place = installed(&["web-1", "web-2"]).await;
    let (out, go) = (place.path("out"), place.path("go"));
    applied(&place, &noting(&out, &go, &["one", "two", "three"]));
    let extra =
        format!("kind: task\nname: extra\nsteps: [{{name: do, script: {{text: 'echo extra >> {out}'}}}}]\n");
    assert_eq!(code(&place.run_with(&["apply", "-f", "-"], &extra)), 0);
    let run = done(&place, &["workflow", "run", "work", "-l", "name = web-1", "-o", "name"]);
    let run = run.trim().trim_start_matches("run/");
    wait_for("the first task runs", async || {
        tasks(&place, "web-1") == ["one running", "two pending", "three pending"]
    })
    .await;

    let begun = place.run(&["job", "tasks", "remove", "web-1", "one"]);
    assert_eq!(code(&begun), 7);
    assert!(text(&begun.stderr).contains("one was begun already"), "{}", text(&begun.stderr));
    let behind = place.run(&["job", "tasks", "add", "web-1", "--at", "3", "extra"]);
    assert!(text(&behind.stderr).contains("position 3 is behind the end"), "{}", text(&behind.stderr));
    let unknown = place.run(&["job", "tasks", "add", "web-1", "extar"]);
    assert!(text(&unknown.stderr).contains("did you mean extra?"), "{}", text(&unknown.stderr));
    let nowhere = place.run(&["job", "tasks", "list", "web-2"]);
    assert!(text(&nowhere.stderr).contains("no run is in progress there"), "{}", text(&nowhere.stderr));
    let absent = place.run(&["job", "tasks", "remove", "web-1", "nope", "all/nope"]);
    let said = format!("{}{}", text(&absent.stdout), text(&absent.stderr));
    assert!(said.contains("unchanged; the list does not contain nope, all/nope"), "{said}");
    for asked in [
        ["node", "jobs", "web-9"].as_slice(),
        &["job", "list", "--node", "web-9"],
        &["job", "list", "--run", "work-999"],
        &["job", "list", "--run", "work-999", "--count"],
        &["run", "list", "--node", "web-9"],
        &["job", "tasks", "list", "web-9"],
    ] {
        let missing = place.run(asked);
        let said = text(&missing.stderr);
        assert!(code(&missing) == 1 && said.contains("cannot find"), "{asked:?}: {said}");
        assert!(said.contains("hint: "), "{asked:?}: {said}");
    }
    let none = done(&place, &["job", "list", "-l", "task = nope"]);
    assert!(none.contains("no job matches the filter"), "{none}");
    assert!(done(&place, &["node", "jobs", "web-2"]).contains("no job on node web-2"));

    for _ in 0..2 {
        done(&place, &["job", "tasks", "add", "web-1", "--at", "0", "extra", "--reason", "first"]);
    }
    for _ in 0..2 {
        done(&place, &["job", "tasks", "remove", "web-1", "two"]);
    }
    assert_eq!(tasks(&place, "web-1"), ["one running", "extra pending", "three pending"]);
    let events = done(&place, &["events", "--about", &format!("entity/{run}")]);
    assert_eq!(
        events.matches("run.tasks_changed").count(),
        2,
        "what is said again changes nothing: {events}"
    );
    std::fs::write(&go, "").unwrap();
    wait_for("the run ends", async || state(&place, run) == "succeeded").await;
    assert_eq!(lines(&out), ["one", "extra", "three"]);
    let job = done(&place, &["job", "get", &format!("{run}/web-1/1"), "--script"]);
    assert!(job.contains("echo extra"), "{job}");
    let over = place.run(&["job", "tasks", "add", "web-1", "extra", "--run", run]);
    assert!(text(&over.stderr).contains("every task is complete there"), "{}", text(&over.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_added_while_the_last_one_runs_is_run() {
    let place = installed(&["web-1"]).await;
    let (out, go) = (place.path("out"), place.path("go"));
    let claims = "claims: [\"update run\"]\n";
    let script = format!("while ! [ -e {go} ]; do sleep 0.05; done\necho last >> {out}");
    let more = format!("echo more >> {out}");
    apply(&place, &[("more", "", &more), ("last", claims, &script)]);
    let run = start(&place, &["--from", "all/last"]);
    wait_for("the last task runs", async || states(&place, &run) == ["web-1/0 running"]).await;
    done(&place, &["job", "tasks", "add", "web-1", "more", "all/more"]);
    std::fs::write(&go, "").unwrap();
    wait_for("the run ends", async || state(&place, &run) == "succeeded").await;
    assert_eq!(lines(&out), ["last", "more", "more"]);
    assert_eq!(states(&place, &run), ["web-1/0 finished", "web-1/1 finished", "web-1/2 finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_the_place_of_another_one_when_that_is_forced() {
    let place = installed(&["web-1", "web-2"]).await;
    let (out, go) = (place.path("out"), place.path("go"));
    applied(&place, &noting(&out, &go, &["one", "two"]));
    let first = start(&place, &["--batch", "100%"]);
    let running = ["web-1/0 running", "web-2/0 running"];
    wait_for("it runs on both", async || states(&place, &first) == running).await;
    let refused = place.run(&["workflow", "run", "work", "-l", "all"]);
    assert_eq!(code(&refused), 7);
    let said = text(&refused.stderr);
    assert!(
        said.contains("on 2 of its nodes") && said.contains("--queue") && said.contains("--force"),
        "{said}"
    );
    let next = done(
        &place,
        &["workflow", "run", "work", "-l", "name = web-1", "--from", "all/two", "--force", "-o", "name"],
    );
    let next = next.trim().trim_start_matches("run/");
    wait_for("the new one ends", async || state(&place, next) == "succeeded").await;
    wait_for("the old one left it", async || {
        states(&place, &first) == ["web-1/0 cancelled", "web-2/0 running"]
    })
    .await;
    assert_eq!(lines(&out), ["two"], "what ran was ended");
    std::fs::write(&go, "").unwrap();
    wait_for("the old one ends on the other node", async || state(&place, &first) == "succeeded").await;
    assert_eq!(lines(&out), ["two", "one", "two"]);

    std::fs::remove_file(&go).unwrap();
    let third = start(&place, &["--batch", "100%"]);
    wait_for("it runs on both", async || states(&place, &third) == running).await;
    let last = start(&place, &["--batch", "100%", "--from", "all/two", "--force"]);
    wait_for("the run that lost all its nodes is aborted", async || state(&place, &third) == "aborted").await;
    wait_for("the last one ends", async || state(&place, &last) == "succeeded").await;
    assert_eq!(states(&place, &third), ["web-1/0 cancelled", "web-2/0 cancelled"]);

    let running = start(&place, &["--batch", "100%"]);
    wait_for("it runs on both", async || states(&place, &running) == ["web-1/0 running", "web-2/0 running"])
        .await;
    let queued = start(&place, &["--batch", "100%", "--queue"]);
    let last = start(&place, &["--batch", "100%", "--from", "all/two", "--force"]);
    for given_up in [&running, &queued] {
        wait_for("it is aborted", async || state(&place, given_up) == "aborted").await;
        let events = done(&place, &["events", "--about", &format!("entity/{given_up}")]);
        assert!(events.contains("web-1, web-2"), "{events}");
    }
    wait_for("nothing is before it", async || state(&place, &last) == "succeeded").await;
}
