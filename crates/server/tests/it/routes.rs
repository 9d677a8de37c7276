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
