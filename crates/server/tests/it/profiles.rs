//! Profiles: each change is a revision, each race has one winner, and rollouts apply revisions.

use bellwether_api::client::Identity;
use bellwether_api::client::secret::Secret;
use bellwether_api::problem::Code;
use bellwether_api::v1::access::NewJoinToken;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::profile::{Params, ParamsPatch, ParamsSpec};
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::NewRollout;
use serde_json::json;

use crate::harness::{Installation, join_request, policy, problem, until, version};

fn params(pairs: &[(&str, u64)]) -> Params {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

pub(crate) fn patch(pairs: &[(&str, u64)]) -> ParamsPatch {
    ParamsPatch { set: params(pairs), ..ParamsPatch::default() }
}

fn newest() -> NewRollout {
    NewRollout { version: None, ..version("unused") }
}

async fn set_entity_of(installation: &Installation, profile: &str) {
    let profile = Some(profile.to_owned());
    let spec = EntitySpec {
        selector: "role=web".to_owned(),
        profile,
        policy: policy("1", "0s"),
        ..EntitySpec::default()
    };
    installation.admin().set_entity("default", "web", &spec).await.unwrap();
}

#[tokio::test]
async fn every_change_makes_a_revision_and_no_change_makes_none() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let one = admin.patch_profile("default", "web", &patch(&[("b", 2), ("a", 1)])).await.unwrap();
    assert_eq!((one.revision, &one.params), (1, &params(&[("a", 1), ("b", 2)])));
    let same = admin.patch_profile("default", "web", &patch(&[("a", 1)])).await.unwrap();
    assert_eq!(same.revision, 1);
    let removed = ParamsPatch { remove: vec!["b".to_owned()], ..ParamsPatch::default() };
    assert_eq!(admin.patch_profile("default", "web", &removed).await.unwrap().params, params(&[("a", 1)]));
    let again = problem(admin.patch_profile("default", "web", &removed).await);
    assert_eq!(again, (Code::NotFound, "cannot find param \"b\" in profile web".to_owned()));
    let replaced = ParamsSpec { params: params(&[("c", 3)]), ..ParamsSpec::default() };
    assert_eq!(admin.set_profile("default", "web", &replaced).await.unwrap().revision, 3);
    let history = admin.profile_revisions("default", "web").await.unwrap().items;
    assert_eq!(
        history.iter().map(|profile_revision| profile_revision.revision).collect::<Vec<_>>(),
        [3, 2, 1]
    );
    assert_eq!(admin.profile_revision("default", "web", 1).await.unwrap(), one);

    // A new profile with the name of a deleted one continues its numbers.
    admin.delete_profile("default", "web").await.unwrap();
    assert_eq!(problem(admin.profile("default", "web").await).0, Code::NotFound);
    assert_eq!(problem(admin.profile_revision("default", "web", 3).await).0, Code::NotFound);
    assert!(admin.profiles("default").await.unwrap().items.is_empty());
    let anew = admin.only_at(0).patch_profile("default", "web", &patch(&[("d", 4)])).await.unwrap();
    assert_eq!((anew.revision, anew.params), (4, params(&[("d", 4)])));
}

