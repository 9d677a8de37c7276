//! The command of a holder that is stopped or killed: it has ended before another holder begins, by its guard.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::place::{Setup, text, wait_for};
use crate::story_locks::{alone, begin, end, lives, pid_in, pid_of, said};

/// The state of a process, as one letter; nothing if there is none.
fn state(pid: Pid) -> Option<char> {
    let about = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    about.lines().find_map(|line| line.strip_prefix("State:"))?.trim().chars().next()
}

fn parent(pid: Pid) -> Pid {
    let about = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let parent = about.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    Pid::from_raw(parent.trim().parse().unwrap()).unwrap()
}

fn lines(path: &str) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Begins `lock run` with these words as a job of a shell: in a process group of its own.
fn begin_job(place: &Setup, words: &[&str]) -> Child {
    let mut command = place.command(&["lock", "run"]);
    command.args(words).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A command that ends neither when it is asked to nor with its session, of which a part is in another session.
fn stubborn(pid: &str, inner: &str) -> String {
    let idle = "trap '' TERM; while :; do sleep 0.05; done";
    format!(
        "trap '' TERM; setsid sh -c 'echo $$ > {inner}; trap \"\" TERM; while :; do sleep 0.05; done' & echo $$ > {pid}; {idle}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_a_holder_that_is_stopped_has_ended_before_another_begins() {
    let place = Setup::new().await;
    let (pid, order) = (place.path("pid"), place.path("order"));
    let script = format!(
        "echo begin-1 >> {order}; trap 'echo end-1 >> {order}; exit' TERM; echo $$ > {pid}; while :; do sleep 0.05; done"
    );
    let holder = begin(&place, &["still", "--lease", "3s", "--", "sh", "-c", &script]);
    let command = pid_in(&pid).await;
    kill_process(pid_of(&holder), Signal::STOP).unwrap();
    let second = format!("echo begin-2 >> {order}; {}", alone(&[command]));
    let next = end(begin(&place, &["still", "--lease", "3s", "--", "sh", "-c", &second])).await;
    assert!(next.status.success() && text(&next.stdout) == "2\n", "{}", said(&next));
    assert_eq!(lines(&order), ["begin-1", "end-1", "begin-2"]);
    // Once it goes on, it finds what was done for it.
    kill_process(pid_of(&holder), Signal::CONT).unwrap();
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(said(&output).contains("renew lock still in time"), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_a_holder_started_is_gone_before_another_begins_though_it_is_stopped_or_killed() {
    let place = Setup::new().await;
    for (name, signal) in [("stopped", Signal::STOP), ("killed", Signal::KILL)] {
        let (pid, inner) = (place.path(&format!("{name}-pid")), place.path(&format!("{name}-inner")));
        let script = stubborn(&pid, &inner);
        let holder = begin(&place, &[name, "--lease", "2s", "--", "sh", "-c", &script]);
        let (command, inner) = (pid_in(&pid).await, pid_in(&inner).await);
        kill_process(pid_of(&holder), signal).unwrap();
        // With a lease that a busy machine has time to renew: what is looked at is the one before.
        let words = [name, "--lease", "30s", "--", "sh", "-c", &alone(&[command, inner])];
        let next = end(begin(&place, &words)).await;
        assert!(next.status.success(), "{name}: {}", said(&next));
        kill_process(pid_of(&holder), Signal::CONT).unwrap();
        end(holder).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_terminal_stops_continues_with_its_command_only_while_it_holds_the_lock() {
    let place = Setup::new().await;
    let (pid, ticks) = (place.path("pid"), place.path("ticks"));
    let script = format!("echo $$ > {pid}; while :; do echo tick >> {ticks}; sleep 0.05; done");
    let holder = begin_job(&place, &["job", "--lease", "15s", "--", "sh", "-c", &script]);
    let (command, job) = (pid_in(&pid).await, pid_of(&holder));
    let both = |wanted: bool| [command, job].map(|pid| (state(pid) == Some('T')) == wanted) == [true, true];
    kill_process_group(job, Signal::TSTP).unwrap();
    wait_for("both are stopped", async || both(true)).await;
    let before = lines(&ticks).len();
    kill_process_group(job, Signal::CONT).unwrap();
    wait_for("both continue", async || both(false) && lines(&ticks).len() > before).await;

    kill_process_group(job, Signal::TSTP).unwrap();
    wait_for("both are stopped again", async || both(true)).await;
    let before = lines(&ticks).len();
    let next = end(begin(&place, &["job", "--lease", "15s", "--", "sh", "-c", &alone(&[command])])).await;
    assert!(next.status.success(), "{}", said(&next));
    kill_process_group(job, Signal::CONT).unwrap();
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(!lives(command));
    assert_eq!(lines(&ticks).len(), before, "it did not continue");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_job_whose_lock_is_taken_away_does_not_continue() {
    let place = Setup::new().await;
    let (pid, ticks) = (place.path("pid"), place.path("ticks"));
    let script = format!("echo $$ > {pid}; while :; do echo tick >> {ticks}; sleep 0.05; done");
    let words = ["taken", "--lease", "10m", "--holder", "ann", "--", "sh", "-c", &script];
    let holder = begin_job(&place, &words);
    let (command, job) = (pid_in(&pid).await, pid_of(&holder));
    kill_process_group(job, Signal::TSTP).unwrap();
    wait_for("both are stopped", async || [command, job].map(state) == [Some('T'), Some('T')]).await;
    let before = lines(&ticks).len();
    let taken = ["lock", "release", "taken", "--holder", "ann", "--force", "--reason", "it is stopped"];
    assert!(place.run(&taken).status.success());
    kill_process_group(job, Signal::CONT).unwrap();
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(said(&output).contains("released by admin: it is stopped"), "{}", said(&output));
    assert_eq!(lines(&ticks).len(), before, "it did not continue");
    assert!(!lives(command));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_with_its_guard_and_the_lock_is_returned() {
    let place = Setup::new().await;
    let pid = place.path("pid");
    let script = format!("echo $$ > {pid}; trap '' TERM; while :; do sleep 0.05; done");
    let holder = begin(&place, &["bare", "--lease", "10m", "--", "sh", "-c", &script]);
    let command = pid_in(&pid).await;
    kill_process(parent(command), Signal::KILL).unwrap();
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(70), "{}", said(&output));
    wait_for("the command has ended", async || !lives(command)).await;
    let next = end(begin(&place, &["bare", "--timeout", "0s", "--", "true"])).await;
    assert!(next.status.success(), "{}", said(&next));
}
