//! The policy flags of a start: for that rollout alone, or kept in the entity's policy.

use bellwether_api::problem::Code;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;

use crate::harness::{Installation, policy, problem, set_entity, until, version};

fn batch(amount: &str) -> Policy {
    Policy { batch: Some(amount.to_owned()), ..Policy::default() }
}

#[tokio::test]
async fn the_policy_of_a_start_is_for_that_rollout_alone_until_the_entity_changes() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let new = NewRollout { policy: batch("3"), ..version("v1") };
    admin.start_rollout("default", "web", &new).await.unwrap();
    let own = until(&admin, |view| view.rollout.is_some()).await;
    assert_eq!(own.entity.policy.batch.as_deref(), Some("3"), "the rollout follows its own policy");
    let entity = admin.entity("default", "web").await.unwrap();
    assert_eq!(entity.policy.batch.as_deref(), Some("1"), "the entity keeps its policy");

    set_entity(&admin, policy("2", "0s")).await;
    // A changed policy applies to the rollout under way too.
    until(&admin, |view| view.entity.policy.batch.as_deref() == Some("2")).await;
}

#[tokio::test]
async fn the_policy_of_a_start_is_kept_when_that_is_asked_for_and_fields_can_be_unset() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let new = NewRollout { policy: batch("3"), save: true, ..version("v1") };
    admin.start_rollout("default", "web", &new).await.unwrap();
    let entity = admin.entity("default", "web").await.unwrap();
    assert_eq!(entity.policy.batch.as_deref(), Some("3"));

    let new = NewRollout { unset: vec!["batch".to_owned()], save: true, ..version("v2") };
    admin.start_rollout("default", "web", &new).await.unwrap();
    let entity = admin.entity("default", "web").await.unwrap();
    assert_eq!(entity.policy.batch.as_deref(), Some("5%"), "the default");

    let new = NewRollout { unset: vec!["bacth".to_owned()], ..version("v3") };
    let (code, reason) = problem(admin.start_rollout("default", "web", &new).await);
    assert!(code == Code::Invalid && reason.contains("did you mean batch?"), "{reason}");
}
