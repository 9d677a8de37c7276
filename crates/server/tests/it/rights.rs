//! Roles and rights over the API: what each claim opens, what it hides, and that nobody grants what they lack.

use std::time::Duration;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Client, Identity};
use bellwether_api::paths::encode;
use bellwether_api::problem::Code;
use bellwether_api::v1::access::{NewJoinToken, NewToken};
use bellwether_api::v1::freeze::{FreezeKind, FreezeSpec};
use bellwether_api::v1::node::LabelChange;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::{Params, ParamsPatch};
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::role::{Claim, NewAccessReview, RoleSpec};
use bellwether_core::access;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, policy, problem, set_entity};

fn spec(claims: &[&str]) -> RoleSpec {
    let claims = claims.iter().map(|text| Claim::from(&access::Claim::parse(text).unwrap())).collect();
    RoleSpec { claims, description: String::new() }
}

fn new_token(name: &str, roles: &[&str], only_in: Option<&str>) -> NewToken {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    NewToken { name: name.to_owned(), roles, only_in: only_in.map(str::to_owned), expires_in: None }
}

/// A client with a token of a role with these claims, which has its name.
pub(crate) async fn with(installation: &Installation, name: &str, claims: &[&str]) -> Client {
    let admin = installation.admin();
    admin.put_role(name, &spec(claims)).await.unwrap();
    limited(installation, name, &[name], None).await
}

pub(crate) async fn limited(
    installation: &Installation,
    name: &str,
    roles: &[&str],
    only_in: Option<&str>,
) -> Client {
    let made = installation.admin().create_token(&new_token(name, roles, only_in)).await.unwrap();
    installation.client(Identity::Token(Secret::new(made.secret)))
}

async fn names(client: &Client, path: &str) -> Vec<String> {
    let page: Page<Value> = client.get(path, SOON).await.unwrap();
    let name = |item: &Value| item["name"].as_str().or(item["node"].as_str()).map(str::to_owned);
    page.items.iter().filter_map(name).collect()
}

async fn refusal(client: &Client, method: Method, path: &str, body: Value) -> (Code, String) {
    problem(client.send::<Value, Value>(method, path, &body, SOON).await)
}

pub(crate) async fn forbidden(client: &Client, method: Method, path: &str, body: Value) -> String {
    let (code, detail) = refusal(client, method, path, body).await;
    assert_eq!(code, Code::Forbidden, "{path}: {detail}");
    detail
}

#[tokio::test]
async fn every_route_requires_what_the_list_of_rights_says() {
    let installation = Installation::new().await;
    let mut lines: Vec<String> = installation
        .server()
        .routes()
        .iter()
        .map(|route| format!("{:6} {} requires {}", route.method, route.path, route.need.describe()))
        .collect();
    lines.sort();
    let listed: Vec<&str> = include_str!("rights.txt").lines().collect();
    let found = lines.join("\n");
    assert_eq!(lines, listed, "write this to rights.txt, if it is meant:\n{found}\n");
}

#[tokio::test]
async fn a_claim_to_some_names_shows_these_alone_everywhere() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for name in ["web-1", "web-2", "db-1"] {
        installation.node(name).await;
    }
    set_entity(&admin, policy("1", "0s")).await;
    let web = with(&installation, "web-only", &["get node/web-* in default"]).await;
    assert_eq!(names(&web, "/v1/namespaces/default/silent-nodes").await, ["web-1", "web-2"]);
    let listed: Page<Value> =
        web.get("/v1/namespaces/default/nodes?fields=name&count=true", SOON).await.unwrap();
    assert_eq!((listed.items.len(), listed.count), (2, Some(2)), "a count tells of no more");
    let filter = encode("not name = web-1");
    let path = format!("/v1/namespaces/default/nodes?fields=name&filter={filter}");
    assert_eq!(names(&web, &path).await, ["web-2"]);
    forbidden(&web, Method::GET, "/v1/namespaces/default/nodes/db-1", json!({})).await;
    web.node("default", "web-1").await.unwrap();
    web.why("default", "node/web-1").await.unwrap();
    web.why("default", "web-1").await.unwrap();
    // A name alone is looked for among what may be read, so that the answer does not tell whether there is such a node.
    let (code, detail) = refusal(&web, Method::GET, "/v1/namespaces/default/why/db-1", json!({})).await;
    assert_eq!((code, detail.as_str()), (Code::NotFound, "cannot find \"db-1\""));
    forbidden(&web, Method::GET, "/v1/namespaces/default/why/node/db-1", json!({})).await;
    forbidden(&web, Method::GET, "/v1/namespaces/default/why/entity/web", json!({})).await;
    forbidden(&web, Method::GET, "/v1/namespaces/default/entities", json!({})).await;
    let detail = forbidden(&web, Method::GET, "/v1/namespaces/default/status", json!({})).await;
    assert!(detail.contains("get node/* in default"), "{detail}");
    let events: Page<Value> = web.get("/v1/namespaces/default/events", SOON).await.unwrap();
    let subjects: Vec<&str> = events.items.iter().map(|event| event["subject"].as_str().unwrap()).collect();
    assert!(
        subjects.len() >= 2 && subjects.iter().all(|subject| subject.starts_with("node/web-")),
        "{subjects:?}"
    );
    let later: Page<Value> = web.get("/v1/namespaces/default/events?after=0&limit=1", SOON).await.unwrap();
    assert!(later.next.is_some() && later.items.len() == 1, "the next page goes on");
    assert!(web.documents("default").await.unwrap().items.is_empty(), "no entity");
}

