//! What one node may change: a flood of it is refused and told, and nobody else is refused.

use std::collections::BTreeMap;

use bellwether_api::client::CallError;
use bellwether_api::problem::{Code, Problem};
use bellwether_api::v1::registrations::{CheckStatus, ServiceRegistration, ServiceRegistrations};

use crate::harness::{Installation, Node, SOON};

/// Registrations of as many services as fit, which nobody registered before.
fn registrations(node: &Node, round: usize) -> ServiceRegistrations {
    let registration = |number: usize| ServiceRegistration {
        service: format!("s{round}-{number}"),
        name: "main".to_owned(),
        addresses: None,
        port: None,
        tags: Default::default(),
        meta: Default::default(),
        entity: None,
        waits_for: Default::default(),
        status: CheckStatus::Passing,
        reason: String::new(),
        since_ms: 0,
    };
    let instances = (0..64).map(registration).collect();
    ServiceRegistrations { node: node.name.clone(), addresses: BTreeMap::new(), instances }
}

/// Registers other services again and again, until that is refused.
async fn flood(node: &Node) -> Problem {
    for round in 0..1_000 {
        match node.client.registration("default", &registrations(node, round)).await {
            Ok(_) => {}
            Err(CallError::Problem(problem)) => return problem,
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("a node made up 64,000 names");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_makes_up_names_is_limited_and_told_and_nobody_else_is() {
    let installation = Installation::patient().await;
    let admin = installation.admin();
    let (bad, good) = (installation.node("bad-1").await, installation.node("good-1").await);
    let problem = flood(&bad).await;
    assert_eq!((problem.status, problem.code), (429, Code::Busy));
    assert_eq!(problem.detail, "the node changes more than a node may");
    assert!(problem.retry_after_ms.is_some());
    good.client.registration("default", &registrations(&good, 0)).await.unwrap();
    good.client.report("default", &good.empty_report()).await.unwrap();
    drop(installation.token("viewer").await);
    let events = admin.events("default", None, 1_000, std::time::Duration::ZERO).await.unwrap().items;
    let told: Vec<_> = events.iter().filter(|event| event.kind == "node.limited").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].subject, "node/bad-1");
    assert!(told[0].cause.contains("changes"), "{}", told[0].cause);
    let page = admin.text("/metrics", SOON).await.unwrap();
    assert!(!page.contains("bellwether_node_quota_refused_total 0"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_reads_its_secrets_again_and_again_does_not_roll_over_the_audit_log() {
    let installation = Installation::patient().await;
    let (bad, good) = (installation.node("bad-1").await, installation.node("good-1").await);
    let mut read = 0;
    let problem = loop {
        match bad.client.node_secrets("default", "bad-1").await {
            Ok(_) => read += 1,
            Err(CallError::Problem(problem)) => break problem,
            Err(other) => panic!("{other:?}"),
        }
        assert!(read < 10_000, "it goes on");
    };
    assert_eq!((problem.status, problem.code), (429, Code::Busy));
    assert!(problem.retry_after_ms.is_some());
    good.client.node_secrets("default", "good-1").await.unwrap();
}
