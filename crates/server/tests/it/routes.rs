//! Every route with every identity: forbidden requests are refused before anything else is examined.

use bellwether_api::client::{CallError, Client, Identity};
use bellwether_api::paths::is_fleet_lock;
use bellwether_api::problem::Code;
use bellwether_core::access::{RequiredAccess, Right, Rights};
use http::Method;
use serde_json::Value;

use crate::harness::{Installation, SOON};

/// The refusal's code; none when the request reached its handler.
async fn refused(client: &Client, method: &str, path: &str) -> Option<Code> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let answer = client.send::<Value, Value>(method, path, &Value::Null, SOON).await;
    match answer {
        Err(CallError::Problem(problem)) => {
            matches!(problem.code, Code::Unauthenticated | Code::Forbidden).then_some(problem.code)
        }
        // FleetLock's paths refuse in the format of that protocol.
        Err(CallError::Garbled { reason, .. }) if is_fleet_lock(path) && reason.contains("status 401") => {
            Some(Code::Unauthenticated)
        }
        Err(CallError::Garbled { reason, .. }) if is_fleet_lock(path) && reason.contains("status 403") => {
            Some(Code::Forbidden)
        }
        Err(CallError::Garbled { .. }) | Ok(_) => None,
        Err(other) => panic!("{path}: {other}"),
    }
}

/// Whether the built-in role has the right, to any object of the namespace.
fn has(role: &str, right: Right) -> bool {
    Rights::of_built_in(role).allows(&right.on(None, Some("default")))
}

#[tokio::test]
async fn every_route_refuses_every_identity_that_it_does_not_need() {
    let installation = Installation::new().await;
    let (own, other) = (installation.node("web-1").await, installation.node("web-2").await);
    let identities = [
        ("nobody", installation.client(Identity::Nobody)),
        ("viewer", installation.token("viewer").await),
        ("operator", installation.token("operator").await),
        ("own node", own.client),
        ("other node", other.client),
    ];
    let routes = installation.server().routes();
    assert!(routes.len() > 25, "the table is not the whole table");
    for route in routes {
        // The stream never ends; the refusals show that it is guarded.
        let path = route
            .path
            .replace("{ns}", "default")
            .replace("{node}", "web-1")
            .replace("{*subject}", "node/web-1");
        let path = path.replace("{entity}", "web").replace("{number}", "1").replace("{operation}", "nothing");
        let path = path
            .replace("{profile}", "web")
            .replace("{freeze}", "holidays")
            .replace("{slot}", "reboot")
            .replace("{pause}", "disks");
        let path = path.replace("{category}", "x").replace("{token}", "none").replace("{role}", "none");
        for (who, client) in &identities {
            let allowed = match route.need {
                RequiredAccess::Open => true,
                RequiredAccess::Token => matches!(*who, "viewer" | "operator"),
                RequiredAccess::Right(right) => has(who, right),
                RequiredAccess::OwnNode => *who == "own node",
                RequiredAccess::OwnNodeOr(right) => *who == "own node" || has(who, right),
                RequiredAccess::NodeOr(right) => who.ends_with("node") || has(who, right),
            };
            if allowed && (path.ends_with("/stream") || path.ends_with("/order")) {
                continue;
            }
            let expected = match (allowed, *who) {
                (true, _) => None,
                (false, "nobody") => Some(Code::Unauthenticated),
                (false, _) => Some(Code::Forbidden),
            };
            let found = refused(client, route.method, &path).await;
            assert_eq!(found, expected, "{} {} as {who}", route.method, route.path);
        }
    }
}

#[tokio::test]
async fn the_api_describes_every_route_it_has() {
    let installation = Installation::new().await;
    let document: Value = installation.client(Identity::Nobody).get("/openapi.json", SOON).await.unwrap();
    for route in installation.server().routes() {
        let path = route.path.replace("{*", "{");
        let operation = &document["paths"][&path][route.method.to_lowercase()];
        assert!(operation["summary"].is_string(), "{} {path} is not described", route.method);
    }
}

