//! Changes of one record that wait together are committed together, and each is as if it had been made alone.

use std::collections::BTreeMap;

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::{Code, ConflictingValue};
use bellwether_api::v1::profile::{Params, ParamsPatch, ProfileRevision};
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{Installation, problem};
use crate::profiles::patch;

/// A change of one param.
#[derive(Debug, Clone)]
struct Change {
    key: &'static str,
    value: u64,
    expects: Expected,
}

#[derive(Debug, Clone)]
enum Expected {
    Anything,
    Absent,
    Value(u64),
}

impl Change {
    fn patch(&self) -> ParamsPatch {
        let mut patch = patch(&[(self.key, self.value)]);
        match self.expects {
            Expected::Anything => {}
            Expected::Absent => patch.if_absent = vec![self.key.to_owned()],
            Expected::Value(value) => patch.if_equal = Params::from([(self.key.to_owned(), json!(value))]),
        }
        patch
    }

    fn holds(&self, found: Option<&Value>) -> bool {
        match self.expects {
            Expected::Anything => true,
            Expected::Absent => found.is_none(),
            Expected::Value(value) => found == Some(&json!(value)),
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let expects =
        prop_oneof![Just(Expected::Anything), Just(Expected::Absent), (0_u64..3).prop_map(Expected::Value)];
    let change = (prop::sample::select(vec!["a", "b"]), 0_u64..3, expects);
    let change = change.prop_map(|(key, value, expects)| Change { key, value, expects });
    prop::collection::vec(prop::collection::vec(change, 1..14), 1..5)
}

fn conflict(error: CallError) -> ConflictingValue {
    match error {
        CallError::Problem(problem) if problem.code == Code::Conflict => *problem.conflict.unwrap(),
        other => panic!("not a conflict: {other:?}"),
    }
}

#[test]
fn answers_are_those_of_the_changes_one_after_the_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let installation = runtime.block_on(Installation::new());
    let (admin, run) = (installation.admin(), std::cell::Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    let law = |batches: Vec<Vec<Change>>| {
        run.set(run.get() + 1);
        runtime.block_on(check(&admin, &format!("p{}", run.get()), batches))
    };
    runner.run(&changes(), law).unwrap();
}

/// Makes the changes of each batch at once. Every answer has a revision, so the order in which they took effect is known, and the
/// parameters at each revision must be what the changes up to there make.
async fn check(admin: &Client, profile: &str, batches: Vec<Vec<Change>>) -> Result<(), TestCaseError> {
    let mut states: BTreeMap<u64, Params> = [(0, Params::new())].into();
    for batch in batches {
        let begin = *states.last_key_value().unwrap().0;
        let patches: Vec<ParamsPatch> = batch.iter().map(Change::patch).collect();
        let answers =
            join_all(patches.iter().map(|patch| admin.patch_profile("default", profile, patch))).await;
        let mut refused = Vec::new();
        let mut accepted: Vec<(Change, ProfileRevision)> = Vec::new();
        for (change, answer) in batch.into_iter().zip(answers) {
            match answer {
                Ok(revision) => accepted.push((change, revision)),
                Err(error) => refused.push((change, conflict(error))),
            }
        }
        let mut by_revision: BTreeMap<u64, Vec<(Change, Params)>> = BTreeMap::new();
        for (change, answer) in accepted {
            prop_assert!(answer.revision >= begin);
            by_revision.entry(answer.revision).or_default().push((change, answer.params));
        }
        for (revision, answers) in by_revision {
            follow(&mut states, revision, answers)?;
        }
        for (change, told) in refused {
            let state = states.get(&told.revision);
            prop_assert!(told.revision >= begin && state.is_some(), "{told:?}");
            let found = state.unwrap().get(change.key);
            prop_assert_eq!(found, told.value.as_ref());
            prop_assert!(!change.holds(found), "{change:?} was refused at {found:?}");
        }
    }
    let (last, params) = states.last_key_value().unwrap();
    if *last > 0 {
        let now = admin.profile("default", profile).await.unwrap();
        prop_assert_eq!((now.revision, &now.params), (*last, params));
    }
    Ok(())
}

/// Follows the accepted changes that were answered with one revision: one of them made it, and the others found the param as they
/// set it.
fn follow(
    states: &mut BTreeMap<u64, Params>,
    revision: u64,
    answers: Vec<(Change, Params)>,
) -> Result<(), TestCaseError> {
    let params = answers[0].1.clone();
    let before = states.get(&(revision - 1)).cloned();
    let makes = |(change, _): &(Change, Params)| {
        let mut after = before.clone().unwrap_or_default();
        let holds = change.holds(after.get(change.key));
        after.insert(change.key.to_owned(), json!(change.value));
        before.as_ref().is_some_and(|before| holds && after != *before && after == params)
    };
    let finds = |(change, _): &(Change, Params)| {
        let found = params.get(change.key);
        change.holds(found) && found == Some(&json!(change.value))
    };
    prop_assert!(answers.iter().all(|(_, other)| *other == params), "{answers:?}");
    // Which of several equal ones made it is not known; all of the others found it.
    let others = answers.iter().filter(|answer| !finds(answer)).count();
    match states.insert(revision, params.clone()) {
        Some(known) => prop_assert!(known == params && others == 0, "{answers:?} at {known:?}"),
        None if others == 0 => prop_assert!(answers.iter().any(makes), "{answers:?} after {before:?}"),
        None => {
            let maker = answers.iter().find(|answer| !finds(answer));
            prop_assert!(others == 1 && maker.is_some_and(makes), "{answers:?} after {before:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn of_many_that_add_the_same_param_one_wins_and_the_others_see_its_value() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    for round in 0..8 {
        let key = format!("leader-{round}");
        let add = |writer: u64| ParamsPatch { if_absent: vec![key.clone()], ..patch(&[(&key, writer)]) };
        let adds: Vec<ParamsPatch> = (0..24).map(add).collect();
        let on_profile = join_all(adds.iter().map(|add| admin.patch_profile("default", "web", add)));
        let on_node = join_all(adds.iter().map(|add| admin.patch_node_params("default", "web-1", add)));
        let (on_profile, on_node) = tokio::join!(on_profile, on_node);
        let on_profile = on_profile.into_iter().map(|answer| answer.map(|made| (made.revision, made.params)));
        let on_node = on_node.into_iter().map(|answer| answer.map(|made| (made.revision, made.params)));
        for answers in [on_profile.collect::<Vec<_>>(), on_node.collect()] {
            let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
            let [Ok((revision, params))] = won.as_slice() else { panic!("{} won", won.len()) };
            for error in lost.into_iter().filter_map(Result::err) {
                let told = conflict(error);
                assert_eq!((told.revision, told.value.as_ref()), (*revision, params.get(&key)));
            }
        }
    }
}

#[tokio::test]
async fn changes_that_wait_share_transactions_and_keep_their_own_revisions_events_and_actors() {
    const WRITERS: u64 = 48;
    let installation = Installation::new().await;
    let (admin, operator) = (installation.admin(), installation.token("operator").await);
    admin.patch_profile("default", "web", &patch(&[("begin", 0)])).await.unwrap();
    let store = async || admin.profiles("default").await.unwrap().revision;
    let before = store().await;
    let clients = [&admin, &operator];
    let calls = (0..WRITERS).map(|writer| async move {
        let client = clients[usize::from(writer % 2 == 1)];
        let change = patch(&[(&format!("writer-{writer}"), writer)]);
        (writer, client.patch_profile("default", "web", &change).await.unwrap())
    });
    let made: BTreeMap<u64, u64> =
        join_all(calls).await.into_iter().map(|(writer, made)| (made.revision, writer)).collect();
    assert_eq!(made.keys().copied().collect::<Vec<_>>(), (2..=WRITERS + 1).collect::<Vec<_>>());
    let transactions = store().await - before;
    assert!(transactions < WRITERS, "{transactions} transactions for {WRITERS} changes");
    let events = admin.events("default", None, 1_000, std::time::Duration::ZERO).await.unwrap().items;
    let changed = events.iter().filter(|event| event.kind == "profile.changed").skip(1);
    let actors: Vec<(String, &str)> =
        changed.map(|event| (event.after.clone().unwrap(), event.actor.as_str())).collect();
    let expected: Vec<(String, &str)> = made
        .iter()
        .map(|(revision, writer)| {
            (revision.to_string(), if writer % 2 == 1 { "a-operator" } else { "admin" })
        })
        .collect();
    assert_eq!(actors, expected);
    // Whoever got a revision that others followed in the same transaction does not overwrite them.
    for revision in 2..=WRITERS {
        let (code, detail) =
            problem(admin.only_at(revision).patch_profile("default", "web", &patch(&[("begin", 1)])).await);
        assert_eq!(code, Code::Conflict, "{revision}: {detail}");
    }
    admin.only_at(WRITERS + 1).patch_profile("default", "web", &patch(&[("begin", 1)])).await.unwrap();
}

#[tokio::test]
async fn writers_that_are_gone_and_deletions_in_between_hold_nobody_up() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let mut acknowledged: BTreeMap<u64, Params> = BTreeMap::new();
    for round in 0..6 {
        let (mut staying, mut gone) = (JoinSet::new(), JoinSet::new());
        for writer in 0..20_u64 {
            let client = admin.fresh();
            let change = patch(&[("value", round * 100 + writer)]);
            let calls = if writer % 3 == 0 { &mut gone } else { &mut staying };
            calls.spawn(async move { client.patch_profile("default", "web", &change).await });
        }
        gone.abort_all();
        let deleted = admin.delete_profile("default", "web").await;
        if let Err(error) = deleted {
            assert_eq!(problem::<()>(Err(error)).0, Code::NotFound);
        }
        while let Some(made) = staying.join_next().await {
            let made = made.unwrap().unwrap();
            let known = acknowledged.insert(made.revision, made.params.clone());
            assert_eq!(known, None, "revision {} was given twice", made.revision);
        }
    }
}
