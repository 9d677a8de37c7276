//! The API's description of itself: complete, without dangling references, and true to what the handlers read.

use std::collections::BTreeSet;

use bellwether_api::client::{CallError, Identity};
use bellwether_core::access::RequiredAccess;
use serde_json::Value;

use crate::harness::{Installation, SOON};

async fn document(installation: &Installation) -> Value {
    installation.client(Identity::Nobody).get("/openapi.json", SOON).await.unwrap()
}

/// Every `$ref` in a value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner.as_str() {
                    Some(target) if name == "$ref" => drop(found.insert(target.to_owned())),
                    _ => references(inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn every_reference_leads_to_a_component() {
    let document = document(&Installation::new().await).await;
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 50, "only {} references", found.len());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[tokio::test]
async fn every_operation_has_an_id_a_tag_its_problems_and_says_who_may_call() {
    let installation = Installation::new().await;
    let document = document(&installation).await;
    let mut ids = BTreeSet::new();
    for route in installation.server().routes() {
        let path = route.path.replace("{*", "{");
        let operation = &document["paths"][&path][route.method.to_lowercase()];
        let name = format!("{} {path}", route.method);
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id.clone()), "{name}: another operation is {id} too");
        assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{name}");
        assert!(operation["responses"]["200"]["content"].is_object(), "{name}");
        let open = operation["security"].as_array().unwrap().is_empty();
        assert_eq!(open, route.need == RequiredAccess::Open, "{name}");
        assert_eq!(operation["responses"]["401"].is_object(), !open, "{name}");
        let in_path = path.matches('{').count();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let described = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, described, "{name}");
        for parameter in &parameters {
            assert!(
                parameter["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{name}: {parameter}"
            );
        }
    }
    for scheme in ["bearer", "mutual_tls"] {
        assert!(document["components"]["securitySchemes"][scheme]["type"].is_string(), "{scheme}");
    }
}

#[tokio::test]
async fn a_list_is_described_by_its_own_items() {
    let document = document(&Installation::new().await).await;
    let schema = |path: &str| {
        let answer = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"];
        answer["schema"]["$ref"].as_str().unwrap().to_owned()
    };
    assert_eq!(schema("/v1/namespaces/{ns}/nodes"), "#/components/schemas/NodeViewPage");
    assert_eq!(schema("/v1/join-tokens"), "#/components/schemas/JoinTokenInfoPage");
    let fields = &document["components"]["schemas"]["NodeViewPage"]["properties"]["items"]["items"];
    assert!(
        fields.to_string().contains("NodeView") || fields["properties"]["presence"].is_object(),
        "{fields}"
    );
    let states = &document["components"]["schemas"]["RolloutState"]["enum"];
    assert!(states.as_array().unwrap().contains(&Value::from("partially_succeeded")), "{states}");
}

#[tokio::test]
async fn the_query_parameters_that_are_described_are_those_that_are_read() {
    let installation = Installation::new().await;
    let document = document(&installation).await;
    let admin = installation.admin();
    for path in ["nodes", "entities", "services", "events", "slots", "freezes", "pauses", "profiles"] {
        let template = format!("/v1/namespaces/{{ns}}/{path}");
        let parameters = document["paths"][&template]["get"]["parameters"].as_array().unwrap();
        let described: BTreeSet<&str> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "query" && parameter["name"] != "consistency")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let asked = format!("/v1/namespaces/default/{path}?no-such-parameter=1");
        let Err(CallError::Problem(problem)) = admin.get::<Value>(&asked, SOON).await else {
            panic!("{path} took an unknown parameter")
        };
        let (_, list) = problem.detail.split_once("known: ").unwrap();
        let read: BTreeSet<&str> = list.split(", ").filter(|name| !name.is_empty()).collect();
        assert_eq!(described, read, "{path}");
    }
}