#[tokio::test]
async fn a_rollout_of_a_profile_means_one_of_its_revisions() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let spec = EntitySpec { selector: "all".into(), profile: Some("web".into()), ..EntitySpec::default() };
    let (code, detail) = problem(admin.set_entity("default", "web", &spec).await);
    assert_eq!((code, detail.as_str()), (Code::Refused, "cannot use profile web: it does not exist"));

    admin.patch_profile("default", "web", &patch(&[("a", 1)])).await.unwrap();
    admin.patch_profile("default", "other", &patch(&[("a", 1)])).await.unwrap();
    let node = installation.node("web-1").await;
    set_entity_of(&installation, "web").await;
    for (asked, says) in [
        ("web@2", "profile web has revisions 1 to 1"),
        ("other@1", "has no such revision"),
        ("v1", "has no such revision"),
    ] {
        let (code, detail) = problem(admin.start_rollout("default", "web", &version(asked)).await);
        assert!(code == Code::Refused && detail.contains(says), "{asked}: {detail}");
    }
    // A node cannot read a profile before a version of it is assigned.
    assert_eq!(problem(node.client.profile_revision("default", "web", 1).await).0, Code::NotFound);
    let started = admin.start_rollout("default", "web", &newest()).await.unwrap();
    assert_eq!((started.version.as_str(), started.request), ("web@1", 1));
    let number = node.assigned("web@1").await;
    assert_eq!(node.client.profile_revision("default", "web", 1).await.unwrap().params, params(&[("a", 1)]));
    assert_eq!(problem(node.client.profile_revision("default", "other", 1).await).0, Code::NotFound);
    node.runs("web@1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("web@1")).await;

    let refused = problem(admin.delete_profile("default", "web").await);
    assert_eq!(refused, (Code::Refused, "cannot delete profile web: entity web uses it".to_owned()));
    for other in [
        EntitySpec { action: Some("restart".into()), ..spec.clone() },
        EntitySpec { profile: Some("other".into()), ..spec.clone() },
    ] {
        let other = EntitySpec { profile: other.profile.filter(|_| other.action.is_none()), ..other };
        let (code, detail) = problem(admin.set_entity("default", "web", &other).await);
        assert!(code == Code::Refused && detail.contains("it is one of profile web"), "{detail}");
    }
    // Without a kind in the request, an entity keeps its kind.
    let unsaid = EntitySpec { profile: None, ..spec };
    admin.set_entity("default", "web", &unsaid).await.unwrap();
    assert_eq!(admin.entity("default", "web").await.unwrap().profile.as_deref(), Some("web"));
}

#[tokio::test]
async fn a_node_of_another_namespace_sees_no_profile_of_this_one() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.patch_profile("default", "web", &patch(&[("a", 1)])).await.unwrap();
    let labels = vec!["*".to_owned()];
    let new = NewJoinToken { namespace: Some("staging".into()), labels, ..NewJoinToken::default() };
    let token = admin.create_join_token(&new).await.unwrap().secret;
    let (key, mut request) = join_request(&token, "web-1");
    request.namespace = "staging".to_owned();
    let joined = installation.client(Identity::Nobody).join(&request).await.unwrap();
    let stranger =
        installation.client(Identity::Node { certificate: joined.certificate, key: Secret::new(key) });
    assert_eq!(problem(stranger.profile_revision("default", "web", 1).await).0, Code::Forbidden);
    assert_eq!(problem(stranger.profile_revision("staging", "web", 1).await).0, Code::NotFound);
}

#[tokio::test]
async fn what_is_asked_for_while_it_would_be_forgotten_is_either_kept_or_refused() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    for value in 1..=64 {
        admin.patch_profile("default", "web", &patch(&[("a", value)])).await.unwrap();
    }
    set_entity_of(&installation, "web").await;
    // Each write deletes the oldest revision just when it is requested.
    for oldest in 1..=8 {
        let (write, asked) = (patch(&[("a", 1_000 + oldest)]), version(&format!("web@{oldest}")));
        let (written, started) = tokio::join!(
            admin.patch_profile("default", "web", &write),
            admin.start_rollout("default", "web", &asked)
        );
        written.unwrap();
        let there = admin.profile_revision("default", "web", oldest).await.is_ok();
        match started {
            Ok(started) => assert!(there, "{} was started and is gone", started.version),
            Err(error) => assert_eq!(problem::<()>(Err(error)).0, Code::Refused),
        }
    }
}

#[tokio::test]
async fn revisions_in_use_are_kept_however_old_and_the_others_go() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.patch_profile("default", "web", &patch(&[("a", 1)])).await.unwrap();
    admin.patch_profile("default", "web", &patch(&[("a", 2)])).await.unwrap();
    let node = installation.node("web-1").await;
    set_entity_of(&installation, "web").await;
    admin.start_rollout("default", "web", &version("web@2")).await.unwrap();
    let number = node.assigned("web@2").await;
    node.runs("web@2", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("web@2")).await;
    for value in 3..=70 {
        admin.patch_profile("default", "web", &patch(&[("a", value)])).await.unwrap();
    }
    let kept = admin.profile_revisions("default", "web").await.unwrap().items;
    let kept: Vec<u64> = kept.iter().rev().map(|profile_revision| profile_revision.revision).collect();
    assert_eq!((kept[0], kept[1], *kept.last().unwrap()), (2, 7, 70));
    let gone = problem(admin.start_rollout("default", "web", &version("web@1")).await);
    assert!(gone.1.contains("profile web has revisions 2 to 70"), "{gone:?}");
}

