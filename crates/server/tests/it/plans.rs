//! Plans over HTTP, and starts by a plan, which are refused once the state has changed.

use bellwether_api::problem::Code;
use bellwether_api::v1::plan::NewPlan;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::NewRollout;

use crate::harness::{Installation, policy, problem, set_entity, until, version};

#[tokio::test]
async fn a_plan_predicts_a_rollout_and_is_valid_until_the_state_changes() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = (installation.node("web-1").await, installation.node("web-2").await);
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    for node in [&one, &two] {
        let number = node.assigned("v1").await;
        node.runs("v1", number, TargetHealth::Healthy).await;
    }
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;

    let soak = Policy { soak: Some("10s".to_owned()), ..Policy::default() };
    let (version_two, apply) = (Some("v2".to_owned()), Some("20s".to_owned()));
    let asked = NewPlan { version: version_two, apply, policy: soak.clone(), ..NewPlan::default() };
    let plan = admin.plan_rollout("default", "web", &asked).await.unwrap();
    assert_eq!((plan.version.as_str(), plan.running.get("v1"), plan.batches_opened), ("v2", Some(&2), 2));
    assert_eq!((plan.end.as_str(), plan.ends), ("succeeded", true));
    let took = plan.ended_ms - plan.began_ms;
    assert!((60_000..=64_000).contains(&took), "two targets, 20 s to apply and 10 s to soak each: {took} ms");
    assert_eq!((plan.touched_at_best, plan.touched_at_worst), (1, 1));
    assert!((29_000..=31_000).contains(&plan.longest_at_worst_ms), "{plan:?}");
    let again = admin.plan_rollout("default", "web", &asked).await.unwrap();
    assert_eq!(again.token, plan.token, "nothing has changed");

    // For how long a node was healthy on its present version says nothing of the next one.
    let longer = Policy { soak: Some("30s".to_owned()), ..Policy::default() };
    let longer =
        admin.plan_rollout("default", "web", &NewPlan { policy: longer, ..asked.clone() }).await.unwrap();
    assert_eq!((longer.end.as_str(), longer.ends), ("succeeded", true), "{longer:?}");

    // Another policy makes another plan, and so does a node that runs another version.
    let policy = Policy { batch: Some("2".to_owned()), ..soak.clone() };
    let wider = admin.plan_rollout("default", "web", &NewPlan { policy, ..asked.clone() }).await.unwrap();
    assert!(wider.token != plan.token && wider.touched_at_worst == 2);
    let by = |token: &str| NewRollout { plan: Some(token.to_owned()), policy: soak.clone(), ..version("v2") };
    let (code, reason) = problem(admin.start_rollout("default", "web", &by(&wider.token)).await);
    assert_eq!(code, Code::Refused);
    assert!(reason.contains("the state has changed since, or the policy flags differ"), "{reason}");
    admin.start_rollout("default", "web", &by(&plan.token)).await.unwrap();
    one.assigned("v2").await;
    let (code, _) = problem(admin.start_rollout("default", "web", &by(&plan.token)).await);
    assert_eq!(code, Code::Refused);
}

#[tokio::test]
async fn a_plan_that_cannot_continue_names_what_it_waits_for() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    let policy = Policy { needs: Some(vec!["2 of db".to_owned()]), ..Policy::default() };
    let asked = NewPlan { version: Some("v2".to_owned()), policy, ..NewPlan::default() };
    let plan = admin.plan_rollout("default", "web", &asked).await.unwrap();
    assert_eq!(
        (plan.end.as_str(), plan.ends),
        ("waiting: 2 functional instances of db needed, 0 found", false)
    );
    let nonsense = NewPlan { apply: Some("soon".to_owned()), ..asked };
    let (code, reason) = problem(admin.plan_rollout("default", "web", &nonsense).await);
    assert!(code == Code::Invalid && reason.contains("apply"), "{reason}");
}
