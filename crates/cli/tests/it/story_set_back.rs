//! A ledger that was copied back from an older directory, or of which files were removed, on real processes: what the node told of a run and
//! does not know any more is lost, its tasks do not run again, and whoever waits for it is told.

use std::process::{Child, Stdio};

use crate::place::{Setup, code, copied, done, text, wait_for};
use crate::story_jobs::states;
use crate::story_workflows::{apply, installed, lines, start, why};

/// A reader that follows the log of a job of a run.
fn follows(place: &Setup, run: &str, index: usize) -> Child {
    let job = format!("{run}/web-1/{index}");
    place.command(&["job", "logs", &job, "-f"]).stdout(Stdio::null()).spawn().unwrap()
}

/// What becomes of a reader of a job whose end nobody sees, and what a person is told who asks for it again.
async fn nobody_waits_for_it(place: &Setup, run: &str, mut reader: Child, from: &str) {
    wait_for("its log ends", async || reader.try_wait().unwrap().is_some()).await;
    assert_eq!(reader.wait().unwrap().code(), Some(1));
    wait_for("the run has failed there", async || why(place, run, "web-1").contains("failed")).await;
    let next = format!("bellwether workflow run work -l 'name = \"web-1\"' --from {from}");
    let retried = place.run(&["job", "retry", &format!("{run}/web-1")]);
    let told = text(&retried.stderr);
    assert_eq!(code(&retried), 7, "{told}");
    assert!(
        told.contains("the ledger of the node does not know what it reported") && told.contains(&next),
        "{told}"
    );
    let told = why(place, run, "web-1");
    assert!(told.contains("lost") && told.contains(&next), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_which_the_ledger_lost_its_files_is_lost_and_its_log_ends() {
    let mut place = installed(&["web-1"]).await;
    let begun = place.path("begun");
    apply(&place, &[("one", "", "true"), ("slow", "", &format!("echo begun >> {begun}\nsleep 600"))]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&begun).len() == 1).await;
    wait_for("it is told", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 running"]).await;
    let reader = follows(&place, &run, 1);
    place.kill_agent("web-1");
    std::fs::remove_dir_all(place.path(&format!("web-1/data/ledger/runs/{run}"))).unwrap();
    std::fs::remove_file(place.path(&format!("web-1/data/ledger/begun/{run}"))).unwrap();
    place.resume_agent("web-1");
    wait_for("it is lost", async || states(&place, &run) == ["web-1/0 finished", "web-1/1 lost"]).await;
    nobody_waits_for_it(&place, &run, reader, "all/slow").await;
    assert_eq!(lines(&begun).len(), 1, "nothing ran twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_ledger_that_was_copied_back_does_not_know_is_lost_and_not_run_again() {
    let mut place = installed(&["web-1"]).await;
    let (begun, ledger, copy) = (place.path("begun"), place.path("web-1/data/ledger"), place.path("copy"));
    place.stop_agent("web-1");
    copied(&ledger, &copy);
    place.resume_agent("web-1");
    apply(&place, &[("slow", "", &format!("echo begun >> {begun}\nsleep 600"))]);
    let run = start(&place, &[]);
    wait_for("it begins", async || lines(&begun).len() == 1).await;
    wait_for("it is told", async || states(&place, &run) == ["web-1/0 running"]).await;
    let reader = follows(&place, &run, 0);
    place.kill_agent("web-1");
    std::fs::remove_dir_all(&ledger).unwrap();
    copied(&copy, &ledger);
    place.resume_agent("web-1");
    wait_for("it is lost, or runs again", async || {
        states(&place, &run) == ["web-1/0 lost"] || lines(&begun).len() > 1
    })
    .await;
    assert_eq!(lines(&begun).len(), 1, "nothing ran twice");
    nobody_waits_for_it(&place, &run, reader, "all/slow").await;
    assert_eq!(lines(&begun).len(), 1, "nothing ran twice");
    // What is started now is carried out.
    done(&place, &["node", "runnable", "web-1"]);
    start(&place, &["--force"]);
    wait_for("the next one begins", async || lines(&begun).len() == 2).await;
}
