//! The demo: it plays to its end with every expectation held, and whatever happens nothing is left.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{PROGRAM, text};

/// A directory that the demo makes its own in.
fn demo(args: &[&str]) -> (Command, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("demo").args(args).env_clear().env("TMPDIR", dir.path()).stdin(Stdio::null());
    (command, dir)
}

/// Processes that were started out of this directory and are still there.
fn left(dir: &tempfile::TempDir) -> Vec<String> {
    let needle = dir.path().display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| {
        let line = text(&std::fs::read(entry.path().join("cmdline")).ok()?);
        line.contains(&needle).then_some(line)
    });
    lines.collect()
}

fn files(dir: &tempfile::TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn the_demo_ends_by_itself_with_every_expectation_held() {
    let (mut command, dir) = demo(&["--nodes", "6"]);
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    for line in ["last known good  v2", "last known bad   v3", "node lost        web-0"] {
        assert!(said.contains(line), "{line} is not in:\n{said}");
    }
    for line in [
        "rollout 2 to v2 succeeded on 5 of 6 targets; v2 is last known good",
        "\nWhat happened\n",
        "✓ only the first batch ever saw v3",
        "✓ every living service serves v2",
        "\nTry next\n",
    ] {
        assert!(said.contains(line), "{line} is not in:\n{said}");
    }
    // Both targets of the batch may have failed by the time the leader looks.
    let rolled_back = |failed: u32| {
        let line = format!("rollout 3 to v3 was rolled back to v2: {failed} of 6 failed, 0 tolerated; web-0");
        said.contains(&line)
    };
    assert!(rolled_back(1) || rolled_back(2), "{said}");
    assert!(
        !said.contains(" 0 waiting") && !said.contains(" 0 skipped"),
        "a count of none is shown:\n{said}"
    );
    assert_eq!(left(&dir), Vec::<String>::new());
    assert_eq!(files(&dir), Vec::<PathBuf>::new());
}

#[test]
fn ctrl_c_in_the_middle_leaves_nothing_behind() {
    let (mut command, dir) = demo(&["--nodes", "6"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The first act has begun when its line is there: the fleet is up and a rollout runs.
    let stdout = child.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("version v2"))).unwrap().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert!(lines.map_while(Result::ok).count() < 10_000, "it went on talking");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(left(&dir), Vec::<String>::new());
    assert_eq!(files(&dir), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_killed_outright_takes_its_processes_with_it() {
    let (mut command, dir) = demo(&["--nodes", "6"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("version v2"))).unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = async {
        while !left(&dir).is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), gone).await.is_ok(), "{:?}", left(&dir));
}
