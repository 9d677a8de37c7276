//! Profiles: each change is a revision, each race has one winner, and rollouts apply revisions.

use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{CallError, Identity};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::NewJoinToken;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::profile::{Params, ParamsPatch, ParamsSpec};
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::rollout::NewRollout;
use proptest::prelude::*;
use serde_json::json;

use crate::harness::{Installation, join_request, policy, problem, until, version};

fn params(pairs: &[(&str, u64)]) -> Params {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

fn patch(pairs: &[(&str, u64)]) -> ParamsPatch {
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
async fn of_two_writers_who_saw_the_same_revision_one_wins() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.only_at(0).patch_profile("default", "web", &patch(&[("a", 0)])).await.unwrap();
    for round in 1..=10 {
        let (left, right) = (patch(&[("a", round), ("l", round)]), patch(&[("a", 100 + round)]));
        let at = admin.only_at(round);
        let (left, right) = tokio::join!(
            at.patch_profile("default", "web", &left),
            at.patch_profile("default", "web", &right)
        );
        let (won, lost) = if left.is_ok() { (left, right) } else { (right, left) };
        let won = won.unwrap();
        assert_eq!(won.revision, round + 1);
        let (code, detail) = problem(lost);
        assert_eq!(code, Code::Conflict);
        assert!(detail.contains(&format!("it is at revision {}", round + 1)), "{detail}");
        assert_eq!(admin.profile("default", "web").await.unwrap(), won);
    }
    let absent = problem(admin.only_at(0).patch_profile("default", "web", &patch(&[("a", 1)])).await);
    assert_eq!(absent.0, Code::Conflict);
    let missing = problem(admin.only_at(3).patch_profile("default", "db", &patch(&[("a", 1)])).await);
    assert!(missing.1.contains("there is no such profile"), "{missing:?}");
}

/// One of several writers: which param it sets, and whether it names the revision that it read.
#[derive(Debug, Clone)]
struct Writer {
    value: u64,
    insists: bool,
}

fn writers() -> impl Strategy<Value = Vec<Vec<Writer>>> {
    let writer = (0_u64..4, any::<bool>()).prop_map(|(value, insists)| Writer { value, insists });
    prop::collection::vec(prop::collection::vec(writer, 1..4), 1..5)
}

#[test]
fn any_interleaving_of_writers_leaves_revisions_without_gaps() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let installation = runtime.block_on(Installation::new());
    let (admin, run) = (installation.admin(), std::cell::Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(12));
    runner
        .run(&writers(), |rounds| {
            run.set(run.get() + 1);
            runtime.block_on(interleave(&admin, &format!("p{}", run.get()), rounds))
        })
        .unwrap();
}

async fn interleave(
    admin: &bellwether_api::client::Client,
    profile: &str,
    rounds: Vec<Vec<Writer>>,
) -> Result<(), TestCaseError> {
    let mut acknowledged = std::collections::BTreeMap::new();
    for round in rounds {
        let seen =
            admin.profile("default", profile).await.map_or(0, |profile_revision| profile_revision.revision);
        let calls = round.into_iter().map(|writer| {
            let patch = patch(&[("a", writer.value)]);
            let client = if writer.insists { admin.only_at(seen) } else { admin.clone() };
            async move { client.patch_profile("default", profile, &patch).await }
        });
        for answer in futures_util::future::join_all(calls).await {
            match answer {
                Ok(profile_revision) => {
                    let known =
                        acknowledged.insert(profile_revision.revision, profile_revision.params.clone());
                    prop_assert!(known.is_none_or(|known| known == profile_revision.params));
                }
                Err(error) => prop_assert_eq!(problem::<()>(Err(error)).0, Code::Conflict),
            }
        }
    }
    let all = admin.profile_revisions("default", profile).await.unwrap().items;
    let numbers: Vec<u64> = all.iter().rev().map(|profile_revision| profile_revision.revision).collect();
    prop_assert_eq!(&numbers, &(1..=numbers.len() as u64).collect::<Vec<_>>());
    for profile_revision in all {
        prop_assert_eq!(acknowledged.remove(&profile_revision.revision), Some(profile_revision.params));
    }
    prop_assert!(acknowledged.is_empty());
    Ok(())
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

#[tokio::test]
async fn a_failed_test_answers_the_pointer_the_value_and_the_revision_and_changes_nothing() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.patch_profile("default", "web", &patch(&[("a/b", 1)])).await.unwrap();
    let change = JsonChange::Patch(json!([
        {"op": "add", "path": "/c", "value": [true]},
        {"op": "test", "path": "/a~1b", "value": 2},
    ]));
    let CallError::Problem(failed) = admin.change_profile("default", "web", &change, "").await.unwrap_err()
    else {
        panic!("a problem")
    };
    assert_eq!((failed.status, failed.code), (409, Code::Conflict));
    let conflict = failed.conflict.unwrap();
    assert_eq!((conflict.pointer.as_str(), conflict.value, conflict.revision), ("/a~1b", Some(json!(1)), 1));
    assert_eq!(admin.profile("default", "web").await.unwrap().revision, 1);

    let fits = JsonChange::Patch(
        json!([{"op": "test", "path": "/a~1b", "value": 1.0}, {"op": "remove", "path": "/a~1b"}]),
    );
    let changed = admin.only_at(1).change_profile("default", "web", &fits, "moved").await.unwrap();
    assert_eq!((changed.revision, changed.params.len(), changed.reason.as_str()), (2, 0, "moved"));
    let late =
        admin.only_at(1).change_profile("default", "web", &JsonChange::Merge(json!({"a": 1})), "").await;
    assert_eq!(problem(late).0, Code::Conflict);
    let new = JsonChange::Merge(json!({"a": {"b": 1}}));
    assert_eq!(admin.only_at(0).change_profile("default", "db", &new, "").await.unwrap().revision, 1);
    for (change, says) in [
        (JsonChange::Patch(json!([{"op": "remove", "path": "/none"}])), "[0].the operation"),
        (
            JsonChange::Patch(json!([{"op": "add", "path": "none", "value": 1}])),
            "does not start with a slash",
        ),
        (JsonChange::Patch(json!([{"op": "replace", "path": "", "value": [1]}])), "expected an object"),
        (JsonChange::Patch(json!([{"op": "add", "path": "/a b", "value": 1}])), "is not a valid key"),
        (JsonChange::Patch(json!({"op": "add"})), "invalid type"),
        (JsonChange::Merge(json!([1])), "expected a JSON object"),
    ] {
        let (code, detail) = problem(admin.change_profile("default", "db", &change, "").await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(says), "{change:?}: {detail}");
    }
    assert_eq!(admin.profile("default", "db").await.unwrap().revision, 1);
}