#[tokio::test]
async fn probes_answer_and_metrics_need_a_token() {
    let installation = Installation::new().await;
    let nobody = installation.client(Identity::Nobody);
    nobody.ready().await.unwrap();
    assert_eq!(nobody.text("/healthz", SOON).await.unwrap(), "ok\n");
    assert!(nobody.text("/metrics", SOON).await.is_err());
    let page = installation.admin().text("/metrics", SOON).await.unwrap();
    assert!(page.contains("bellwether_nodes 0"), "{page}");
}

/// A path with an object that does not exist.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{ns}" => "default",
        "{*subject}" => "node/web-1",
        "{number}" => "1",
        part if part.starts_with('{') => "web-1",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The refusal of a request to a route; `None` if the caller may not use it at all.
async fn problem_of(client: &Client, method: &str, path: &str) -> Option<String> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    match client.send::<Value, Value>(method, path, &Value::Null, SOON).await {
        Err(CallError::Problem(problem)) if problem.code == Code::Forbidden => None,
        Err(CallError::Problem(problem)) => Some(problem.detail),
        Err(CallError::Garbled { .. }) if is_fleet_lock(path) => None,
        answer => panic!("{path}: {answer:?}"),
    }
}

/// The routes that change an object only at the revision in `If-Match`.
const CONDITIONAL: [&str; 22] = [
    "DELETE /v1/namespaces/default/clusters/web-1",
    "DELETE /v1/namespaces/default/ensembles/web-1",
    "DELETE /v1/namespaces/default/filters/web-1",
    "DELETE /v1/namespaces/default/reactions/web-1",
    "DELETE /v1/namespaces/default/schedules/web-1",
    "DELETE /v1/namespaces/default/sinks/web-1",
    "PATCH /v1/namespaces/default/entities/web-1",
    "PATCH /v1/namespaces/default/nodes/web-1/params",
    "PATCH /v1/namespaces/default/profiles/web-1",
    "POST /v1/namespaces/default/ensembles/web-1/failover",
    "POST /v1/namespaces/default/ensembles/web-1/scale",
    "PUT /v1/namespaces/default/clusters/web-1",
    "PUT /v1/namespaces/default/ensembles/web-1",
    "PUT /v1/namespaces/default/filters/web-1",
    "PUT /v1/namespaces/default/nodes/web-1/params",
    "PUT /v1/namespaces/default/nodes/web-1/profiles",
    "PUT /v1/namespaces/default/profiles/web-1",
    "PUT /v1/namespaces/default/profiles/web-1/live",
    "PUT /v1/namespaces/default/reactions/web-1",
    "PUT /v1/namespaces/default/schedules/web-1",
    "PUT /v1/namespaces/default/secrets/web-1",
    "PUT /v1/namespaces/default/sinks/web-1",
];

#[tokio::test]
async fn a_route_that_changes_reads_a_condition_or_refuses_it() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let mut conditional = Vec::new();
    for route in installation.server().routes().into_iter().filter(|route| route.method != "GET") {
        let path = filled(route.path);
        for (client, header) in [(admin.only_at(7), "If-Match"), (admin.only_at(0), "If-None-Match")] {
            let Some(detail) = problem_of(&client, route.method, &path).await else { continue };
            if !detail.starts_with(&format!("{header}: not supported here")) && header == "If-Match" {
                conditional.push(format!("{} {path}", route.method));
            }
        }
    }
    conditional.sort();
    assert_eq!(conditional, CONDITIONAL);
}

#[tokio::test]
async fn every_read_refuses_query_parameters_that_it_does_not_know() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let mut refused = 0;
    for route in installation.server().routes() {
        if route.method != "GET" || route.need == RequiredAccess::Open {
            continue;
        }
        let path = format!("{}?foo=1", filled(route.path));
        let Some(detail) = problem_of(&admin, "GET", &path).await else { continue };
        assert!(detail.starts_with("foo: not a parameter of this route"), "{path}: {detail}");
        refused += 1;
    }
    assert!(refused > 30, "{refused}");
}
