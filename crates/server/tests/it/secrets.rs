//! Secrets: what params say in their place, who reads them, and what is refused.

use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::node_params::NodeProfiles;
use bellwether_api::v1::param::ParamSpec;
use bellwether_api::v1::profile::{ParamsPatch, ProfileLive};
use bellwether_api::v1::secret::SecretSpec;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, policy, problem, version};
use crate::rights::with;

fn set(key: &str, value: Value) -> ParamsPatch {
    ParamsPatch { set: [(key.to_owned(), value)].into(), ..ParamsPatch::default() }
}

fn value(value: Value) -> SecretSpec {
    SecretSpec { value: Some(value), ..SecretSpec::default() }
}

async fn with_secret_param() -> Installation {
    let installation = Installation::new().await;
    let schema = json!({"type": "string", "minLength": 4}).as_object().unwrap().clone();
    let spec = ParamSpec { schema, secret: true, ..ParamSpec::default() };
    installation.admin().declare_param("default", "password", &spec).await.unwrap();
    installation
}

#[tokio::test]
async fn a_secret_param_is_shown_as_a_mark_and_kept_by_it() {
    let installation = with_secret_param().await;
    let admin = installation.admin();
    let own = json!({"$secret": "***"});
    let first = admin.patch_profile("default", "web", &set("password", json!("hunter2"))).await.unwrap();
    assert_eq!((first.revision, &first.params["password"]), (1, &own));
    let same = admin.patch_profile("default", "web", &set("password", json!("hunter2"))).await.unwrap();
    assert_eq!(same.revision, 1, "the same value again is no change");
    let other = admin.patch_profile("default", "web", &set("port", json!(80))).await.unwrap();
    assert_eq!((other.revision, &other.params["password"]), (2, &own));
    let kept = admin.patch_profile("default", "web", &set("password", own.clone())).await.unwrap();
    assert_eq!(kept.revision, 2, "the mark keeps what is there");
    assert_eq!(admin.reveal_of_profile("default", "web", "password").await.unwrap().value, "hunter2");
    let changed = admin.patch_profile("default", "web", &set("password", json!("hunter3"))).await.unwrap();
    assert_eq!((changed.revision, &changed.params["password"]), (3, &own));
    assert_eq!(admin.reveal_of_profile("default", "web", "password").await.unwrap().value, "hunter3");
    admin.expect_node("default", "web-1", "").await.unwrap();
    let node = admin.patch_node_params("default", "web-1", &set("password", json!("own-one"))).await.unwrap();
    assert_eq!(node.params["password"], own);
    assert_eq!(admin.reveal_of_node("default", "web-1", "password").await.unwrap().value, "own-one");
}

#[tokio::test]
async fn what_would_leak_or_forge_a_secret_is_refused_and_changes_nothing() {
    let installation = with_secret_param().await;
    let admin = installation.admin();
    admin.patch_profile("default", "web", &set("password", json!("hunter2"))).await.unwrap();
    let refused = async |key: &str, value: Value| {
        let (code, detail) = problem(admin.patch_profile("default", "web", &set(key, value)).await);
        assert!(!detail.contains("hunter") && !detail.contains("abc"), "{detail}");
        (code, detail)
    };
    let (code, detail) = refused("password", json!("abc")).await;
    assert!(code == Code::Invalid && detail.contains("params/password"), "{detail}");
    let (code, detail) = refused("copy", json!({"$secret": "***"})).await;
    assert!(code == Code::Invalid && detail.contains("params/copy: ***"), "{detail}");
    let (code, detail) = refused("deep", json!({"a": [{"$secret": "x"}]})).await;
    assert!(code == Code::Invalid && detail.contains("whole value"), "{detail}");
    let (code, detail) = refused("token", json!({"$secret": "none"})).await;
    assert!(code == Code::NotFound && detail.contains("secret none"), "{detail}");
    assert_eq!(refused("token", json!({"$secret": "a b"})).await.0, Code::Invalid);
    let long = Value::String("hunter".repeat(6_000));
    assert!(refused("password", long).await.1.contains("at most 32768"));
    // A patch that builds a mark piece by piece, copies one, or tests for the value.
    let patched = async |patch: Value| {
        problem(admin.change_profile("default", "web", &JsonChange::Patch(patch), "").await)
    };
    let copied = patched(json!([{"op": "copy", "from": "/password", "path": "/shown"}])).await;
    assert_eq!(copied.0, Code::Invalid, "{}", copied.1);
    let tested = patched(json!([{"op": "test", "path": "/password", "value": "hunter2"}])).await;
    assert!(tested.0 == Code::Conflict && tested.1.contains("$secret"), "{}", tested.1);
    // A param with values in plain text does not become a secret.
    admin.patch_profile("default", "web", &set("plain", json!("text"))).await.unwrap();
    admin
        .patch_profile(
            "default",
            "web",
            &ParamsPatch { remove: vec!["plain".to_owned()], ..set("a", json!(1)) },
        )
        .await
        .unwrap();
    let spec = ParamSpec { secret: true, ..ParamSpec::default() };
    let (code, detail) = problem(admin.declare_param("default", "plain", &spec).await);
    assert!(code == Code::Refused && detail.contains("revision 2 of profile web"), "{detail}");
    let default = ParamSpec { default: Some(json!("abcd")), ..spec };
    assert_eq!(problem(admin.declare_param("default", "fresh", &default).await).0, Code::Invalid);
}

