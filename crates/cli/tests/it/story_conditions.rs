//! Conditions of tasks on real processes: a task whose condition does not hold on a node is skipped there, and the run goes on; one that
//! cannot be decided fails; what no condition is, is refused when it is applied.

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_jobs::{not_runnable, states};
use crate::story_workflows::{apply, installed, lines, start, state, why};

/// A task document's condition.
fn when(condition: &str) -> String {
    format!("if: {condition:?}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_runs_where_its_condition_holds_and_is_skipped_elsewhere() {
    let place = installed(&["web-1", "web-2"]).await;
    done(&place, &["node", "set", "web-1", "role=db", "-q"]);
    done(&place, &["node", "set", "web-2", "role=web", "-q"]);
    let out = place.path("out");
    let says = |word: &str| format!("echo \"{word} $BELLWETHER_NODE {{{{ facts.cpus }}}}\" >> {out}");
    let probe = "echo '{\"is_first\": '$([ \"$BELLWETHER_NODE\" = web-1 ] && echo true || echo false)'}' \
        > \"$BELLWETHER_OUTPUTS\"";
    apply(
        &place,
        &[
            ("probe", "", probe),
            ("params", &when("params.role == 'db'"), &says("params")),
            ("outputs", &when("not outputs['probe'].is_first"), &says("outputs")),
            ("facts", &when("facts.cpus >= 1 and node.name == 'web-2'"), &says("facts")),
            ("never", &when("outputs.params.none | default(false)"), &says("never")),
        ],
    );
    let run = start(&place, &[]);
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    let all = [
        "web-1/0 finished",
        "web-1/1 finished",
        "web-1/2 skipped",
        "web-1/3 skipped",
        "web-1/4 skipped",
        "web-2/0 finished",
        "web-2/1 skipped",
        "web-2/2 finished",
        "web-2/3 finished",
        "web-2/4 skipped",
    ];
    wait_for("all is told", async || states(&place, &run) == all).await;
    let mut said: Vec<String> =
        lines(&out).iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    said.sort();
    assert_eq!(said, ["facts web-2", "outputs web-2", "params web-1"]);
    let job = format!("{run}/web-1/2");
    let shown = done(&place, &["job", "get", &job]);
    for part in ["if        not outputs['probe'].is_first", "state     skipped", "exit      -", "attempts  0"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(done(&place, &["job", "list", "state = skipped", "--count"]).trim(), "5");
    let followed = place.run(&["job", "logs", &job, "-f"]);
    assert_eq!((code(&followed), text(&followed.stdout)), (0, String::new()));
    assert!(done(&place, &["run", "list"]).contains("2 of 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_cannot_be_decided_fails_the_job_and_is_asked_again_by_a_retry() {
    let place = installed(&["web-1"]).await;
    let out = place.path("out");
    apply(
        &place,
        &[("one", "", "true"), ("two", &when("params.role == 'db'"), &format!("echo two >> {out}"))],
    );
    let run = start(&place, &[]);
    wait_for("it fails", async || state(&place, &run) == "paused").await;
    let reason = why(&place, &run, "web-1");
    assert!(
        reason.contains("task two (2 of 2), if: line 1, column 8: `params.role` is undefined"),
        "{reason}"
    );
    wait_for("it is told", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 failed"]).await;
    not_runnable(&place, "web-1").await;
    let logs = place.run(&["node", "logs", "web-1"]);
    assert!(text(&logs.stdout).contains("`params.role` is undefined"), "{}", text(&logs.stdout));
    done(&place, &["node", "set", "web-1", "role=text", "-q"]);
    done(&place, &["job", "retry", &format!("{run}/web-1")]);
    wait_for("it is skipped", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 skipped"]).await;
    wait_for("the run succeeds", async || state(&place, &run) == "succeeded").await;
    assert!(lines(&out).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_task_stays_skipped_and_one_that_began_goes_on_after_a_restart() {
    let mut place = installed(&["web-1"]).await;
    let (begun, go, out) = (place.path("begun"), place.path("go"), place.path("out"));
    done(&place, &["node", "set", "web-1", "role=web", "-q"]);
    let slow = format!("echo begun >> {begun}\nwhile [ ! -e {go} ]; do sleep 0.1; done");
    let slow_when = format!("idempotent: true\n{}", when("params.role == 'web'"));
    let skipped = format!("echo skipped >> {out}");
    apply(&place, &[("skipped", &when("params.role == 'db'"), &skipped), ("slow", &slow_when, &slow)]);
    let run = start(&place, &[]);
    wait_for("the second begins", async || lines(&begun).len() == 1).await;
    done(&place, &["node", "set", "web-1", "role=db", "-q"]);
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it begins again", async || lines(&begun).len() == 2).await;
    std::fs::write(&go, "").unwrap();
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    wait_for("all is told", async || states(&place, &run) == ["web-1/0 skipped", "web-1/1 finished"]).await;
    assert!(lines(&out).is_empty());
}

/// What `apply` says of a task with this condition.
fn refused(place: &Setup, condition: &str) -> String {
    let task = format!(
        "kind: task\nname: two\n{}steps: [{{name: do, script: {{text: 'true'}}}}]\n",
        when(condition)
    );
    let applied = place.run_with(&["apply", "-f", "-"], &task);
    assert_ne!(code(&applied), 0, "{condition}");
    text(&applied.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_condition_is_refused_with_its_document_and_its_field() {
    let place = Setup::new().await;
    for (condition, reason) in [
        ("params.role ==", "if: line 1, column 13: syntax error"),
        ("param.role == 'db'", "if: line 1, column 1: `param` is not known; the variables are params, node,"),
    ] {
        let said = refused(&place, condition);
        assert!(said.contains(reason) && said.contains("task/two"), "{said}");
    }
    let explained = done(&place, &["explain", "task.if"]);
    assert!(explained.contains("skipped"), "{explained}");
}
