//! Logs of failed runs: stored on the node, sent to the control plane, and referenced by the status.

use std::fs;

use bellwether_api::client::NodeLogKey;
use bellwether_api::v1::log::NodeLog;

use crate::bench::{Bench, NODE, NS};

pub(crate) async fn log(bench: &Bench, category: &str) -> Option<NodeLog> {
    let key = NodeLogKey { namespace: NS, node: NODE, category, entity: "web" };
    bench.client.node_log(key).await.ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_leaves_its_log_on_both_sides_and_the_status_references_it() {
    let bench = Bench::new().await;
    let script = "seq 1 20000; echo about to fail in $BELLWETHER_VERSION; test $BELLWETHER_VERSION = v3";
    let agent = bench.agent(&format!("[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {script:?}]\n")).await;
    bench.roll("v1").await;
    let node = bench
        .sees("a failed status with its log", |node| {
            node.statuses
                .get("configure")
                .is_some_and(|status| status.state == "failed" && status.log.is_some())
        })
        .await;
    let status = &node.statuses["configure"];
    let reference = status.log.as_ref().unwrap();
    assert_eq!(reference.entity, "web");
    assert!(status.attempt >= 1, "{status:?}");
    let kept = bench.until("the log", async || log(&bench, "configure").await).await;
    assert!(kept.text.starts_with("web v1: static: exit code 1\n\n"), "{}", &kept.text[..80]);
    assert!(kept.text.contains("about to fail in v1\n") && kept.text.len() <= 65_536, "{}", kept.text.len());
    let dir = bench.data_dir().join("logs/failed/web/configure");
    assert!(
        fs::read_dir(&dir)
            .unwrap()
            .flatten()
            .any(|entry| entry.path().ends_with(format!("{}.log", kept.run)))
    );
    // A later success leaves the log of the failure; the status no longer references it.
    bench.roll("v3").await;
    let node = bench.runs("v3").await;
    let node = if node.statuses["configure"].state == "success" {
        node
    } else {
        bench.sees("success", |node| node.statuses["configure"].state == "success").await
    };
    assert_eq!(node.statuses["configure"].log, None);
    assert!(log(&bench, "configure").await.unwrap().text.contains("web v1"));
    assert_eq!(log(&bench, "validate").await, None);
    let heads = bench.client.node_logs(NS, NODE).await.unwrap().items;
    assert_eq!(heads.len(), 1);
    assert!(heads[0].text.is_empty() && heads[0].bytes > 0);
    assert!(fs::read_dir(&dir).unwrap().count() <= 8);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsent_log_is_sent_by_the_next_agent() {
    let mut bench = Bench::new().await;
    let broken = bench.path("broken");
    let script = format!("echo looking; test ! -e {}", broken.display());
    let entity =
        format!("[entity.web]\nvalidate = [\"/bin/sh\", \"-c\", {script:?}]\nvalidate_every = \"50ms\"\n");
    let agent = bench.agent(&entity).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.stop_server().await;
    fs::write(&broken, "").unwrap();
    let dir = bench.data_dir().join("logs/failed/web/validate");
    bench.until("a kept log", async || fs::read_dir(&dir).ok()?.next().map(|_| ())).await;
    agent.stop().await;
    bench.start_server().await;
    let agent = bench.agent_again(&entity);
    let kept = bench.until("the log", async || log(&bench, "validate").await).await;
    assert!(kept.text.ends_with("looking\n--- exit code 1\n"), "{}", kept.text);
    agent.stop().await;
}