#[tokio::test]
async fn a_token_that_is_limited_to_a_namespace_sees_and_changes_no_other() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    let spec = serde_json::from_value(json!({"selector": "all", "policy": {"batch": "1"}})).unwrap();
    admin.set_entity("shop", "till", &spec).await.unwrap();
    let shop = limited(&installation, "shop-admin", &["admin"], Some("shop")).await;
    assert_eq!(names(&shop, "/v1/namespaces/shop/entities").await, ["till"]);
    shop.set_entity("shop", "till-2", &spec).await.unwrap();
    assert_eq!(names(&shop, "/v1/namespaces").await, ["shop"]);
    for route in installation.server().routes() {
        let is_open = matches!(
            route.need,
            access::RequiredAccess::Open | access::RequiredAccess::Token | access::RequiredAccess::OwnNode
        );
        let is_somewhere =
            ["/v1/namespaces", "/v1/join-tokens", "/v1/join-tokens/{token}"].contains(&route.path);
        if is_open || is_somewhere {
            continue;
        }
        let mut path = route.path.replace("{ns}", "default").replace("{node}", "web-1");
        for (key, value) in
            [("{entity}", "web"), ("{number}", "1"), ("{operation}", "pause"), ("{*subject}", "x")]
        {
            path = path.replace(key, value);
        }
        let path = path.replace(['{', '}'], "");
        if bellwether_api::paths::is_fleet_lock(&path) {
            continue;
        }
        forbidden(&shop, Method::from_bytes(route.method.as_bytes()).unwrap(), &path, json!({})).await;
    }
    // So is what reads by content.
    for path in ["events", "documents", "why/node/web-1"] {
        forbidden(&shop, Method::GET, &format!("/v1/namespaces/default/{path}"), json!({})).await;
    }
    let documents =
        json!({"dry_run": true, "documents": [{"kind": "entity", "name": "web", "selector": "all"}]});
    let detail = forbidden(&shop, Method::POST, "/v1/namespaces/default/apply", documents).await;
    assert!(detail.contains("a right in namespace default"), "{detail}");
    // Tokens to join are of a namespace.
    let join = |namespace: &str| json!({"namespace": namespace});
    forbidden(&shop, Method::POST, "/v1/join-tokens", join("default")).await;
    shop.send::<_, Value>(Method::POST, "/v1/join-tokens", &join("shop"), SOON).await.unwrap();
    admin.send::<_, Value>(Method::POST, "/v1/join-tokens", &join("default"), SOON).await.unwrap();
    let seen: Page<Value> = shop.get("/v1/join-tokens", SOON).await.unwrap();
    assert_eq!(seen.items.len(), 1);
    let of_default =
        admin.join_tokens().await.unwrap().items.into_iter().find(|token| token.namespace == "default");
    let path = format!("/v1/join-tokens/{}", of_default.unwrap().id);
    forbidden(&shop, Method::DELETE, &path, json!({})).await;
}

