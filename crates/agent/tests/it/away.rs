//! The control plane is away: what runs stays, the agent works from its ledger, and catches up when it is back.

use crate::bench::{Bench, eventually, tracing_entity};
use crate::service::{alive, entity, free_port, kill, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_keeps_its_promises_without_the_control_plane_and_catches_up() {
    let mut bench = Bench::new().await;
    let whole = format!("{}{}", tracing_entity(&bench, ""), entity(&bench, free_port()));
    let agent = bench.agent(&whole).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.stop_server().await;
    let status = bench.says("the break", |status| status.trouble.is_some()).await;
    assert!(status.connected_since_ms.is_none() && status.last_contact_ms.is_some());
    let first = started(&bench)[0].0;
    assert!(alive(first));

    // It is the agent's own affair to keep the service alive.
    kill(first);
    eventually("a second start", async || (started(&bench).len() == 2).then_some(())).await;

    // An agent that starts while the control plane is away works from its ledger, and runs nothing twice.
    agent.stop().await;
    let runs = bench.trace().len();
    let second = started(&bench)[1].0;
    let agent = bench.agent_again(&format!("services_on_exit = \"stop\"\n{whole}"));
    let fits = |status: &bellwether_agent::status::Status| {
        status.trouble.is_some() && status.entities.contains_key("web")
    };
    bench.says("the next agent", fits).await;
    assert!(alive(second) && bench.trace().len() <= runs + 3);

    bench.start_server().await;
    bench.roll("v2").await;
    bench.runs("v2").await;
    agent.stop().await;
}