#[tokio::test]
async fn a_secret_is_copied_when_it_is_named_and_only_by_its_readers() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let spec = SecretSpec {
        readers: Some(vec!["profile/web*".to_owned()]),
        ..value(json!({"user": "a", "pin": 1}))
    };
    let made = admin.set_secret("default", "db/login", &spec).await.unwrap();
    assert_eq!((made.revision, made.uses.len()), (1, 0));
    let again = admin.set_secret("default", "db/login", &spec).await.unwrap();
    assert_eq!(again.revision, 1, "the same again changes nothing");
    let named = json!({"$secret": "db/login"});
    let web = admin.patch_profile("default", "web", &set("login", named.clone())).await.unwrap();
    assert_eq!(web.params["login"], named);
    let (code, detail) = problem(admin.patch_profile("default", "db", &set("login", named.clone())).await);
    assert!(code == Code::Refused && detail.contains("profile/db: it is not among the readers"), "{detail}");
    let changed = admin.set_secret("default", "db/login", &value(json!("second"))).await.unwrap();
    assert_eq!(changed.uses, [("profile/web/login".to_owned(), 1)].into());
    assert_eq!(changed.readers, ["profile/web*"], "they stay");
    assert_eq!(
        admin.reveal_of_profile("default", "web", "login").await.unwrap().value,
        json!({"user": "a", "pin": 1})
    );
    let other = admin.patch_profile("default", "web", &set("port", json!(1))).await.unwrap();
    assert_eq!(
        (other.revision, admin.secret("default", "db/login").await.unwrap().uses["profile/web/login"]),
        (2, 2)
    );
    let lost = problem(admin.only_at(1).set_secret("default", "db/login", &value(json!("x"))).await);
    assert!(lost.0 == Code::Conflict && lost.1.contains("it is at revision 2, by admin"), "{}", lost.1);
    // No schema tells whoever declares it what a secret says.
    let schema = json!({"pattern": "^a"}).as_object().unwrap().clone();
    admin.declare_param("default", "guess", &ParamSpec { schema, ..ParamSpec::default() }).await.unwrap();
    admin.patch_profile("default", "web", &set("guess", named.clone())).await.unwrap();
    admin.delete_secret("default", "db/login").await.unwrap();
    assert_eq!(problem(admin.reveal_secret("default", "db/login").await).0, Code::NotFound);
    assert_eq!(admin.reveal_of_profile("default", "web", "login").await.unwrap().value, "second");
    for (bad, place) in [
        (SecretSpec::default(), "value"),
        (SecretSpec { provider: Some("vault".to_owned()), ..SecretSpec::default() }, "reference"),
        (SecretSpec { reference: Some("a".to_owned()), ..SecretSpec::default() }, "provider"),
        (SecretSpec { readers: Some(vec!["web".to_owned()]), ..value(json!(1)) }, "readers"),
        (value(Value::String("x".repeat(40_000))), "value"),
    ] {
        let (code, detail) = problem(admin.set_secret("default", "bad", &bad).await);
        assert!(code == Code::Invalid && detail.starts_with(place), "{detail}");
    }
}

