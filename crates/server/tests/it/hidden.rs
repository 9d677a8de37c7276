//! What a token does not learn of what it may not read: whether a namespace exists, names of nodes, who uses a secret.

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::plan::NewPlan;
use bellwether_api::v1::profile::ParamsPatch;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::secret::SecretSpec;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, policy, problem, set_entity, until, version};
use crate::rights::{limited, with};

/// The answer to a request, as a code and a text without the namespace.
async fn answer(client: &Client, method: &str, path: &str, namespace: &str) -> (Code, String) {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let path = path.replace("{ns}", namespace);
    let answer = client.send::<Value, Value>(method, &path, &json!({}), SOON).await;
    let (code, detail) = match answer {
        // FleetLock's paths refuse in the format of that protocol.
        Err(CallError::Garbled { reason, .. }) if reason.contains("status 403") => (Code::Forbidden, reason),
        answer => problem(answer),
    };
    (code, detail.replace(namespace, "NS"))
}

#[tokio::test]
async fn a_token_of_a_namespace_does_not_learn_which_others_there_are() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let spec = EntitySpec { selector: "all".to_owned(), ..EntitySpec::default() };
    for namespace in ["shop", "vault"] {
        admin.set_entity(namespace, "web", &spec).await.unwrap();
    }
    let shop = limited(&installation, "shop", &["operator"], Some("shop")).await;
    assert_eq!(shop.entities("shop").await.unwrap().items.len(), 1);
    let mut tried = 0;
    for route in installation.server().routes().iter().filter(|route| route.path.contains("{ns}")) {
        let parts = route.path.split('/').map(|part| match part {
            "{ns}" => part,
            "{*subject}" => "entity/web",
            "{number}" => "1",
            part if part.starts_with('{') => "web",
            part => part,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        let there = answer(&shop, route.method, &path, "vault").await;
        let not_there = answer(&shop, route.method, &path, "voult").await;
        assert_eq!(there, not_there, "{} {path}", route.method);
        assert_eq!(there.0, Code::Forbidden, "{} {path}: {}", route.method, there.1);
        tried += 1;
    }
    assert!(tried > 50, "{tried} routes are not all");
    let (code, detail) = problem(admin.entities("voult").await);
    assert_eq!(code, Code::NotFound, "{detail}");
}

#[tokio::test]
async fn who_may_not_read_nodes_sees_how_many_targets_there_are_and_not_which() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let both = (installation.node("web-1").await, installation.node("web-2").await);
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v0")).await.unwrap();
    for node in [&both.0, &both.1] {
        let number = node.assigned("v0").await;
        node.runs("v0", number, TargetHealth::Healthy).await;
    }
    until(&admin, |view| view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())).await;
    let entities = with(&installation, "entities", &["get,update entity", "get,update rollout"]).await;
    let nodes = with(&installation, "nodes", &["get entity", "get rollout", "get node/web-1"]).await;
    let plan = NewPlan { version: Some("v1".to_owned()), ..NewPlan::default() };
    let hidden = entities.plan_rollout("default", "web", &plan).await.unwrap();
    assert_eq!(hidden.batches.len(), 2, "{hidden:?}");
    assert!(hidden.batches.iter().all(|batch| batch.first.is_none() && batch.last.is_none()), "{hidden:?}");
    let partly = nodes.plan_rollout("default", "web", &plan).await.unwrap();
    let first: Vec<Option<&str>> = partly.batches.iter().map(|batch| batch.first.as_deref()).collect();
    assert_eq!(first, [Some("web-1"), None]);
    let names = async |client: &Client| {
        let page: Value = client.get("/v1/namespaces/default/entities/web/targets", SOON).await.unwrap();
        let items = page["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&admin).await, ["web-1", "web-2"]);
    assert_eq!(names(&nodes).await, ["web-1"]);
    assert_eq!(names(&entities).await, Vec::<String>::new());
    // Counts are shown.
    assert_eq!(entities.current_rollout("default", "web", None, SOON).await.unwrap().needed, 2);
    for (there, not_there) in [("target/web/web-1", "target/web/web-9"), ("web-1", "web-9")] {
        let (one, other) = (entities.why("default", there).await, entities.why("default", not_there).await);
        let (one, other) = (problem(one), problem(other));
        assert_eq!((one.0, one.1.replace("web-1", "web-9")), other, "{there}");
    }
}

#[tokio::test]
async fn who_may_read_a_secret_sees_of_its_users_those_that_may_be_read() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    let spec = SecretSpec { value: Some(json!("hunter2")), ..SecretSpec::default() };
    admin.set_secret("default", "db", &spec).await.unwrap();
    let named = json!({"$secret": "db"});
    let patch = ParamsPatch { set: [("login".to_owned(), named)].into(), ..ParamsPatch::default() };
    admin.patch_profile("default", "web", &patch).await.unwrap();
    admin.patch_node_params("default", "web-1", &patch).await.unwrap();
    let secrets = with(&installation, "secrets", &["get,update,delete secret"]).await;
    let profiles = with(&installation, "profiles", &["get secret", "get profile/web"]).await;
    let uses = async |client: &Client| {
        let secret = client.secret("default", "db").await.unwrap();
        (secret.uses.into_keys().collect::<Vec<_>>(), secret.hidden_uses)
    };
    assert_eq!(uses(&admin).await, (vec!["node/web-1/login".to_owned(), "profile/web/login".to_owned()], 0));
    assert_eq!(uses(&secrets).await, (Vec::new(), 2));
    assert_eq!(uses(&profiles).await, (vec!["profile/web/login".to_owned()], 1));
    let changed = SecretSpec { value: Some(json!("hunter3")), ..SecretSpec::default() };
    let answer = secrets.set_secret("default", "db", &changed).await.unwrap();
    assert!(answer.uses.is_empty() && answer.hidden_uses == 2, "{answer:?}");
}