#[tokio::test]
async fn a_claim_to_a_field_changes_that_field_alone() {
    let installation = Installation::new().await;
    installation.node("web-1").await;
    let claims =
        ["get node,profile", "update:/params/port,update:/labels/zone node", "update:/params/port profile"];
    let ports = with(&installation, "ports", &claims).await;
    let set = |key: &str| ParamsPatch {
        set: Params::from([(key.to_owned(), json!(80))]),
        ..ParamsPatch::default()
    };
    ports.patch_node_params("default", "web-1", &set("port")).await.unwrap();
    let denied = problem(ports.patch_node_params("default", "web-1", &set("port2")).await);
    assert!(
        denied.0 == Code::Forbidden && denied.1.contains("update:/params/port2 node/web-1"),
        "{}",
        denied.1
    );
    let path = "/v1/namespaces/default/nodes/web-1/params";
    forbidden(&ports, Method::PUT, path, json!({"params": {}})).await;
    installation.admin().patch_profile("default", "web", &set("other")).await.unwrap();
    ports.patch_profile("default", "web", &set("port")).await.unwrap();
    assert_eq!(problem(ports.patch_profile("default", "web", &set("x")).await).0, Code::Forbidden);
    let label = |key: &str| -> LabelChange { serde_json::from_value(json!({"set": {key: "a"}})).unwrap() };
    ports.label_node("default", "web-1", &label("zone")).await.unwrap();
    assert_eq!(problem(ports.label_node("default", "web-1", &label("role")).await).0, Code::Forbidden);
    forbidden(&ports, Method::POST, "/v1/namespaces/default/nodes/web-1/pause", json!({})).await;
}

#[tokio::test]
async fn a_claim_to_one_step_of_rollouts_takes_that_step_alone() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let approver =
        with(&installation, "approver", &["get entity,rollout", "update:/approve rollout/web"]).await;
    let path = |step: &str| format!("/v1/namespaces/default/entities/web/rollout/{step}");
    let (code, _) = refusal(&approver, Method::POST, &path("approve"), json!({})).await;
    assert_ne!(code, Code::Forbidden, "there is no rollout, but it may be approved");
    for step in ["pause", "abort", "undo"] {
        let detail = forbidden(&approver, Method::POST, &path(step), json!({})).await;
        assert!(detail.contains(&format!("update:/{step} rollout/web in default")), "{detail}");
    }
    let start = "/v1/namespaces/default/entities/web/rollouts";
    forbidden(&approver, Method::POST, start, json!({"version": "v1"})).await;
}

#[tokio::test]
async fn nobody_grants_what_they_lack() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let maker = with(&installation, "maker", &["get,update,delete token,role", "get node in shop"]).await;
    assert_eq!(problem(maker.create_token(&new_token("a", &["viewer"], None)).await).0, Code::Forbidden);
    let (code, detail) = problem(maker.put_role("all", &spec(&["* *"])).await);
    assert!(code == Code::Forbidden && detail.contains("do not cover the claim \"* *\""), "{detail}");
    assert_eq!(problem(maker.put_role("more", &spec(&["get node"])).await).0, Code::Forbidden);
    maker.put_role("less", &spec(&["get node/a in shop"])).await.unwrap();
    maker.create_token(&new_token("b", &["less"], None)).await.unwrap();
    // A limit makes a role grantable.
    admin.put_role("nodes", &spec(&["get node"])).await.unwrap();
    assert_eq!(problem(maker.create_token(&new_token("c", &["nodes"], None)).await).0, Code::Forbidden);
    maker.create_token(&new_token("c", &["nodes"], Some("shop"))).await.unwrap();
    // A role that grows takes effect at once, and only by those who may.
    assert_eq!(problem(maker.put_role("less", &spec(&["get node"])).await).0, Code::Forbidden);
}