#[tokio::test]
async fn a_secret_is_named_newly_only_by_who_may_read_of_it_whatever_they_write() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.set_secret("default", "db/other", &value(json!("battery staple"))).await.unwrap();
    admin.expect_node("default", "web-1", "").await.unwrap();
    let claims = ["get,update profile,node,param in default"];
    let writer = with(&installation, "writer", &claims).await;
    let mark = json!({"$secret": "db/other"});
    let refused = |what: &str, answer: (Code, String)| {
        assert_eq!(answer.0, Code::Forbidden, "{what}: {}", answer.1);
        let needed = "this needs the right get secret/db/other in default";
        assert!(answer.1.contains(needed), "{what}: {}", answer.1);
    };
    let patch = set("np", mark.clone());
    refused("node", problem(writer.patch_node_params("default", "web-1", &patch).await));
    refused("profile", problem(writer.patch_profile("default", "web", &patch).await));
    let change = JsonChange::Patch(json!([{"op": "add", "path": "/np", "value": mark}]));
    refused("JSON patch", problem(writer.change_profile("default", "web", &change, "").await));
    let spec = ParamSpec { default: Some(mark.clone()), ..ParamSpec::default() };
    refused("default", problem(writer.declare_param("default", "np", &spec).await));
    for document in [
        json!({"kind": "node", "name": "web-1", "params": {"np": mark}}),
        json!({"kind": "profile", "name": "web", "params": {"np": mark}}),
    ] {
        let documents = vec![serde_json::from_value(document).unwrap()];
        let request = ApplyRequest { documents, ..ApplyRequest::default() };
        refused("apply", problem(writer.apply("default", &request).await));
    }
    // What is named there already stays so, also under another key, and is written again.
    admin.patch_profile("default", "web", &patch).await.unwrap();
    writer.patch_profile("default", "web", &set("port", json!(80))).await.unwrap();
    admin.set_secret("default", "db/other", &value(json!("correct horse"))).await.unwrap();
    writer.patch_profile("default", "web", &set("also", mark.clone())).await.unwrap();
    let reader = with(&installation, "reader", &["update node", "get secret/db/* in default"]).await;
    reader.patch_node_params("default", "web-1", &patch).await.unwrap();
}

#[tokio::test]
async fn a_node_reads_the_secrets_of_what_its_order_names_and_no_other() {
    let installation = with_secret_param().await;
    let admin = installation.admin();
    for profile in ["web", "db", "fast"] {
        admin
            .patch_profile("default", profile, &set("password", json!(format!("of-{profile}"))))
            .await
            .unwrap();
    }
    let live = ProfileLive { live: true, ..ProfileLive::default() };
    admin.set_profile_live("default", "fast", &live).await.unwrap();
    let one = installation.node("web-1").await;
    let two = installation.node("web-2").await;
    let secrets = async |name: &str| one.client.node_secrets("default", name).await;
    assert!(secrets("web-1").await.unwrap().params.is_empty());
    assert!(matches!(problem(secrets("web-2").await).0, Code::Forbidden | Code::Unauthenticated));
    // By a person, not even the admin: there is `reveal` for that.
    assert_eq!(problem(admin.node_secrets("default", "web-1").await).0, Code::Forbidden);

    let profiles = NodeProfiles { profiles: vec!["fast".to_owned()], ..NodeProfiles::default() };
    admin.set_node_profiles("default", "web-1", &profiles).await.unwrap();
    admin.patch_node_params("default", "web-1", &set("password", json!("own-of-web-1"))).await.unwrap();
    let (selector, profile) = ("role=web".to_owned(), Some("web".to_owned()));
    let spec = EntitySpec { selector, profile, policy: policy("100%", "0s"), ..EntitySpec::default() };
    admin.set_entity("default", "web", &spec).await.unwrap();
    admin.start_rollout("default", "web", &version("web@1")).await.unwrap();
    one.client.report("default", &one.empty_report()).await.unwrap();
    one.assigned("web@1").await;
    let read = secrets("web-1").await.unwrap().params;
    let mut seen: Vec<_> = read
        .iter()
        .map(|set| (set.profile.as_deref(), set.revision, set.values["password"].as_str().unwrap()))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [(None, 2, "own-of-web-1"), (Some("fast"), 1, "of-fast"), (Some("web"), 1, "of-web")]);
    drop(two);
}

#[tokio::test]
async fn an_entity_that_gives_secrets_by_facts_is_warned_of() {
    let installation = with_secret_param().await;
    let admin = installation.admin();
    admin.patch_profile("default", "web", &set("password", json!("hunter2"))).await.unwrap();
    let path = "/v1/namespaces/default/entities/web";
    for (selector, is_warned) in [("fact.rack = 3", true), ("role=web", false)] {
        let body = json!({"selector": selector, "profile": "web"});
        let answer: Value = admin.send(Method::PATCH, path, &body, SOON).await.unwrap();
        assert_eq!(answer["warning"].is_string(), is_warned, "{answer}");
        let answer: Value = admin.send(Method::PUT, path, &body, SOON).await.unwrap();
        assert_eq!(answer["warning"].is_string(), is_warned, "{answer}");
    }
    let document =
        json!({"kind": "entity", "name": "web", "profile": "web", "selector": "exists(fact.rack)"});
    let body = json!({"documents": [document], "dry_run": true});
    let applied: Value = admin.send(Method::POST, "/v1/namespaces/default/apply", &body, SOON).await.unwrap();
    let note = applied["objects"][0]["note"].as_str().unwrap();
    assert!(note.starts_with("warning: the selector tests facts") && note.contains("profile web"), "{note}");
}
