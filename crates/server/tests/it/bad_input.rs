//! Invalid input is refused with its place, a reason and a next step, and nothing is changed.

use bellwether_api::client::{Client, ListOptions};
use bellwether_api::problem::Code;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, policy, problem, set_entity, version};

/// Lists of what a filter matches.
fn filtered(filter: &str) -> ListOptions {
    ListOptions { filter: Some(filter.to_owned()), ..ListOptions::default() }
}

/// Sends `body` and returns the refusal; the number of events shows that nothing was changed.
async fn refusal(client: &Client, method: Method, path: &str, body: Value) -> (Code, String) {
    let before = client.overview("default").await.unwrap().last_event;
    let refused = problem(client.send::<Value, Value>(method, path, &body, SOON).await);
    let after = client.overview("default").await.unwrap().last_event;
    assert_eq!(before, after, "{path} changed something: {refused:?}");
    refused
}

#[tokio::test]
async fn entities_and_policies_are_refused_with_the_field() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let path = "/v1/namespaces/default/entities/web";
    let cases = [
        (json!({"selector": "all", "polcy": {}}), "unknown field `polcy`"),
        (json!({"selector": "all", "policy": {"bach": "5%"}}), "policy"),
        (json!({"selector": "all", "policy": {"soak": "60"}}), "policy.soak: "),
        (json!({"selector": "all", "policy": {"soak": "2m", "deadline": "1m"}}), "policy.deadline: "),
        (json!({"selector": "all", "policy": {"failures": "3"}}), "success 100% tolerates no failures"),
        (json!({"selector": "all", "policy": {"success": "101%"}}), "over 100%"),
        (json!({"selector": "all", "policy": {"batch": "a few"}}), "policy.batch: "),
        (json!({"selector": "all", "policy": {"on_failure": "explode"}}), "`rollback`, `pause`, `continue`"),
        (json!({"selector": "role=", "policy": {}}), "at position 5: expected a value"),
        (json!({"selector": "", "policy": {}}), "write 'all' for every node"),
        (json!({"policy": {}}), "selector: missing; write 'all' for every node"),
        (json!("web"), "expected struct EntitySpec"),
        (json!([]), "expected a JSON object, found a list"),
        (json!({"selector": "all", "policy": []}), "expected an object"),
        (json!({"selector": "all", "policy": {"hooks": []}}), "expected an object"),
        (json!({"selector": "all", "policy": {"soak": "1s1s"}}), "policy.soak: "),
        (json!({"selector": "all", "policy": {"batch": -1}}), "a count is not negative"),
        (json!({"selector": "all", "policy": {"batch": 1.5}}), "expected a count"),
        (
            json!({"selector": "all", "policy": {"hooks": {"approval": {"url": "http://x:99999/"}}}}),
            "is not an address",
        ),
        (json!({"selector": "all", "policy": {"monitor": {"url": "http://[::1/"}}}), "is not an address"),
        (json!({"external": {"remove_after": "99999d"}}), "external.remove_after: must be at most 365d"),
        (json!({"external": {}, "policy": {"domain": "zone"}}), "policy.domain: "),
        (json!({"external": {}, "policy": {"order": "label:zone"}}), "policy.order: "),
        (json!({"external": {}, "policy": {"retries": 1}}), "policy.retries: "),
    ];
    for (body, reason) in cases {
        let (code, detail) = refusal(&admin, Method::PUT, path, body.clone()).await;
        assert_eq!(code, Code::Invalid, "{body}: {detail}");
        assert!(detail.contains(reason), "{body}: {detail:?} does not say {reason:?}");
    }
    let (_, detail) =
        refusal(&admin, Method::PUT, "/v1/namespaces/default/entities/Web", json!({"selector": "all"})).await;
    assert!(detail.contains("\"Web\""), "{detail}");
    assert!(admin.entities("default").await.unwrap().items.is_empty());
}

#[tokio::test]
async fn versions_that_are_none_are_refused() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let path = "/v1/namespaces/default/entities/web/rollouts";
    for bad in ["", " ", "v 1", "-v1", "v1;reboot", &"v".repeat(200)] {
        let (code, detail) = refusal(&admin, Method::POST, path, json!({"version": bad})).await;
        assert_eq!(code, Code::Invalid, "{bad:?}");
        assert!(detail.contains("version: "), "{detail}");
    }
    let (code, detail) = refusal(&admin, Method::POST, path, json!({})).await;
    assert_eq!(code, Code::Invalid);
    assert!(detail.contains("version: missing"), "{detail}");
    let (code, detail) =
        refusal(&admin, Method::POST, path, json!({"version": "v1", "plan": "nonsense"})).await;
    assert_eq!(code, Code::Invalid);
    assert!(detail.contains("plan: "), "{detail}");
}

