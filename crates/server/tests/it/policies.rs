//! The policy flags of a start: for that rollout alone, or kept in the entity's policy.

use bellwether_api::problem::Code;
use bellwether_api::v1::entity::patch::EntityPatch;
use bellwether_api::v1::external::settings::ExternalSettings;
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

#[tokio::test]
async fn people_who_change_different_fields_at_once_all_succeed() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    for round in 1..=20_u32 {
        let text = |text: String| Some(text);
        let patch = |policy: Policy| EntityPatch { policy, ..EntityPatch::default() };
        let soak = patch(Policy { soak: text(format!("{round}s")), ..Policy::default() });
        // None of them is a default, which is not written out.
        let settle = patch(Policy { settle: text(format!("{}m", round + 20)), ..Policy::default() });
        let owner = EntityPatch { owner: text(format!("team {round}")), ..EntityPatch::default() };
        let start =
            NewRollout { policy: batch(&round.to_string()), save: true, ..version(&format!("v{round}")) };
        let set = async |patch: &EntityPatch| admin.patch_entity("default", "web", patch).await.unwrap();
        let (_, _, owned, _) = tokio::join!(set(&soak), set(&settle), set(&owner), async {
            admin.start_rollout("default", "web", &start).await.unwrap()
        });
        assert_eq!(owned.after.owner, format!("team {round}"));
        assert_ne!(owned.before.unwrap().owner, owned.after.owner);
        let entity = admin.entity("default", "web").await.unwrap();
        let Policy { soak, settle, batch, .. } = entity.policy;
        assert_eq!(soak, text(format!("{round}s")));
        assert_eq!(settle, text(format!("{}m", round + 20)));
        assert_eq!(batch, text(round.to_string()), "round {round}");
        assert_eq!(entity.requested.unwrap().version, format!("v{round}"));
    }
}

#[tokio::test]
async fn of_two_changes_at_one_revision_one_is_made_and_the_other_learns_the_present_revision() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let at = async || admin.entity("default", "web").await.unwrap().revision.unwrap();
    for round in 0..8 {
        let before = at().await;
        let of = |team: &str| {
            let owner = Some(format!("team {team} {round}"));
            EntityPatch { owner, ..EntityPatch::default() }
        };
        let (blue, green) = (of("blue"), of("green"));
        let (one, other) = tokio::join!(
            admin.patch_entity_at("default", "web", &blue, before),
            admin.patch_entity_at("default", "web", &green, before),
        );
        let (made, lost) = if one.is_ok() { (one, other) } else { (other, one) };
        let made = made.unwrap();
        let now = at().await;
        assert_eq!((made.before.unwrap().revision, made.after.revision), (Some(before), Some(now)));
        let (code, detail) = problem(lost);
        assert_eq!(code, Code::Conflict, "{detail}");
        let said = format!("cannot change entity web at revision {before}: it is at revision {now}");
        assert_eq!(detail, said);
        assert_eq!(admin.entity("default", "web").await.unwrap().owner, made.after.owner);
    }
    let before = at().await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let lost = admin.patch_entity_at("default", "web", &EntityPatch::default(), before).await;
    assert_eq!(problem(lost).0, Code::Conflict, "a request for a version is a change");
    let all = EntityPatch { selector: Some("all".to_owned()), ..EntityPatch::default() };
    let (code, detail) = problem(admin.patch_entity_at("default", "new", &all, before).await);
    assert_eq!((code, detail.contains("it does not exist")), (Code::Conflict, true), "{detail}");
}

#[tokio::test]
async fn a_change_makes_an_entity_only_with_targets_and_never_changes_what_it_is() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let none = EntityPatch::default();
    assert_eq!(problem(admin.patch_entity("default", "web", &none).await).0, Code::NotFound);
    let all = EntityPatch { selector: Some("all".to_owned()), ..EntityPatch::default() };
    assert_eq!(admin.patch_entity("default", "web", &all).await.unwrap().before, None);
    let same = admin.patch_entity("default", "web", &none).await.unwrap();
    assert_eq!(same.before, Some(same.after));
    let external = EntityPatch { external: Some(ExternalSettings::default()), ..EntityPatch::default() };
    assert_eq!(problem(admin.patch_entity("default", "web", &external).await).0, Code::Refused);
}
