use super::*;
use crate::apply::leftover;

const LONG: Duration = Duration::from_secs(20);

struct Bench {
    dir: tempfile::TempDir,
    tasks: Tasks,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), tasks: Tasks::new() }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("web.service.log")
    }

    fn run(&self) -> String {
        self.dir.path().display().to_string()
    }

    fn owner(&self) -> ProcessOwner {
        ProcessOwner::new(self.dir.path(), Some("l1".parse().unwrap()))
    }

    fn start(&self, script: &str) -> SupervisedProcess {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let command = Command { argv, workdir: "/".into(), env: Default::default(), stdin: None };
        let facts = CommandFacts { version: "v7".into(), run: self.run(), ..CommandFacts::default() };
        SupervisedProcess::start(&command, &facts, &self.owner(), &self.log(), &self.tasks).unwrap()
    }
}

#[tokio::test]
async fn a_process_that_ends_has_its_exit_and_the_end_of_its_output_as_evidence() {
    let bench = Bench::new();
    let mut process = bench.start("echo serving {version}; exit 4");
    let evidence = tokio::time::timeout(LONG, process.wait()).await.unwrap();
    assert_eq!(evidence.exit_code, Some(4));
    assert_eq!(evidence.tail, "serving v7\n");
    assert_eq!(evidence.summary, "the process ended: exit code 4");
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed_with_its_group() {
    let bench = Bench::new();
    let mut process = bench.start("trap '' TERM; sleep 600 & echo $!; while :; do wait; done");
    let heard = || log::tail(&bench.log(), Some(0)).trim().parse::<i32>().ok();
    let child = tokio::time::timeout(LONG, async {
        loop {
            if let Some(child) = heard() {
                return child;
            }
            tokio::task::yield_now().await;
        }
    });
    let child = child.await.unwrap();
    tokio::time::timeout(LONG, process.stop(Duration::from_millis(200))).await.unwrap();
    let alive = || stat(child).is_ok_and(|seen| !seen.has_ended());
    tokio::time::timeout(LONG, async {
        while alive() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_running_process_is_adopted_and_its_end_is_noticed() {
    let bench = Bench::new();
    let mut first = bench.start("exec sleep 600");
    let mark = first.mark().clone();
    let mut adopted = SupervisedProcess::adopt(&mark, &bench.log(), &bench.tasks).unwrap().unwrap();
    assert!(adopted.ended().is_none());
    let other = ProcessMark { started_ticks: mark.started_ticks + 1, ..mark.clone() };
    assert!(SupervisedProcess::adopt(&other, &bench.log(), &bench.tasks).unwrap().is_none());
    let other = ProcessMark { boot_id: "another".into(), ..mark.clone() };
    assert!(SupervisedProcess::adopt(&other, &bench.log(), &bench.tasks).unwrap().is_none());
    first.stop(LONG).await;
    let evidence = tokio::time::timeout(LONG, adopted.wait()).await.unwrap();
    assert!(evidence.summary.contains("an earlier agent"));
    assert!(SupervisedProcess::adopt(&mark, &bench.log(), &bench.tasks).unwrap().is_none());
}

#[tokio::test]
async fn leftovers_of_a_killed_agent_are_found_by_their_run() {
    let bench = Bench::new();
    let mut process = bench.start("sleep 600; true");
    assert_eq!(leftover::kill("another-run").unwrap(), 0);
    // Between fork and exec a program's environment cannot be read.
    tokio::time::timeout(LONG, async {
        while leftover::kill(&bench.run()).unwrap() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let evidence = tokio::time::timeout(LONG, process.wait()).await.unwrap();
    assert_eq!(evidence.summary, "the process ended: killed by signal 9");
}

/// What the system says when a process or the machine has too many open files: nothing of the process that is looked at.
fn unseen() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error())
}

#[tokio::test]
async fn a_process_that_cannot_be_looked_at_is_not_taken_for_one_that_has_ended() {
    let bench = Bench::new();
    let mut process = bench.start("exec sleep 600");
    let mark = process.mark().clone();
    // Also where `/proc` hides the processes of others.
    let failures = [unseen(), io::Error::from(io::ErrorKind::NotFound)];
    for failure in failures {
        let kind = failure.kind();
        let adopted = SupervisedProcess::adopt_seen_by(&mark, &bench.log(), &bench.tasks, |_| Err(failure));
        assert_eq!(adopted.unwrap_err().kind(), kind);
    }
    assert!(SupervisedProcess::adopt(&mark, &bench.log(), &bench.tasks).unwrap().is_some());
    process.stop(Duration::ZERO).await;
    let pid = Pid::from_raw(mark.pid).unwrap();
    tokio::time::timeout(LONG, async {
        while exists(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    // Now its absence is seen, whatever else is not.
    let adopted = SupervisedProcess::adopt_seen_by(&mark, &bench.log(), &bench.tasks, |_| Err(unseen()));
    assert!(adopted.unwrap().is_none());
}

#[tokio::test]
async fn a_process_that_cannot_be_looked_at_after_its_start_is_ended() {
    let bench = Bench::new();
    let argv = ["/bin/sh", "-c", "sleep 600 & wait"].map(str::to_owned).to_vec();
    let command = Command { argv, workdir: "/".into(), env: Default::default(), stdin: None };
    let facts = CommandFacts { version: "v7".into(), run: bench.run(), ..CommandFacts::default() };
    let mut number = None;
    let place = (&*bench.log(), &bench.tasks, false);
    let started = SupervisedProcess::start_seen_by(&command, &facts, &bench.owner(), place, |pid| {
        number = Some(pid);
        Err(unseen())
    });
    started.unwrap_err();
    let pid = number.and_then(Pid::from_raw).unwrap();
    tokio::time::timeout(LONG, async {
        while exists(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_end_of_a_process_is_seen_by_looking_where_it_cannot_be_waited_for() {
    let bench = Bench::new();
    let mut process = bench.start("exec sleep 600");
    let pid = Pid::from_raw(process.mark().pid).unwrap();
    // A handle of something that never becomes readable and cannot be waited for: a directory.
    let unwatchable = OwnedFd::from(fs::File::open(bench.dir.path()).unwrap());
    let looking = pidfd::ended(pid, Some(unwatchable));
    tokio::pin!(looking);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut looking).await;
    assert!(early.is_err(), "it runs");
    process.stop(Duration::ZERO).await;
    tokio::time::timeout(LONG, looking).await.unwrap();
}

#[tokio::test]
async fn a_process_runs_as_its_user_and_writes_the_log_that_is_not_its_own() {
    let bench = Bench::new();
    let own = rustix::process::geteuid();
    let user = if own.is_root() { "nobody".to_owned() } else { own.as_raw().to_string() };
    let argv = ["/bin/sh", "-c", "id -u; id -G"].map(str::to_owned).to_vec();
    let command = Command { argv, workdir: "/".into(), env: Default::default(), stdin: None };
    let user = Some(crate::users::UserName::parse(&user).unwrap());
    let facts = CommandFacts { run: bench.run(), user, ..CommandFacts::default() };
    let started = SupervisedProcess::start(&command, &facts, &bench.owner(), &bench.log(), &bench.tasks);
    let evidence = started.unwrap().wait().await;
    let expected = if own.is_root() { "65534\n65534\n".to_owned() } else { format!("{}\n", own.as_raw()) };
    assert!(evidence.tail.starts_with(&expected), "{evidence:?}");
}
