//! Logs of jobs on real processes: they stay on the node, and a reader gets the part of one job, from any byte on, while it runs and
//! after that; neither a reader that goes away nor an agent that starts again leaves anything waiting.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_workflows::{apply, installed, start, state};

/// A reader that follows a log.
struct Follower {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Follower {
    fn of(place: &Setup, job: &str) -> Self {
        let mut child = place
            .command(&["job", "logs", job, "-f"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line, once it is there; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The rest, and the exit code.
    fn end(mut self) -> (Vec<String>, i32) {
        let rest = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty())).collect();
        (rest, self.child.wait().unwrap().code().unwrap())
    }
}

/// Whether a job is in this state.
fn is(place: &Setup, job: &str, state: &str) -> bool {
    text(&place.run(&["job", "get", job]).stdout).contains(&format!("state     {state}"))
}

/// A script that waits until a file exists.
fn until(path: &str) -> String {
    format!("while [ ! -e {path} ]; do sleep 0.05; done")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_while_the_job_runs_and_read_from_any_byte_on_after_that() {
    let place = installed(&["web-1"]).await;
    let gate = place.path("gate");
    let script = format!("echo first\n{}\necho second\nprintf third", until(&gate));
    apply(&place, &[("one", "", "echo of another job"), ("two", "", &script)]);
    let run = start(&place, &[]);
    let job = format!("{run}/web-1/1");
    wait_for("it runs", async || is(&place, &job, "running")).await;
    let mut follower = Follower::of(&place, &job);
    assert!(follower.line().starts_with("--- "), "the command that runs");
    assert_eq!(follower.line(), "first");
    let so_far = done(&place, &["job", "logs", &job]);
    assert!(so_far.ends_with("first\n") && !so_far.contains("another"), "{so_far}");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(follower.line(), "second");
    let (rest, code) = follower.end();
    assert_eq!((rest.as_slice(), code), (["third", "--- exit code 0"].map(str::to_owned).as_slice(), 0));
    let whole = done(&place, &["job", "logs", &format!("{run}/web-1")]);
    let offset = whole.find("second").unwrap().to_string();
    let resumed = done(&place, &["job", "logs", &job, "--offset", &offset]);
    assert!(resumed.starts_with("second\nthird"), "{resumed}");
    let first = done(&place, &["job", "logs", &format!("{run}/web-1/0"), "-f"]);
    assert!(first.contains("of another job") && !first.contains("second"), "{first}");
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    done(&place, &["run", "delete", &run, "--yes"]);
    let gone = place.run(&["job", "logs", &job]);
    assert!(text(&gone.stderr).contains("cannot find run"), "{}", text(&gone.stderr));
    let kept = place.path(&format!("web-1/data/logs/jobs/{run}"));
    wait_for("the agent forgets it", async || !std::path::Path::new(&kept).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_over_a_restart_of_the_agent_and_ends_with_the_job() {
    let mut place = installed(&["web-1"]).await;
    let gate = place.path("gate");
    let script = format!("echo begun\n{}\necho done; exit 3", until(&gate));
    apply(&place, &[("slow", "idempotent: true\n", &script)]);
    let run = start(&place, &[]);
    let job = format!("{run}/web-1/0");
    wait_for("it runs", async || is(&place, &job, "running")).await;
    let mut follower = Follower::of(&place, &job);
    follower.line();
    assert_eq!(follower.line(), "begun");
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    assert!(follower.line().starts_with("--- "), "it begins again");
    assert_eq!(follower.line(), "begun");
    std::fs::write(&gate, "").unwrap();
    let (rest, exit) = follower.end();
    assert_eq!((rest.first().unwrap().as_str(), exit), ("done", 1), "{rest:?}");
    wait_for("it failed", async || is(&place, &job, "failed")).await;
    place.kill_agent("web-1");
    wait_for("it is silent", async || {
        let read = place.run(&["job", "logs", &job]);
        text(&read.stderr).contains("connected to no server")
    })
    .await;
    let silent = place.run(&["job", "logs", &job]);
    assert_eq!(code(&silent), 7);
    assert!(text(&silent.stderr).contains("bellwether node logs web-1"), "{}", text(&silent.stderr));
    assert!(done(&place, &["node", "logs", "web-1"]).contains("done"));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_go_away_make_room_and_an_aborted_run_ends_those_that_follow() {
    let place = installed(&["web-1"]).await;
    apply(&place, &[("slow", "", "echo begun\nsleep 600")]);
    let run = start(&place, &[]);
    let job = format!("{run}/web-1/0");
    wait_for("it runs", async || is(&place, &job, "running")).await;
    for _ in 0..3 {
        let mut all: Vec<Follower> = (0..8).map(|_| Follower::of(&place, &job)).collect();
        for follower in &mut all {
            follower.line();
            assert_eq!(follower.line(), "begun");
        }
        for mut follower in all {
            follower.child.kill().unwrap();
            follower.child.wait().unwrap();
        }
    }
    let mut follower = Follower::of(&place, &job);
    follower.line();
    assert_eq!(follower.line(), "begun");
    done(&place, &["rollout", "abort", &run]);
    assert_eq!(follower.end().1, 1);
    assert!(is(&place, &job, "cancelled"));
    let gone = async || text(&place.run(&["job", "logs", &job]).stderr).contains("removes its logs");
    wait_for("its log is gone", gone).await;
    let said = text(&place.run(&["job", "logs", &job]).stderr);
    assert!(said.contains(&format!("bellwether job get {job}")) && !said.contains("logs/jobs"), "{said}");
}
