//! Applying documents after a rollout that ended without its version: aborted, or rolled back.

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::{ApplyOutcome, Document, EntityDocument};
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::{RolloutOperation, RolloutState};

use super::{apply, document, entity, failing, request};
use crate::harness::{Installation, Node, policy, problem, until};

/// The entity `web` at a version, for all nodes at once.
fn at(version: &str) -> Vec<Document> {
    let policy = policy("100%", "0s");
    vec![document(EntityDocument { version: Some(version.to_owned()), policy, ..entity("web") })]
}

/// Applies v1, which is good on the node, and then v2.
async fn on_the_way_to_v2(admin: &Client, node: &Node) {
    apply(admin, at("v1")).await;
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    apply(admin, at("v2")).await;
}

#[tokio::test]
async fn after_an_abort_the_same_documents_request_the_version_again() {
    let installation = Installation::patient().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    on_the_way_to_v2(&admin, &node).await;
    node.assigned("v2").await;
    admin.act_on_rollout("default", "web", "abort", &RolloutOperation::default()).await.unwrap();
    until(&admin, |view| view.rollout.as_ref().unwrap().status.state == RolloutState::Aborted).await;
    // What is there now has no version: applying it again changes nothing.
    let exported = admin.documents("default").await.unwrap().items;
    assert_eq!(apply(&admin, exported).await[0].1, ApplyOutcome::Unchanged);
    assert_ne!(apply(&admin, at("v2")).await[0].1, ApplyOutcome::Unchanged);
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.number == 3)).await;
    assert_eq!(apply(&admin, at("v2")).await[0].1, ApplyOutcome::Unchanged);
}

#[tokio::test]
async fn a_known_bad_version_is_refused_and_what_is_there_after_its_rollback_changes_nothing() {
    let installation = Installation::patient().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    on_the_way_to_v2(&admin, &node).await;
    let number = node.assigned("v2").await;
    node.runs("v2", number, failing()).await;
    until(&admin, |view| !view.progress.bad.is_empty()).await;
    let (code, detail) = problem(admin.apply("default", &request(at("v2"))).await);
    assert!(
        code == Code::Refused && detail.contains("entity/web") && detail.contains("known bad"),
        "{detail}"
    );
    let exported = admin.documents("default").await.unwrap().items;
    let Some(Document::Entity(exported_web)) = exported.first() else { panic!("{exported:?}") };
    assert_eq!(exported_web.version.as_deref(), Some("v1"));
    assert_eq!(apply(&admin, exported).await[0].1, ApplyOutcome::Unchanged);
    assert_eq!(apply(&admin, at("v1")).await[0].1, ApplyOutcome::Unchanged);
}