#[tokio::test]
async fn roles_in_use_and_built_in_ones_stay() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let one = with(&installation, "one", &["get node"]).await;
    one.nodes("default", false).await.unwrap();
    let (code, detail) = problem(admin.delete_role("one").await);
    assert!(code == Code::Refused && detail.contains("token one has it"), "{detail}");
    let (code, detail) = problem(admin.put_role("viewer", &spec(&["get node"])).await);
    assert!(code == Code::Refused && detail.contains("built in"), "{detail}");
    assert_eq!(problem(admin.delete_role("admin").await).0, Code::Refused);
    let (code, detail) = problem(admin.create_token(&new_token("x", &["king"], None)).await);
    assert!(code == Code::Invalid && detail.contains("admin, one"), "{detail}");
    assert_eq!(problem(admin.create_token(&new_token("x", &[], None)).await).0, Code::Invalid);
    let (code, detail) = problem(admin.create_token(&new_token("x", &["viewer"], Some("a*b"))).await);
    assert!(code == Code::Invalid && detail.contains("only_in"), "{detail}");
    admin.put_role("one", &spec(&["get entity"])).await.unwrap();
    assert_eq!(problem(one.nodes("default", false).await).0, Code::Forbidden, "at once");
    admin.delete_token("one").await.unwrap();
    admin.delete_role("one").await.unwrap();
    assert_eq!(problem(admin.role("one").await).0, Code::NotFound);
    let names: Vec<String> = admin.roles().await.unwrap().items.into_iter().map(|role| role.name).collect();
    assert_eq!(names, ["admin", "operator", "viewer"]);
}

#[tokio::test]
async fn a_token_can_ask_what_it_may_do() {
    let installation = Installation::new().await;
    let web = with(&installation, "web", &["get,update:/pause node/web-* in shop"]).await;
    let ask = |verb: &str, name: &str, namespace: &str| NewAccessReview {
        verb: verb.to_owned(),
        kind: "node".to_owned(),
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
    };
    let yes = web.review_access(&ask("update:/pause", "web-1", "shop")).await.unwrap();
    assert!(yes.allowed && yes.role.as_deref() == Some("web"), "{yes:?}");
    assert_eq!(yes.claim.as_deref(), Some("get,update:/pause node/web-* in shop"));
    for asked in [ask("update", "web-1", "shop"), ask("get", "db-1", "shop"), ask("get", "web-1", "default")]
    {
        assert!(!web.review_access(&asked).await.unwrap().allowed, "{asked:?}");
    }
    let wrong = NewAccessReview { kind: "nodes".to_owned(), ..ask("get", "x", "y") };
    let (code, detail) = problem(web.review_access(&wrong).await);
    assert!(code == Code::Invalid && detail.contains("did you mean node?"), "{detail}");
    let me = web.who_am_i().await.unwrap();
    assert_eq!((me.roles.len(), me.claims.len()), (1, 1));
}

