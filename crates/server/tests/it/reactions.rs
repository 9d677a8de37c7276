//! Reactions over the API: what they would do, and what they are refused.

use bellwether_api::problem::Code;
use bellwether_api::v1::cluster::{ClusterMode, ClusterSpec};
use bellwether_api::v1::reaction::test::TestReaction;
use bellwether_api::v1::reaction::{ReactionSpec, ReactionState};

use crate::harness::{Installation, problem};
use crate::hooked::eventually;
use crate::schedules::workflow;

fn on(on: &str, workflow: &str) -> ReactionSpec {
    ReactionSpec { on: on.to_owned(), workflow: workflow.to_owned(), ..ReactionSpec::default() }
}

fn asked(condition: &str, subject: &str) -> TestReaction {
    TestReaction { condition: condition.to_owned(), subject: subject.to_owned() }
}

#[tokio::test]
async fn a_test_says_what_a_reaction_would_do_and_starts_nothing() {
    let installation = Installation::lenient().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    admin.set_reaction("default", "restart", &on("condition = store_down", "backup")).await.unwrap();
    let down = asked("store_down", "store/db-1/db");
    eventually("the servers have listened to the nodes", async || {
        let test = admin.test_reaction("default", "restart", &down).await.unwrap();
        (test.state == Some(ReactionState::Due)).then_some(())
    })
    .await;
    let test = admin.test_reaction("default", "restart", &down).await.unwrap();
    assert_eq!((test.matches, test.node_count, &*test.nodes), (true, 1, &["db-1".to_owned()][..]));
    assert_eq!(test.refused, None);
    let other = asked("node_unreachable", "node/db-1");
    assert!(!admin.test_reaction("default", "restart", &other).await.unwrap().matches);
    // Nothing was started, and nothing is remembered.
    assert!(admin.runs("default").await.unwrap().items.is_empty());
    assert!(admin.reaction("default", "restart").await.unwrap().firings.is_empty());

    let whole = asked("no_primary", "cluster/db/kv");
    let (code, said) = problem(admin.test_reaction("default", "restart", &whole).await);
    assert_eq!(code, Code::NotFound);
    assert!(said.contains("cluster db"), "{said}");
    let spec = ClusterSpec {
        filter: Some("all".to_owned()),
        mode: Some(ClusterMode::Observe),
        ..ClusterSpec::default()
    };
    admin.set_cluster("default", "db", &spec).await.unwrap();
    admin.set_reaction("default", "promote", &on("condition = no_primary", "promote")).await.unwrap();
    let test = admin.test_reaction("default", "promote", &whole).await.unwrap();
    assert_eq!(test.state, Some(ReactionState::Observed));
    assert!(test.refused.is_some_and(|refused| refused.contains("no node, but a whole cluster")));
}

#[tokio::test]
async fn a_condition_that_there_is_not_is_refused_with_those_there_are() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    let misspelt = on("condition = no_primry and cluster = db", "promote");
    let (code, said) = problem(admin.set_reaction("default", "promote", &misspelt).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("no_primry") && said.contains("no_primary"), "{said}");
    admin.set_reaction("default", "promote", &on("condition = no_primary", "promote")).await.unwrap();
    let test = asked("no_primry", "node/db-1");
    let (code, said) = problem(admin.test_reaction("default", "promote", &test).await);
    assert_eq!(code, Code::Invalid);
    assert!(said.contains("there are store_down"), "{said}");
    let test = asked("no_primary", "db-1");
    let (code, _) = problem(admin.test_reaction("default", "promote", &test).await);
    assert_eq!(code, Code::Invalid);
}
