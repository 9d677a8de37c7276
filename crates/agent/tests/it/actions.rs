//! Actions: run once per node and version, whatever happens to the agent.

use std::fs;

use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;

use crate::bench::{Bench, NS};
use crate::child;

impl Bench {
    async fn set_action(&self) {
        let policy = Policy {
            soak: Some("0".into()),
            deadline: Some("5m".into()),
            batch: Some("100%".into()),
            ..Policy::default()
        };
        let action = Some("restart".into());
        let spec = EntitySpec { selector: "all".into(), action, policy, ..EntitySpec::default() };
        self.client.set_entity(NS, "web", &spec).await.unwrap();
    }

    /// Asks for another run, and answers its version.
    async fn run_action(&self) -> String {
        let new = NewRollout::default();
        self.client.start_rollout(NS, "web", &new).await.unwrap().version
    }

    /// A catalogue whose one action runs `script`, and an entity of it.
    fn catalogue(&self, script: &str, more: &str) -> String {
        let trace = self.path("trace");
        let script = format!("echo $BELLWETHER_VERSION >> {}; {script}", trace.display());
        format!(
            "[action.restart]\nrun = [\"/bin/sh\", \"-c\", {script:?}]\n{more}\n[entity.web]\naction = \"restart\"\n"
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_runs_once_per_version_and_not_again_after_a_restart() {
    let bench = Bench::new().await;
    let sections = bench.catalogue("true", "");
    let agent = bench.agent(&sections).await;
    bench.set_action().await;
    let first = bench.run_action().await;
    bench.runs(&first).await;
    let second = bench.run_action().await;
    bench.runs(&second).await;
    agent.stop().await;
    let agent = bench.agent_again(&sections);
    bench.says("contact", |status| status.alive && status.connected_since_ms.is_some()).await;
    let third = bench.run_action().await;
    bench.runs(&third).await;
    agent.stop().await;
    assert_eq!(bench.trace(), [first, second, third]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_forgot_everything_does_not_run_what_is_over() {
    let bench = Bench::new().await;
    let sections = bench.catalogue("true", "");
    let agent = bench.agent(&sections).await;
    bench.set_action().await;
    let version = bench.run_action().await;
    bench.runs(&version).await;
    bench
        .until("the verdict", async || bench.target().await.filter(|target| target.phase == "succeeded"))
        .await;
    agent.stop().await;
    fs::remove_dir_all(bench.data_dir().join("ledger")).unwrap();
    let agent = bench.agent_again(&sections);
    bench
        .says("the run as done", |status| {
            status.entities.get("web").is_some_and(|web| web.running.as_deref() == Some(&version))
        })
        .await;
    agent.stop().await;
    assert_eq!(bench.trace(), [version]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_later_takes_the_last_run_as_done_and_runs_the_next() {
    let bench = Bench::new().await;
    let sections = bench.catalogue("true", "");
    let agent = bench.agent(&sections).await;
    bench.set_action().await;
    let old = bench.run_action().await;
    bench.runs(&old).await;
    bench
        .until("the rollout's end", async || {
            let view = bench.client.current_rollout(NS, "web", None, Default::default()).await.unwrap();
            view.rollout.filter(|rollout| rollout.ended_ms.is_some())
        })
        .await;
    agent.stop().await;
    // The machine is set up anew under another name.
    fs::remove_dir_all(bench.data_dir()).unwrap();
    fs::remove_file(bench.path("trace")).unwrap();
    let token = bench.token().await;
    let request = bellwether_agent::join::JoinRequest { node: "web-2".to_owned(), ..bench.request(token) };
    bellwether_agent::join::join(request).await.unwrap();
    let config = bench.configure(&sections);
    let text = fs::read_to_string(&config).unwrap().replace("name = \"web-1\"", "name = \"web-2\"");
    fs::write(&config, text).unwrap();
    let agent = crate::bench::Agent::start(bellwether_agent::config::Config::load(&config).unwrap());
    let runs = async |version: &str| {
        bench
            .until(version, async || {
                let node = bench.client.node(NS, "web-2").await.unwrap();
                (node.running.get("web").map(String::as_str) == Some(version)).then_some(())
            })
            .await;
    };
    runs(&old).await;
    assert!(bench.trace().is_empty());
    let next = bench.run_action().await;
    runs(&next).await;
    assert_eq!(bench.trace(), [next]);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_that_fails_is_not_run_again_and_pauses_the_rollout() {
    let bench = Bench::new().await;
    let agent = bench.agent(&bench.catalogue("echo no such unit >&2; exit 75", "")).await;
    bench.set_action().await;
    let first = bench.run_action().await;
    let evidence = bench.failure().await;
    assert_eq!(evidence.summary, "action restart: exit code 75, not yet");
    assert_eq!((evidence.exit_code, evidence.tail.as_str()), (Some(75), "no such unit\n"));
    let view = bench.client.current_rollout(NS, "web", None, Default::default()).await.unwrap();
    let paused = serde_json::to_string(&view.rollout.unwrap().status).unwrap();
    assert!(paused.contains("paused"), "{paused}");
    let second = bench.run_action().await;
    bench.until("the second run", async || (bench.trace().len() == 2).then_some(())).await;
    assert_eq!(bench.trace(), [first, second]);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_lost_its_ledger_during_a_run_does_not_run_it_again_and_reports_it_as_lost() {
    for lost in ["ledger", "ledger/entities/web.json"] {
        let bench = Bench::new().await;
        bench.join().await.unwrap();
        let config = bench.configure(&bench.catalogue("sleep 1000", ""));
        let mut first = child::agent(&config);
        bench.set_action().await;
        let version = bench.run_action().await;
        bench.until("the action running", async || (bench.trace().len() == 1).then_some(())).await;
        first.kill().unwrap();
        first.wait().unwrap();
        let path = bench.data_dir().join(lost);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
        let config = bench.configure(&bench.catalogue("true", ""));
        let mut second = child::agent(&config);
        let evidence = bench.failure().await;
        let said = "lost: it may have begun before, on a former host or with a ledger that is gone, and nobody knows how far it came; \
                    not run again";
        assert_eq!(evidence.summary, said);
        assert_eq!(bench.trace(), std::slice::from_ref(&version));
        let next = bench.run_action().await;
        bench.runs(&next).await;
        assert_eq!(bench.trace(), [version, next]);
        second.kill().unwrap();
        second.wait().unwrap();
    }
}

async fn cut_short(more: &str) -> (Bench, std::process::Child, String) {
    let bench = Bench::new().await;
    bench.join().await.unwrap();
    let wait = format!("while ! test -e {}; do sleep 0.05; done", bench.path("go").display());
    let config = bench.configure(&bench.catalogue(&wait, more));
    let mut first = child::agent(&config);
    bench.set_action().await;
    let version = bench.run_action().await;
    bench.until("the action running", async || (bench.trace().len() == 1).then_some(())).await;
    first.kill().unwrap();
    first.wait().unwrap();
    fs::write(bench.path("go"), "").unwrap();
    let second = child::agent(&config);
    (bench, second, version)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_under_way_when_the_agent_was_killed_is_not_run_again() {
    let (bench, mut agent, version) = cut_short("").await;
    let evidence = bench.failure().await;
    assert_eq!(evidence.summary, "the agent stopped while it ran; not run again");
    assert_eq!(bench.trace(), [version]);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_that_may_run_again_does_so_when_the_agent_was_killed() {
    let (bench, mut agent, version) = cut_short("idempotent = true").await;
    bench.runs(&version).await;
    assert_eq!(bench.trace(), [version.clone(), version]);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_action_says_so() {
    let bench = Bench::new().await;
    let sections = "[action.stop]\nrun = [\"/bin/true\"]\n[entity.web]\naction = \"stop\"\n";
    let agent = bench.agent(sections).await;
    bench.set_action().await;
    bench.run_action().await;
    let evidence = bench.failure().await;
    let wanted = "this node's recipe for web is for action stop, and the entity is for action restart";
    assert_eq!(evidence.summary, wanted);
    agent.stop().await;
}
