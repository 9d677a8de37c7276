//! Params of nodes: each race has one winner, and the first level that has a param decides it.

use std::time::Duration;

use bellwether_api::client::NodeKnowledge;
use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::node_params::{LiveParams, NodeProfiles};
use bellwether_api::v1::profile::{Params, ParamsPatch, ProfileLive};
use serde_json::{Value, json};

use crate::harness::{Installation, Node, problem};

fn patch(pairs: &[(&str, Value)]) -> ParamsPatch {
    let set: Params = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    ParamsPatch { set, ..ParamsPatch::default() }
}

fn live(live: bool) -> ProfileLive {
    ProfileLive { live, ..ProfileLive::default() }
}

fn profiles(names: &[&str]) -> NodeProfiles {
    let profiles = names.iter().map(|name| (*name).to_owned()).collect();
    NodeProfiles { profiles, ..NodeProfiles::default() }
}

#[tokio::test]
async fn params_of_a_node_are_compared_and_set() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let missing = problem(admin.node_params("default", "web-1").await);
    assert_eq!(missing, (Code::NotFound, "cannot find node web-1".to_owned()));
    // Of a node that is expected, as well.
    admin.expect_node("default", "web-1", "").await.unwrap();
    let none = admin.node_params("default", "web-1").await.unwrap();
    assert_eq!((none.revision, none.params.len()), (0, 0));
    let one = admin.only_at(0).patch_node_params("default", "web-1", &patch(&[("port", json!(80))])).await;
    assert_eq!(one.unwrap().revision, 1);
    let same = admin.patch_node_params("default", "web-1", &patch(&[("port", json!(80.0))])).await.unwrap();
    assert_eq!(same.params["port"], json!(80.0));
    let lost = problem(admin.only_at(0).patch_node_params("default", "web-1", &patch(&[])).await);
    assert_eq!(lost.0, Code::Conflict);
    let expects = ParamsPatch {
        if_equal: Params::from([("port".to_owned(), json!(81))]),
        ..patch(&[("port", json!(82))])
    };
    let differs = problem(admin.patch_node_params("default", "web-1", &expects).await);
    assert_eq!(differs.0, Code::Conflict);
    assert!(differs.1.contains("/port is 80.0, not 81 (revision 2); nothing was changed"), "{}", differs.1);
    let tested = json!([{"op": "test", "path": "/port", "value": 80}, {"op": "remove", "path": "/port"}]);
    let patched = admin.change_node_params("default", "web-1", &JsonChange::Patch(tested), "mended").await;
    let patched = patched.unwrap();
    assert_eq!((patched.params.len(), patched.reason.as_str()), (0, "mended"));
}

#[tokio::test]
async fn of_twenty_who_add_the_same_param_one_wins() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.expect_node("default", "web-1", "").await.unwrap();
    let mut calls = Vec::new();
    for number in 0..20 {
        let change =
            ParamsPatch { if_absent: vec!["leader".to_owned()], ..patch(&[("leader", json!(number))]) };
        let client = admin.clone();
        calls.push(async move { client.patch_node_params("default", "web-1", &change).await });
    }
    let won = futures_util::future::join_all(calls).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(won, 1);
    assert_eq!(admin.node_params("default", "web-1").await.unwrap().revision, 1);
}

#[tokio::test]
async fn the_first_level_that_has_a_param_decides_it() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.expect_node("default", "web-1", "").await.unwrap();
    let set = async |profile: &str, pairs: &[(&str, Value)]| {
        admin.patch_profile("default", profile, &patch(pairs)).await.unwrap();
    };
    set("slow", &[("a", json!("slow")), ("d", json!("slow"))]).await;
    set("global", &[("a", json!("global")), ("b", json!("global")), ("c", json!("global"))]).await;
    set("web", &[("a", json!("web")), ("b", json!(null))]).await;
    for profile in ["global", "web"] {
        admin.set_profile_live("default", profile, &live(true)).await.unwrap();
    }
    admin.set_node_profiles("default", "web-1", &profiles(&["eu", "slow", "web"])).await.unwrap();
    admin.patch_node_params("default", "web-1", &patch(&[("a", json!("own"))])).await.unwrap();

    let all = admin.explain_params("default", "web-1", None, None).await.unwrap().items;
    let decided = |key: &str| {
        let param = all.iter().find(|param| param.key == key).unwrap();
        let level = param.levels.iter().find(|level| level.decides).unwrap();
        (param.value.clone().unwrap(), level.profile.clone())
    };
    assert_eq!(decided("a"), (json!("own"), None));
    assert_eq!(decided("b"), (json!(null), Some("web".to_owned())), "null is a value");
    assert_eq!(decided("c"), (json!("global"), Some("global".to_owned())));
    assert!(!all.iter().any(|param| param.key == "d"), "a profile that is not live is not read");
    let nothing = admin.explain_params("default", "web-1", Some("d"), None).await.unwrap().items;
    assert_eq!((nothing.len(), &nothing[0].value, nothing[0].levels.len()), (1, &None, 6));
    let read: Vec<bool> = nothing[0].levels.iter().map(|level| level.read).collect();
    assert_eq!(read, [true, false, false, true, true, false]);
    let twice = problem(admin.set_node_profiles("default", "web-1", &profiles(&["web", "web"])).await);
    assert_eq!(twice, (Code::Invalid, "profiles.1: web is named twice".to_owned()));
}

