//! Rights that come without others that they would need, or that end while something is done with them.

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::client::Identity;
use bellwether_api::client::secret::Secret;
use bellwether_api::problem::Code;
use bellwether_api::v1::access::NewToken;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::cluster::ClusterSpec;
use bellwether_api::v1::cluster::work::NewClusterRun;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::node_params::NodeProfiles;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;
use bellwether_api::v1::slot::{AcquireSlot, ReleaseSlot};

use crate::harness::{Installation, policy, problem, set_entity, version};
use crate::rights::with;

#[tokio::test]
async fn who_may_only_start_rollouts_starts_them_with_the_policy_of_the_entity() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    let before = admin.entity("default", "web").await.unwrap();
    let starter = with(&installation, "starter", &["update:/start rollout/web"]).await;
    let other = Policy { batch: Some("100%".to_owned()), ..Policy::default() };
    let unset = NewRollout { unset: vec!["batch".to_owned()], ..version("v1") };
    for request in [
        NewRollout { save: true, ..version("v1") },
        NewRollout { policy: other.clone(), ..version("v1") },
        NewRollout { policy: other.clone(), save: true, ..version("v1") },
        unset,
    ] {
        let (code, detail) = problem(starter.start_rollout("default", "web", &request).await);
        assert_eq!(code, Code::Forbidden, "{detail}");
        assert!(detail.contains("this needs the right update entity/web in default"), "{detail}");
    }
    assert_eq!(admin.entity("default", "web").await.unwrap(), before);
    // One that changes nothing of it is none.
    let same =
        NewRollout { policy: Policy { batch: Some("1".to_owned()), ..Policy::default() }, ..version("v1") };
    starter.start_rollout("default", "web", &same).await.unwrap();
    let editor = with(&installation, "editor", &["update:/start rollout/web", "update entity/web"]).await;
    let request = NewRollout { policy: other, save: true, ..version("v2") };
    editor.start_rollout("default", "web", &request).await.unwrap();
    assert_ne!(admin.entity("default", "web").await.unwrap().policy, before.policy);
}

#[tokio::test]
async fn who_waits_for_news_gets_none_of_after_the_end_of_their_token() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let reader = with(&installation, "reader", &["get *"]).await;
    let last = admin.overview("default").await.unwrap().last_event;
    let wait = reader.events("default", Some(last), 10, Duration::from_secs(30));
    let end = async {
        // Meanwhile it waits.
        for _ in 0..5 {
            reader.who_am_i().await.unwrap();
        }
        admin.delete_token("reader").await.unwrap();
        set_entity(&admin, policy("1", "0s")).await;
    };
    let (waited, ()) = tokio::join!(wait, end);
    assert_eq!(problem(waited).0, Code::Unauthenticated);
}

#[tokio::test]
async fn names_of_other_callers_are_reserved_and_a_hint_says_something() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for name in ["bellwether", "recovery"] {
        let token = NewToken {
            name: name.to_owned(),
            roles: vec!["viewer".to_owned()],
            only_in: None,
            expires_in: None,
        };
        let (code, detail) = problem(admin.create_token(&token).await);
        assert_eq!((code, detail.as_str()), (Code::Invalid, "name: the name is reserved"));
    }
    let only_in = Some("shop".to_owned());
    let token =
        NewToken { name: "shop".to_owned(), roles: vec!["viewer".to_owned()], only_in, expires_in: None };
    let made = admin.create_token(&token).await.unwrap();
    let shop = installation.client(Identity::Token(Secret::new(made.secret)));
    let Err(CallError::Problem(unknown)) = shop.entities("shop").await else { panic!("there is none") };
    assert_eq!((unknown.detail.as_str(), unknown.hint), ("cannot find namespace shop", None));
    let Err(CallError::Problem(unknown)) = admin.cluster("default", "db").await else {
        panic!("there is none")
    };
    assert!(unknown.hint.unwrap().contains("bellwether cluster create db"));
}

