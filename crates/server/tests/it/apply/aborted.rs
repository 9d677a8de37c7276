//! Applying documents after a rollout was aborted: the version is requested again.

use bellwether_api::v1::apply::ApplyOutcome;
use bellwether_api::v1::rollout::{RolloutOperation, RolloutState};

use super::{apply, at, on_the_way_to_v2};
use crate::harness::{Installation, until};

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
