//! Whether a node is set up, as its agent reports it.

use std::os::unix::fs::PermissionsExt;

use crate::bench::Bench;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_set_up_when_the_first_step_of_each_entity_can_run() {
    let bench = Bench::new().await;
    let program = bench.path("fetch");
    let entity = format!("[entity.web]\nstatic = [{:?}]\n", program.display().to_string());
    let agent = bench.agent(&entity).await;
    let provision = |state: &'static str| {
        move |node: &bellwether_api::v1::node::NodeView| {
            node.statuses.get("provision").is_some_and(|status| status.state == state)
        }
    };
    let node = bench.sees("it waits", provision("pending")).await;
    let reason = format!("web: there is no program {}; install it", program.display());
    assert!(node.statuses["provision"].reason.starts_with(&reason), "{:?}", node.statuses);
    assert!(bench.client.failures(crate::bench::NS).await.unwrap().failed.is_empty(), "it may be on its way");

    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let node = bench.sees("it is set up", provision("success")).await;
    assert_eq!(node.statuses["provision"].reason, "");
    agent.stop().await;
}
