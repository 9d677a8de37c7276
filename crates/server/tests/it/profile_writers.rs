//! Several writers of one profile: each race has one winner, none loses what it wrote.

use bellwether_api::client::CallError;
use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::problem::Code;
use bellwether_api::v1::profile::ParamsPatch;
use proptest::prelude::*;
use serde_json::json;

use crate::harness::{Installation, problem};
use crate::profiles::patch;

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

#[tokio::test]
async fn many_who_write_params_of_one_profile_at_once_all_succeed() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let writes = (0..64).map(|writer| {
        let client = admin.fresh();
        async move {
            for count in 0..4 {
                let set = [(format!("writer-{writer}"), count.into())].into();
                let patch = ParamsPatch { set, ..ParamsPatch::default() };
                client.patch_profile("default", "shared", &patch).await.unwrap();
            }
        }
    });
    futures_util::future::join_all(writes).await;
    let shared = admin.profile("default", "shared").await.unwrap();
    assert_eq!((shared.revision, shared.params.len()), (256, 64));
}
