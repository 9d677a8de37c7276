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
        let command = Command { argv, workdir: "/".into(), env: Default::default() };
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
    let heard = || log::tail(&bench.log(), 0).trim().parse::<i32>().ok();
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