#[tokio::test]
async fn an_action_gets_a_number_and_is_neither_rolled_back_nor_retried() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    let spec = EntitySpec {
        selector: "all".into(),
        action: Some("restart".into()),
        policy: policy("1", "0s"),
        ..EntitySpec::default()
    };
    for (field, policy) in [
        (
            "policy.on_failure",
            bellwether_api::v1::policy::Policy { on_failure: "rollback".parse().ok(), ..policy("1", "0s") },
        ),
        ("policy.retries", bellwether_api::v1::policy::Policy { retries: Some(1), ..policy("1", "0s") }),
    ] {
        let (code, detail) =
            problem(admin.set_entity("default", "web", &EntitySpec { policy, ..spec.clone() }).await);
        assert!(code == Code::Invalid && detail.contains(field), "{detail}");
    }
    admin.set_entity("default", "web", &spec).await.unwrap();
    assert_eq!(admin.entity("default", "web").await.unwrap().policy.on_failure.unwrap().as_str(), "pause");
    let own = problem(admin.start_rollout("default", "web", &version("restart@7")).await);
    assert!(own.1.contains("whose runs are numbered automatically"), "{own:?}");
    let mut last = 0;
    for _ in 0..2 {
        let started = admin.start_rollout("default", "web", &newest()).await.unwrap();
        let number: u64 = started.version.strip_prefix("restart@").unwrap().parse().unwrap();
        assert!(number > last, "{number} after {last}");
        last = number;
        let number = node.assigned(&started.version).await;
        node.runs(&started.version, number, TargetHealth::Healthy).await;
        until(&admin, |view| view.progress.last_known_good.as_deref() == Some(&started.version)).await;
    }
    for verb in ["undo", "retry"] {
        let (code, detail) = problem(admin.act_on_rollout("default", "web", verb, &Default::default()).await);
        assert!(code == Code::Refused && detail.contains("neither undone nor retried"), "{detail}");
    }
}

#[tokio::test]
async fn bad_params_are_refused_with_the_key_and_the_limit() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for (set, says) in [
        (json!({"a b": 1}), "\"a b\" is not a valid key"),
        (json!({"": 1}), "is not a valid key"),
        (json!({"a": "x".repeat(70_000)}), "at most 65536 allowed"),
    ] {
        let set = serde_json::from_value(set).unwrap();
        let patch = ParamsPatch { set, ..ParamsPatch::default() };
        let (code, detail) = problem(admin.patch_profile("default", "web", &patch).await);
        assert!(code == Code::Invalid && detail.contains(says), "{detail}");
    }
    assert!(admin.profiles("default").await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_profile_that_an_entity_begins_to_use_is_not_deleted_at_the_same_moment() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let (mut deleted, mut used) = (0, 0);
    for round in 0..40 {
        let (profile, entity) = (format!("p-{round}"), format!("e-{round}"));
        admin.patch_profile("default", &profile, &patch(&[("a", round)])).await.unwrap();
        let spec = EntitySpec {
            selector: "role=web".to_owned(),
            profile: Some(profile.clone()),
            policy: policy("1", "0s"),
            ..EntitySpec::default()
        };
        let set = admin.set_entity("default", &entity, &spec);
        let (set, delete) = if round % 2 == 0 {
            tokio::join!(set, admin.delete_profile("default", &profile))
        } else {
            let (delete, set) = tokio::join!(admin.delete_profile("default", &profile), set);
            (set, delete)
        };
        assert!(set.is_ok() != delete.is_ok(), "{round}: {set:?} {delete:?}");
        assert_eq!(admin.profile("default", &profile).await.is_ok(), set.is_ok());
        (deleted, used) = (deleted + usize::from(delete.is_ok()), used + usize::from(set.is_ok()));
    }
    assert_eq!(deleted + used, 40);
}