#[tokio::test]
async fn changes_and_refusals_are_in_the_audit_log_before_they_take_effect() {
    let mut installation = Installation::new().await;
    let web = with(&installation, "web", &["get,update:/pause node/web-* in default"]).await;
    let node = installation.node("web-1").await;
    let pause = "/v1/namespaces/default/nodes/web-1/pause";
    web.send::<_, Value>(Method::POST, pause, &json!({}), SOON).await.unwrap();
    forbidden(&web, Method::GET, "/v1/namespaces/default/nodes/db-1", json!({})).await;
    let stranger = installation.client(Identity::Token(Secret::new("bwt_nobody")));
    assert_eq!(problem(stranger.who_am_i().await).0, Code::Unauthenticated);
    node.runs("v1", 1, TargetHealth::Healthy).await;
    installation.restart().await;
    let admin = installation.admin();
    let of = async |filter: &str| admin.audit(Some(filter), None, 100, SOON).await.unwrap().items;
    let paused = of("actor = web and method = POST").await;
    assert_eq!(paused.len(), 1);
    assert_eq!(paused[0].right.as_deref(), Some("update:/pause node/web-1 in default"));
    assert!(paused[0].status == Some(200) && paused[0].address.is_some() && paused[0].roles == ["web"]);
    let denied = of("outcome = denied").await;
    let who: Vec<&str> = denied.iter().map(|entry| entry.actor.as_str()).collect();
    assert_eq!(who, ["web", "anonymous"]);
    assert!(denied[0].reason.as_ref().unwrap().contains("get node/db-1"), "{denied:?}");
    assert_eq!(of("path = '/v1/join' and status = 200").await.len(), 1);
    assert_eq!(of("path =~ 'report$'").await.len(), 0, "nodes report on their own behalf");
    let all = of("id >= 1").await;
    let ids: Vec<u64> = all.iter().map(|entry| entry.id).collect();
    assert!(
        ids.iter().eq((1..=ids.len() as u64).collect::<Vec<_>>().iter()),
        "no number is missing: {ids:?}"
    );
    assert!(!serde_json::to_string(&all).unwrap().contains("bwt_"), "no secret");
    forbidden(&installation.token("operator").await, Method::GET, "/v1/audit", json!({})).await;
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_done() {
    let mut installation = Installation::new().await;
    let dir = installation.audit_dir();
    installation.admin().put_role("web", &spec(&["get node"])).await.unwrap();
    // The file is as good as full, so that it is set aside before the next entry.
    let full = format!("{}\n", " ".repeat(16 * 1_024 * 1_024));
    std::io::Write::write_all(
        &mut std::fs::OpenOptions::new().append(true).open(dir.join("audit.jsonl")).unwrap(),
        full.as_bytes(),
    )
    .unwrap();
    installation.restart().await;
    let admin = installation.admin();
    let away = dir.with_extension("away");
    std::fs::rename(&dir, &away).unwrap();
    let (code, detail) = problem(admin.put_role("db", &spec(&["get node"])).await);
    assert!(code == Code::Store && detail.contains("cannot write the audit log"), "{detail}");
    assert_eq!(problem(admin.role("db").await).0, Code::NotFound, "reading goes on, and nothing was changed");
    // But for the stop of everything, and that alone.
    let stop = FreezeSpec { kind: Some(FreezeKind::Stop), ..FreezeSpec::default() };
    for place in [Some("default"), None] {
        assert_eq!(problem(admin.set_freeze(place, "sale", &stop).await).0, Code::Store);
        admin.set_freeze(place, "stop-everything", &stop).await.unwrap();
        assert_eq!(problem(admin.delete_freeze(place, "stop-everything").await).0, Code::Store);
    }
    std::fs::rename(&away, &dir).unwrap();
    admin.put_role("db", &spec(&["get node"])).await.unwrap();
    let all = admin.audit(None, None, 100, SOON).await.unwrap().items;
    assert_eq!(all.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2, "one is set aside");
}

#[tokio::test]
async fn a_wait_is_for_what_matches_and_may_be_read() {
    let installation = Installation::new().await;
    installation.node("web-1").await;
    installation.node("db-1").await;
    let web = with(&installation, "web", &["get,update:/pause node/web-* in default", "get audit"]).await;
    let newest = web.events("default", None, 1, Duration::ZERO).await.unwrap().items[0].seq;
    let admin = installation.admin();
    let waiting = web.events("default", Some(newest), 10, Duration::from_secs(60));
    let changing = async {
        admin.pause_node("default", "db-1", "").await.unwrap();
        admin.pause_node("default", "web-1", "").await.unwrap();
    };
    let (page, ()) = tokio::join!(waiting, changing);
    let subjects: Vec<String> = page.unwrap().items.into_iter().map(|event| event.subject).collect();
    assert_eq!(subjects, ["node/web-1"], "an event that may not be read ends no wait");
    let none = web.events("default", Some(newest + 100), 10, Duration::from_millis(10)).await.unwrap();
    assert!(none.items.is_empty());
    let last = admin.audit(None, None, 1, Duration::ZERO).await.unwrap().items[0].id;
    let waiting = admin.audit(Some("actor = web"), Some(last), 10, Duration::from_secs(60));
    let changing = async {
        admin.resume_node("default", "web-1").await.unwrap();
        web.pause_node("default", "web-1", "").await.unwrap();
    };
    let (page, ()) = tokio::join!(waiting, changing);
    let entries = page.unwrap().items;
    assert!(entries.len() == 1 && entries[0].actor == "web", "{entries:?}");
}

#[tokio::test]
async fn who_may_not_set_a_label_may_not_let_a_machine_have_it() {
    let installation = Installation::new().await;
    let claims = ["update join-token in default", "update:/labels/zone node in default"];
    let joiner = with(&installation, "joiner", &claims).await;
    let asks = async |label: &str| {
        let new = NewJoinToken { labels: vec![label.to_owned()], ..NewJoinToken::default() };
        joiner.create_join_token(&new).await
    };
    asks("zone=*").await.unwrap();
    for label in ["role=web", "role=*", "zo*", "*"] {
        assert_eq!(problem(asks(label).await).0, Code::Forbidden, "{label}");
    }
}