/// The live params of a node once they are not those of `tag`; `None` if the poll ends without.
async fn learned(node: &Node, tag: &str) -> Option<LiveParams> {
    let known = NodeKnowledge { params: Some(tag.to_owned()), ..NodeKnowledge::default() };
    node.client.sync("default", &node.name, known, Duration::from_millis(300)).await.unwrap().params
}

#[tokio::test]
async fn a_poll_is_answered_with_live_params_when_they_change_and_only_then() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    assert_eq!(learned(&node, "").await, None, "there are none");
    admin.patch_profile("default", "eu", &patch(&[("a", json!(1))])).await.unwrap();
    admin.set_node_profiles("default", "web-1", &profiles(&["eu"])).await.unwrap();
    let first = learned(&node, "").await.unwrap();
    assert_eq!((first.profiles.clone(), first.live.len()), (vec!["eu".to_owned()], 0));
    admin.patch_profile("default", "eu", &patch(&[("a", json!(2))])).await.unwrap();
    assert_eq!(learned(&node, &first.tag).await, None, "it is not live");

    admin.set_profile_live("default", "eu", &live(true)).await.unwrap();
    let second = learned(&node, &first.tag).await.unwrap();
    assert_eq!((second.live["eu"].revision, &second.live["eu"].params["a"]), (2, &json!(2)));
    // A poll that waits is woken.
    let (third, ()) = tokio::join!(learned(&node, &second.tag), async {
        admin.patch_profile("default", "eu", &patch(&[("a", json!(3))])).await.unwrap();
    });
    let third = third.unwrap();
    assert_eq!(third.live["eu"].params["a"], json!(3));
    admin.patch_node_params("default", "web-1", &patch(&[("own", json!(true))])).await.unwrap();
    let fourth = learned(&node, &third.tag).await.unwrap();
    assert_eq!(fourth.params["own"], json!(true));
    // A server whose world is older than what the node has does not take it back.
    assert_eq!(learned(&node, "999999-1").await, None);
    let refused = node.client.sync(
        "default",
        "web-1",
        NodeKnowledge { params: Some("x".to_owned()), ..NodeKnowledge::default() },
        Duration::from_millis(1),
    );
    assert_eq!(problem(refused.await).0, Code::Invalid);
}

#[tokio::test]
async fn a_profile_is_live_or_rolled_out_and_never_both() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let missing = problem(admin.set_profile_live("default", "eu", &live(true)).await);
    assert_eq!(missing, (Code::NotFound, "cannot find profile eu".to_owned()));
    admin.patch_profile("default", "eu", &patch(&[("a", json!(1))])).await.unwrap();
    let head = admin.set_profile_live("default", "eu", &live(true)).await.unwrap();
    assert_eq!((head.live, head.revision), (true, 1), "it makes no revision");
    let of_profile =
        EntitySpec { profile: Some("eu".to_owned()), selector: "all".to_owned(), ..EntitySpec::default() };
    let refused = problem(admin.set_entity("default", "web", &of_profile).await);
    assert_eq!(refused.0, Code::Refused);
    admin.set_profile_live("default", "eu", &live(false)).await.unwrap();
    admin.set_entity("default", "web", &of_profile).await.unwrap();
    let refused = problem(admin.set_profile_live("default", "eu", &live(true)).await);
    assert_eq!(refused.0, Code::Refused);
    // The newest few revisions of a live one are kept.
    admin.patch_profile("default", "busy", &patch(&[("a", json!(0))])).await.unwrap();
    admin.set_profile_live("default", "busy", &live(true)).await.unwrap();
    for number in 1..20 {
        admin.patch_profile("default", "busy", &patch(&[("a", json!(number))])).await.unwrap();
    }
    let kept: Vec<u64> = admin
        .profile_revisions("default", "busy")
        .await
        .unwrap()
        .items
        .iter()
        .map(|kept| kept.revision)
        .collect();
    assert_eq!(kept, [20, 19, 18, 17, 16, 15, 14, 13]);
}
