//! kill -9 of the agent: supervised processes keep running, the next agent adopts them, and nothing runs twice.

use crate::bench::{Bench, tracing_entity};
use crate::child;
use crate::service::{alive, entity, free_port, kill, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agents_service_keeps_running_and_is_adopted() {
    let bench = Bench::new().await;
    bench.join().await.unwrap();
    let whole = format!("{}{}", tracing_entity(&bench, ""), entity(&bench, free_port()));
    let config = bench.configure(&whole);
    let mut first = child::agent(&config);
    bench.roll("v1").await;
    bench.runs("v1").await;
    let pid = started(&bench)[0].0;
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(alive(pid));

    let mut second = child::agent(&config);
    bench
        .says("the second agent", |status| status.pid == second.id() && status.connected_since_ms.is_some())
        .await;
    bench
        .says("health measured anew", |status| {
            status.pid == second.id()
                && status.entities.get("web").is_some_and(|web| web.healthy_since_ms.is_some())
        })
        .await;
    assert!(alive(pid));
    assert_eq!((started(&bench).len(), bench.trace().len()), (1, 3));

    // The adopted service is watched and replaced like one that this agent started.
    kill(pid);
    bench.until("a second start", async || (started(&bench).len() == 2).then_some(())).await;
    bench.roll("v2").await;
    bench.runs("v2").await;
    let all = started(&bench);
    assert_eq!(all.len(), 3);
    assert!(!alive(all[1].0) && alive(all[2].0));
    second.kill().unwrap();
    second.wait().unwrap();
    kill(all[2].0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_part_is_killed_and_repeated() {
    let bench = Bench::new().await;
    bench.join().await.unwrap();
    let (pids, go) = (bench.path("pids"), bench.path("go"));
    let script =
        format!("echo $$ >> {}; while ! test -e {}; do sleep 0.05; done", pids.display(), go.display());
    let config = bench.configure(&format!("[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {script:?}]\n"));
    let seen =
        || -> Vec<i32> { crate::bench::lines(&pids).iter().map(|line| line.parse().unwrap()).collect() };
    let mut first = child::agent(&config);
    bench.roll("v1").await;
    bench.until("the part running", async || (seen().len() == 1).then_some(())).await;
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(alive(seen()[0]));
    let mut second = child::agent(&config);
    bench.until("the part running again", async || (seen().len() == 2).then_some(())).await;
    assert!(!alive(seen()[0]) && alive(seen()[1]));
    std::fs::write(&go, "").unwrap();
    bench.runs("v1").await;
    second.kill().unwrap();
    second.wait().unwrap();
}