#[tokio::test]
async fn a_count_may_be_a_number_and_a_targets_name_has_no_empty_part() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let path = "/v1/namespaces/default/entities/web";
    let body = json!({"external": {}, "policy": {"batch": 2, "success": "50%", "failures": 1}});
    admin.send::<Value, Value>(Method::PUT, path, &body, SOON).await.unwrap();
    let policy = admin.entity("default", "web").await.unwrap().policy;
    assert_eq!((policy.batch.as_deref(), policy.failures.as_deref()), (Some("2"), Some("1")));
    for bad in ["/a", "a/", "a//b", "/"] {
        let body = json!({"targets": [{"name": bad}]});
        let (code, detail) = refusal(&admin, Method::POST, &format!("{path}/reports"), body).await;
        assert_eq!(code, Code::Invalid, "{bad}");
        assert!(detail.contains("targets[0].name: "), "{detail}");
    }
}

#[tokio::test]
async fn a_missing_object_is_not_found_with_a_hint() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    assert_eq!(problem(admin.node("default", "web-9").await).0, Code::NotFound);
    assert_eq!(problem(admin.pause_node("default", "web-9", "").await).0, Code::NotFound);
    assert_eq!(problem(admin.entity("default", "nothing").await).0, Code::NotFound);
    assert_eq!(problem(admin.start_rollout("default", "nothing", &version("v1")).await).0, Code::NotFound);
    assert_eq!(problem(admin.nodes("staging", false).await).0, Code::NotFound);
    assert_eq!(problem(admin.get::<Value>("/v1/nowhere", SOON).await).0, Code::NotFound);
    let (code, detail) = problem(admin.get::<Value>("/v1/namespaces/default/nodes?filtr=x", SOON).await);
    assert_eq!((code, detail.contains("filtr")), (Code::Invalid, true), "{detail}");
    let (code, _) = problem(admin.listing(filtered("role=")).nodes("default", false).await);
    assert_eq!(code, Code::Invalid);
}

#[tokio::test]
async fn operations_that_make_no_sense_now_are_refused_with_the_reason() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    for verb in ["pause", "resume", "abort", "undo", "retry"] {
        let path = format!("/v1/namespaces/default/entities/web/rollout/{verb}");
        let (code, detail) = refusal(&admin, Method::POST, &path, json!({})).await;
        assert_eq!(code, Code::Refused, "{verb}: {detail}");
    }
    let path = "/v1/namespaces/default/entities/web/rollout/explode";
    assert_eq!(refusal(&admin, Method::POST, path, json!({})).await.0, Code::NotFound);
}

#[tokio::test]
async fn a_report_for_another_node_or_with_nonsense_changes_nothing() {
    let installation = Installation::new().await;
    let (node, _other) = (installation.node("web-1").await, installation.node("web-2").await);
    let mut report = node.empty_report();
    report.node = "web-2".to_owned();
    let path = "/v1/namespaces/default/nodes/web-1/report";
    let answer = node.client.send::<_, Value>(Method::PUT, path, &report, SOON).await;
    let (code, detail) = problem(answer);
    assert_eq!(code, Code::Invalid);
    assert!(detail.contains("a node reports about itself only"), "{detail}");
    assert_eq!(problem(node.client.report("default", &report).await).0, Code::Forbidden);
    let mut nonsense = serde_json::to_value(node.empty_report()).unwrap();
    nonsense["statuses"] = json!({"configure": {"state": "fine"}});
    let (code, detail) = problem(node.client.send::<_, Value>(Method::PUT, path, &nonsense, SOON).await);
    assert_eq!(code, Code::Invalid);
    assert!(detail.contains("statuses.configure.state"), "{detail}");
    assert!(installation.admin().node("default", "web-1").await.unwrap().reported_at_ms.is_none());
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_as_too_large() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let mut report = node.empty_report();
    report.agent_version = "x".repeat(2 << 20);
    let (code, detail) = problem(node.client.report("default", &report).await);
    assert_eq!(code, Code::TooLarge, "{detail}");
}

#[tokio::test]
async fn a_node_is_paused_labelled_and_listed() {
    let installation = Installation::new().await;
    let (admin, _node) = (installation.admin(), installation.node("web-1").await);
    admin.pause_node("default", "web-1", "changing a disk").await.unwrap();
    let why = admin.why("default", "web-1").await.unwrap();
    assert!(why.lines.iter().any(|line| line.contains("paused by admin: changing a disk")), "{why:?}");
    admin.resume_node("default", "web-1").await.unwrap();
    let change = serde_json::from_value(json!({"set": {"zone": "a"}, "remove": ["role"]})).unwrap();
    admin.label_node("default", "web-1", &change).await.unwrap();
    let picked = admin.listing(filtered("zone=a and not role")).nodes("default", false).await.unwrap();
    assert_eq!(picked.items.len(), 1);
    let (code, _) = problem(admin.pause_node("default", "web-1", "two\nlines").await);
    assert_eq!(code, Code::Invalid);
    let bad = serde_json::from_value(json!({"set": {"not": "x"}})).unwrap();
    assert_eq!(problem(admin.label_node("default", "web-1", &bad).await).0, Code::Invalid);
}

