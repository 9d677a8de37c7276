//! The policy flags of a start: for that rollout alone, or kept in the entity's policy.

use bellwether_api::problem::Code;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;

use crate::harness::{Installation, policy, problem, set_entity, until, version};

fn soak(time: &str) -> Policy {
    Policy { soak: Some(time.to_owned()), ..Policy::default() }
}

#[tokio::test]
async fn the_policy_of_a_start_is_for_that_rollout_alone_until_the_entity_changes() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let new = NewRollout { policy: soak("7m"), ..version("v1") };
    admin.start_rollout("default", "web", &new).await.unwrap();
    let own = until(&admin, |view| view.rollout.is_some()).await;
    assert_eq!(own.entity.policy.soak.as_deref(), Some("7m"), "the rollout follows its own policy");
    let entity = admin.entity("default", "web").await.unwrap();
    assert_eq!(entity.policy.soak.as_deref(), Some("0s"), "the entity keeps its policy");

    set_entity(&admin, policy("2", "0s")).await;
    let changed = until(&admin, |view| view.entity.policy.batch.as_deref() == Some("2")).await;
    assert_eq!(changed.entity.policy.soak.as_deref(), Some("0s"), "a changed policy applies at once");
}

#[tokio::test]
async fn the_policy_of_a_start_is_kept_when_that_is_asked_for_and_fields_can_be_unset() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let new = NewRollout { policy: soak("7m"), save: true, ..version("v1") };
    admin.start_rollout("default", "web", &new).await.unwrap();
    let entity = admin.entity("default", "web").await.unwrap();
    assert_eq!(entity.policy.soak.as_deref(), Some("7m"));

    let new = NewRollout { unset: vec!["soak".to_owned()], save: true, ..version("v2") };
    admin.start_rollout("default", "web", &new).await.unwrap();
    let entity = admin.entity("default", "web").await.unwrap();
    assert_eq!(entity.policy.soak.as_deref(), Some("1m"), "the default");

    let new = NewRollout { unset: vec!["soka".to_owned()], ..version("v3") };
    let (code, reason) = problem(admin.start_rollout("default", "web", &new).await);
    assert!(code == Code::Invalid && reason.contains("did you mean soak?"), "{reason}");
}
