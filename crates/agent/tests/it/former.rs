//! A machine that lost the data directory of its agent, and with it everything that was known of its processes.

use std::fs;

use crate::bench::{Bench, NODE, NS};
use crate::service::{alive, entity, free_port, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_ledger_was_lost_is_ended_before_the_new_agent_starts_its_own() {
    let bench = Bench::new().await;
    let port = free_port();
    let config = entity(&bench, port);
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    agent.stop().await;
    let (former, _) = started(&bench)[0].clone();
    assert!(alive(former), "it outlives its agent");
    fs::remove_dir_all(bench.data_dir()).unwrap();
    bench.client.decommission_node(NS, NODE, "its disk was replaced").await.unwrap();

    let joined = bench.join().await.unwrap();
    assert_eq!(joined.left_running.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["web"]);
    let agent = bench.agent_again(&format!("services_on_exit = \"stop\"\n{config}"));
    bench.runs("v1").await;
    let all = started(&bench);
    assert_eq!(all.len(), 2, "the first attempt succeeds, on the same port: {all:?}");
    assert!(!alive(former) && alive(all[1].0));
    agent.stop().await;
    assert!(!alive(all[1].0));

    // An agent that has its ledger ends nothing that it started itself.
    let agent = bench.agent_again(&config);
    bench.until("a third process", async || (started(&bench).len() == 3).then_some(())).await;
    bench.sees("success", |node| node.statuses["validate"].state == "success").await;
    agent.stop().await;
    let agent = bench.agent_again(&format!("services_on_exit = \"stop\"\n{config}"));
    bench
        .says("it runs", |status| {
            status.alive && status.entities.get("web").is_some_and(|web| web.health == "healthy")
        })
        .await;
    let all = started(&bench);
    assert!(all.len() == 3 && alive(all[2].0), "it is adopted: {all:?}");
    agent.stop().await;
}