#[tokio::test]
async fn slots_are_neither_taken_nor_renewed_by_what_makes_no_sense() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let path = |verb: &str| format!("/v1/namespaces/default/slots/one/{verb}");
    for (verb, body, reason) in [
        ("acquire", json!({}), "missing field `holder`"),
        ("acquire", json!({"holder": ""}), "holder: "),
        ("acquire", json!({"holder": "a b"}), "holder: "),
        ("acquire", json!({"holder": "a", "lease": "0s"}), "lease: "),
        ("acquire", json!({"holder": "a", "lease": "31d"}), "at most 30d"),
        ("acquire", json!({"holder": "a", "capacity": 0}), "must be between 1 and 1000"),
        ("acquire", json!({"holder": "a", "reason": "two\nlines"}), "reason: "),
        ("renew", json!({"holder": "a"}), "missing field `fence`"),
        ("release", json!({"holder": "a", "fence": -1}), "fence: "),
    ] {
        let (code, detail) = refusal(&admin, Method::POST, &path(verb), body.clone()).await;
        assert_eq!(code, Code::Invalid, "{verb} {body}: {detail}");
        assert!(detail.contains(reason), "{verb} {body}: {detail:?} does not say {reason:?}");
    }
    // A client that does not hold the slot can neither renew nor release it.
    let nothing = json!({"holder": "a", "fence": 1});
    let (code, detail) = refusal(&admin, Method::POST, &path("renew"), nothing.clone()).await;
    assert_eq!(
        (code, detail.as_str()),
        (Code::Refused, "cannot renew slot one for a: the hold with fencing number 1 has ended")
    );
    admin.send::<Value, Value>(Method::POST, &path("release"), &nothing, SOON).await.unwrap();
    assert_eq!(problem(admin.delete_slot("default", "one").await).0, Code::NotFound);
    let acquire = bellwether_api::v1::slot::AcquireSlot { holder: "a".into(), ..Default::default() };
    assert_eq!(admin.acquire_slot("default", "one", &acquire).await.unwrap().fence, 1);
    assert_eq!(problem(admin.delete_slot("default", "one").await).0, Code::Refused);
    let back = bellwether_api::v1::slot::ReleaseSlot { holder: "a".into(), fence: 1 };
    admin.release_slot("default", "one", &back).await.unwrap();
    assert!(admin.slots("default", false).await.unwrap().items.is_empty());
    assert_eq!(admin.slots("default", true).await.unwrap().items.len(), 1);
    admin.delete_slot("default", "one").await.unwrap();
}

#[tokio::test]
async fn a_method_that_a_path_does_not_support_is_not_allowed() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let entity = "/v1/namespaces/default/entities/web";
    for (method, path) in [(Method::POST, entity), (Method::PUT, "/v1/whoami"), (Method::DELETE, "/healthz")]
    {
        let (code, detail) = refusal(&admin, method.clone(), path, json!({})).await;
        assert_eq!(code, Code::MethodNotAllowed, "{method} {path}: {detail}");
        assert!(detail.contains(method.as_str()) && detail.contains(path), "{detail}");
    }
}

#[tokio::test]
async fn a_body_that_is_missing_or_is_not_json_is_refused_with_what_it_lacks() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let cases = [
        (Method::PATCH, "/v1/tokens", json!({}), Code::MethodNotAllowed, "PATCH"),
        (Method::POST, "/v1/tokens", json!({}), Code::Invalid, "missing field `name`"),
        (Method::POST, "/v1/tokens", json!({"name": "kim", "roles": ["king"]}), Code::Invalid, "viewer"),
        (Method::PUT, "/v1/namespaces/default/freezes/f", json!({"kind": "halt"}), Code::Invalid, "freeze"),
        (
            Method::PUT,
            "/v1/freezes/f",
            json!([null, null]),
            Code::Invalid,
            "expected a JSON object, found a list",
        ),
        (Method::PUT, "/v1/namespaces/default/freezes/f", json!([null, null]), Code::Invalid, "found a list"),
        (Method::POST, "/v1/join-tokens", json!([null, null]), Code::Invalid, "found a list"),
        (Method::POST, "/v1/join", json!([]), Code::Invalid, "expected a JSON object"),
        (Method::POST, "/v1/servers/join", json!({"token": "x"}), Code::Invalid, "missing field `name`"),
        (Method::POST, "/v1/servers/join", json!({"token": "x", "name": "A b"}), Code::Invalid, "name"),
        (Method::POST, "/v1/backup", json!({"keys": 1}), Code::Invalid, "keys: invalid type"),
        (Method::POST, "/v1/servers/join-tokens", json!({"for": "1h"}), Code::Invalid, "unknown field `for`"),
    ];
    for (method, path, body, expected, part) in cases {
        let (code, detail) = refusal(&admin, method, path, body).await;
        assert!(code == expected && detail.contains(part), "{path}: {code:?} {detail}");
    }
}
