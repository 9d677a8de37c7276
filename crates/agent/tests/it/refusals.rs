//! A machine that cannot store its orders, or the start of a step: the control plane and the machine both say so, and no version
//! is judged by it. A directory where a file is to be written stands for a full disk.

use std::fs;

use bellwether_agent::local::client::{self, CurrentStatus};
use bellwether_agent::status;

use crate::bench::{Bench, NODE, NS, tracing_entity};

/// Keeps the file `of` of the data directory from being replaced.
fn block(bench: &Bench, of: &str) {
    let beside = bench.data_dir().join(of).with_extension("new");
    drop(fs::remove_file(&beside));
    fs::create_dir(beside).unwrap();
}

fn unblock(bench: &Bench, of: &str) {
    fs::remove_dir(bench.data_dir().join(of).with_extension("new")).unwrap();
}

async fn why(bench: &Bench, subject: &str) -> String {
    bench.client.why(NS, subject).await.unwrap().lines.join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_cannot_be_stored_is_reported_with_its_reason_until_it_is_accepted() {
    let bench = Bench::new().await;
    let agent = bench.agent(&tracing_entity(&bench, "")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench
        .says("v1", |status| {
            status.entities.get("web").is_some_and(|web| web.running.as_deref() == Some("v1"))
        })
        .await;
    block(&bench, "ledger/order.json");
    block(&bench, "status.json");
    bench.roll("v2").await;
    let node = bench.sees("the refusal", |node| node.statuses.contains_key("orders")).await;
    let orders = &node.statuses["orders"];
    let reason = format!("cannot write {}/ledger/order.json: Is a directory", bench.data_dir().display());
    assert!(orders.state == "failed" && orders.reason.starts_with(&reason), "{orders:?}");
    assert!(orders.reason.contains("; order ") && orders.reason.ends_with(" is refused"), "{orders:?}");
    assert_eq!(node.presence.state, "up");
    let refuses = format!("does not accept orders: {reason}");
    for subject in ["node/web-1", "entity/web", "target/web/web-1"] {
        let why = why(&bench, subject).await;
        assert!(why.contains(&refuses) && !why.contains("unreachable"), "{subject}: {why}");
    }
    let target = bench.target().await.unwrap();
    assert!(target.phase == "blocked" && target.reason.contains(&refuses), "{target:?}");
    let failed = bench.client.failures(NS).await.unwrap().failed;
    assert!(failed.iter().any(|line| line.node == NODE && line.category == "orders"), "{failed:?}");

    // On the machine, the running agent is asked: what it wrote last is from before.
    let stored = status::read(&bench.data_dir()).unwrap();
    assert_eq!((stored.refused, stored.unwritable), (None, None));
    let live = bench
        .until("the agent's own answer", async || match client::current(&bench.data_dir()).await.unwrap() {
            CurrentStatus::Live(status) => Some(status).filter(|status| status.unwritable.is_some()),
            CurrentStatus::Stored(_) => None,
        })
        .await;
    assert!(live.refused.is_some_and(|refused| refused.starts_with(&reason)));
    assert!(live.unwritable.is_some_and(|reason| reason.contains("/status.json: ")));

    unblock(&bench, "ledger/order.json");
    unblock(&bench, "status.json");
    bench.runs("v2").await;
    bench.sees("no refusal", |node| !node.statuses.contains_key("orders")).await;
    bench.says("no refusal", |status| status.refused.is_none() && status.unwritable.is_none()).await;
    agent.stop().await;
    let stored = client::current(&bench.data_dir()).await.unwrap();
    assert!(matches!(stored, CurrentStatus::Stored(status) if !status.alive));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_start_cannot_be_recorded_is_a_refusal_too() {
    let bench = Bench::new().await;
    let agent = bench.agent(&tracing_entity(&bench, "")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    block(&bench, "ledger/entities/web.json");
    bench.roll("v2").await;
    let node = bench.sees("the refusal", |node| node.statuses.contains_key("orders")).await;
    let reason = &node.statuses["orders"].reason;
    assert!(reason.contains("/ledger/entities/web.json: ") && reason.ends_with("; no step of web begins"));
    assert!(why(&bench, "target/web/web-1").await.contains("/ledger/entities/web.json: "));
    unblock(&bench, "ledger/entities/web.json");
    bench.runs("v2").await;
    bench.sees("no refusal", |node| !node.statuses.contains_key("orders")).await;
    agent.stop().await;
}