#[tokio::test]
async fn who_may_change_clusters_runs_no_workflow_by_them_that_they_may_not_run() {
    let installation = Installation::new().await;
    installation.node("web-1").await;
    let member = with(&installation, "member", &["update cluster", "update profile", "get cluster"]).await;
    let spec = ClusterSpec { filter: Some("name=web-1".to_owned()), ..ClusterSpec::default() };
    member.set_cluster("default", "c", &spec).await.unwrap();
    let run = NewClusterRun {
        workflow: Some("welcome".to_owned()),
        on: Some("all".to_owned()),
        ..NewClusterRun::default()
    };
    let (code, detail) = problem(member.start_cluster_run("default", "c", &run).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
    assert!(detail.contains("this needs the right update run/welcome in default"), "{detail}");
    let spec = ClusterSpec { manager_workflow: Some("welcome".to_owned()), ..spec };
    let (code, detail) = problem(member.set_cluster("default", "c", &spec).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
}

#[tokio::test]
async fn a_profile_is_read_only_where_who_may_change_it_says_so() {
    let installation = Installation::new().await;
    installation.node("web-1").await;
    let claims = [
        "update entity/mine",
        "update:/start rollout/mine",
        "update:/profiles node/web-1",
        "update:/params node/web-1",
    ];
    let maker = with(&installation, "maker", &claims).await;
    let spec =
        EntitySpec { selector: "all".to_owned(), profile: Some("redis".to_owned()), ..EntitySpec::default() };
    let needed = "this needs the right update profile/redis in default";
    let (code, detail) = problem(maker.set_entity("default", "mine", &spec).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
    assert!(detail.contains(needed), "{detail}");
    let profiles = NodeProfiles { profiles: vec!["redis".to_owned()], reason: String::new() };
    let (code, detail) = problem(maker.set_node_profiles("default", "web-1", &profiles).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
    assert!(detail.contains(needed), "{detail}");
    let document = serde_json::json!({"kind": "node", "name": "web-1", "profiles": ["redis"]});
    let documents = vec![serde_json::from_value(document).unwrap()];
    let request = ApplyRequest { documents, ..ApplyRequest::default() };
    let (code, detail) = problem(maker.apply("default", &request).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
    assert!(detail.contains(needed), "{detail}");
}

#[tokio::test]
async fn a_lock_is_released_by_the_token_that_acquired_it_or_by_who_may_change_it() {
    let installation = Installation::new().await;
    let claims = ["get,update:/holders slot"];
    let one = with(&installation, "one", &claims).await;
    let other = with(&installation, "other", &claims).await;
    let acquire = AcquireSlot { holder: "h1".to_owned(), ..AcquireSlot::default() };
    let fence = one.acquire_slot("default", "lq", &acquire).await.unwrap().fence;
    let back = |holder: &str, fence| ReleaseSlot { holder: holder.to_owned(), fence };
    for (holder, fence) in [("h1", fence + 1), ("h2", fence), ("h2", 0), ("h2", fence + 1)] {
        let (code, detail) = problem(one.release_slot("default", "lq", &back(holder, fence)).await);
        let said = format!("cannot release slot lq for {holder}: h1 holds it with fencing number 1");
        assert_eq!((code, detail), (Code::Refused, said));
    }
    let (code, detail) = problem(other.release_slot("default", "lq", &back("h1", fence)).await);
    assert_eq!(code, Code::Forbidden, "{detail}");
    let needed = "token one acquired it: this needs the right update slot/lq in default";
    assert!(detail.contains(needed), "{detail}");
    for _ in 0..2 {
        one.release_slot("default", "lq", &back("h1", fence)).await.unwrap();
    }
    let again = one.acquire_slot("default", "lq", &acquire).await.unwrap().fence;
    installation.admin().release_slot("default", "lq", &back("h1", again)).await.unwrap();
    assert!(one.acquire_slot("default", "lq", &acquire).await.unwrap().fence > again);
}

#[tokio::test]
async fn no_token_outlives_the_one_that_made_it() {
    let installation = Installation::new().await;
    let token = |name: &str, life: Option<&str>| NewToken {
        name: name.to_owned(),
        roles: vec!["admin".to_owned()],
        only_in: None,
        expires_in: life.map(str::to_owned),
    };
    let made = installation.admin().create_token(&token("short", Some("1h"))).await.unwrap();
    let short = installation.client(Identity::Token(Secret::new(made.secret)));
    for life in [None, Some("2h")] {
        let (code, detail) = problem(short.create_token(&token("child", life)).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.starts_with("expires_in: must be at most "), "{detail}");
        assert!(detail.ends_with(": your own token expires then"), "{detail}");
    }
    short.create_token(&token("child", Some("10m"))).await.unwrap();
}
