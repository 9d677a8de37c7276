//! Declared params over the API.

use bellwether_api::problem::Code;
use bellwether_api::v1::param::ParamSpec;
use bellwether_api::v1::profile::{Params, ParamsPatch};
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, problem};

fn spec(schema: Value, default: Option<Value>) -> ParamSpec {
    let Value::Object(schema) = schema else { panic!("a schema is an object") };
    ParamSpec { schema, default, description: "a port".to_owned(), secret: false }
}

fn set(key: &str, value: Value) -> ParamsPatch {
    ParamsPatch { set: Params::from([(key.to_owned(), value)]), ..ParamsPatch::default() }
}

#[tokio::test]
async fn a_declared_param_is_checked_wherever_it_is_written() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    let port = || spec(json!({"type": "integer", "maximum": 65_535}), Some(json!(80)));
    let declared = admin.declare_param("default", "web/port", &port()).await.unwrap();
    assert_eq!((declared.default, declared.by.as_str()), (Some(json!(80)), "admin"));
    let (code, detail) =
        problem(admin.patch_node_params("default", "web-1", &set("web/port", json!("x"))).await);
    assert!(code == Code::Invalid && detail.starts_with("params/web/port: \"x\" is not of type"), "{detail}");
    assert_eq!(
        problem(admin.patch_profile("default", "web", &set("web/port", json!(70_000))).await).0,
        Code::Invalid
    );
    let path = "/v1/namespaces/default/profiles/web";
    let whole = json!({"params": {"web/port": []}});
    assert_eq!(problem(admin.send::<_, Value>(Method::PUT, path, &whole, SOON).await).0, Code::Invalid);
    let document = json!({"documents": [{"kind": "profile", "name": "web", "params": {"web/port": true}}]});
    let apply = "/v1/namespaces/default/apply";
    let (code, detail) = problem(admin.send::<_, Value>(Method::POST, apply, &document, SOON).await);
    assert!(code == Code::Invalid && detail.contains("web/port"), "{detail}");
    admin.patch_node_params("default", "web-1", &set("web/port", json!(8_080))).await.unwrap();
    admin.patch_node_params("default", "web-1", &set("other", json!("free"))).await.unwrap();
    // A schema that a value does not fit is refused; one that is wider is not.
    let (code, detail) =
        problem(admin.declare_param("default", "web/port", &spec(json!({"maximum": 1_024}), None)).await);
    assert!(code == Code::Refused && detail.contains("node web-1"), "{detail}");
    admin.declare_param("default", "web/port", &spec(json!({"type": "integer"}), None)).await.unwrap();
}

#[tokio::test]
async fn the_default_is_the_last_level_and_is_read_by_nodes() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    admin.declare_param("default", "port", &spec(json!({}), Some(json!(80)))).await.unwrap();
    let explained = || async {
        let path = "/v1/namespaces/default/nodes/web-1/params/explained?key=port";
        let page: Value = admin.get(path, SOON).await.unwrap();
        let last = page["items"][0]["levels"].as_array().unwrap().last().unwrap().clone();
        (page["items"][0]["value"].clone(), last["profile"].clone(), last["decides"].clone())
    };
    assert_eq!(explained().await, (json!(80), json!("defaults"), json!(true)));
    admin.patch_node_params("default", "web-1", &set("port", json!(81))).await.unwrap();
    assert_eq!(explained().await, (json!(81), json!("defaults"), json!(false)));
    // Its profile is written by declarations alone, and is no document.
    let (code, detail) = problem(admin.patch_profile("default", "defaults", &set("port", json!(1))).await);
    assert!(code == Code::Refused && detail.contains("defaults of declared params"), "{detail}");
    assert_eq!(problem(admin.delete_profile("default", "defaults").await).0, Code::Refused);
    let documents = admin.documents("default").await.unwrap().items;
    let mut kinds: Vec<&str> = documents.iter().map(|document| document.kind()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["node", "param"]);
    admin.undeclare_param("default", "port").await.unwrap();
    assert_eq!(problem(admin.param("default", "port").await).0, Code::NotFound);
    assert_eq!(explained().await, (json!(81), json!("defaults"), json!(false)), "values stay");
}

#[tokio::test]
async fn bad_declarations_are_refused_with_their_place() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let wrong = async |key: &str, declared: ParamSpec, part: &str| {
        let (code, detail) = problem(admin.declare_param("default", key, &declared).await);
        assert!(code == Code::Invalid && detail.contains(part), "{detail}");
    };
    wrong("port", spec(json!({"type": "integr"}), None), "schema/type").await;
    wrong("port", spec(json!({"typ": "integer"}), None), "schema/typ: not a keyword").await;
    let nested = json!({"properties": {"a": {"requierd": ["b"]}}});
    wrong(
        "port",
        spec(nested, None),
        "schema/properties/a/requierd: not a keyword of JSON Schema 2020-12; did you mean required?",
    )
    .await;
    wrong("port", spec(json!({"items": {"$ref": "#"}}), None), "schema/items/$ref").await;
    wrong("port", spec(json!({"type": "integer"}), Some(json!("x"))), "default: \"x\" is not of type").await;
    wrong("port", spec(json!({"title": "x".repeat(20_000)}), None), "schema: 20").await;
    wrong("a b", spec(json!({}), None), "param key").await;
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"not": deep});
    }
    let (code, _) =
        problem(admin.declare_param("default", "deep", &spec(json!({"allOf": [deep, 1]}), None)).await);
    assert_eq!(code, Code::Invalid);
    assert!(admin.params("default").await.unwrap().items.is_empty(), "nothing was declared");
    let viewer = installation.token("viewer").await;
    assert_eq!(
        problem(viewer.declare_param("default", "x", &spec(json!({}), None)).await).0,
        Code::Forbidden
    );
    let unknown = problem(admin.undeclare_param("default", "ghost").await);
    assert_eq!(unknown.0, Code::NotFound);
}

#[tokio::test]
async fn a_secret_param_becomes_plain_only_by_deleting_its_declaration() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let secret = ParamSpec { secret: true, ..spec(json!({}), None) };
    admin.declare_param("default", "rd/pw", &secret).await.unwrap();
    admin.patch_profile("default", "web", &set("rd/pw", json!("old-password"))).await.unwrap();
    let (code, detail) = problem(admin.declare_param("default", "rd/pw", &spec(json!({}), None)).await);
    assert!(code == Code::Refused && detail.contains("would make it plain"), "{detail}");
    let document = json!({"documents": [{"kind": "param", "name": "rd/pw", "description": "x"}]});
    let applied = admin.send::<_, Value>(Method::POST, "/v1/namespaces/default/apply", &document, SOON).await;
    assert_eq!(problem(applied).0, Code::Refused);
    assert!(admin.param("default", "rd/pw").await.unwrap().secret);
    admin.undeclare_param("default", "rd/pw").await.unwrap();
    admin.declare_param("default", "rd/pw", &spec(json!({}), None)).await.unwrap();
    let profile: Value = admin.get("/v1/namespaces/default/profiles/web", SOON).await.unwrap();
    assert!(!profile.to_string().contains("old-password"), "{profile}");
}

#[tokio::test]
async fn a_schema_that_does_not_fit_names_the_place_and_not_the_value() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.patch_profile("default", "hidden", &set("key", json!("topvalue-9"))).await.unwrap();
    let (code, detail) =
        problem(admin.declare_param("default", "key", &spec(json!({"type": "integer"}), None)).await);
    assert!(code == Code::Refused && detail.contains("profile hidden"), "{detail}");
    assert!(!detail.contains("topvalue"), "{detail}");
}
