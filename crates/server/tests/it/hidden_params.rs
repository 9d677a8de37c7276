//! That who may change a param, or declare one, reads no other by it: in answers, conflicts and refusals.

use bellwether_api::client::Client;
use bellwether_api::client::calls::profiles::JsonChange;
use bellwether_api::problem::Code;
use bellwether_api::v1::param::ParamSpec;
use bellwether_api::v1::profile::{Params, ParamsPatch};
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, problem};
use crate::rights::{forbidden, with};

fn params(value: Value) -> Params {
    serde_json::from_value(value).unwrap()
}

/// A profile and a node with a param that is not for everybody.
async fn with_params() -> Installation {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    let patch =
        ParamsPatch { set: params(json!({"port": 80, "hidden": "hunter2"})), ..ParamsPatch::default() };
    admin.patch_profile("default", "redis", &patch).await.unwrap();
    admin.patch_node_params("default", "web-1", &patch).await.unwrap();
    installation
}

#[tokio::test]
async fn who_may_change_one_param_reads_no_other_in_answers_and_conflicts() {
    let installation = with_params().await;
    let claims = ["update:/params/port profile/redis", "update:/params/port node/web-1"];
    let client = with(&installation, "ports", &claims).await;
    for path in ["profiles/redis", "nodes/web-1/params"] {
        let path = format!("/v1/namespaces/default/{path}");
        let patch = async |body: Value| client.send::<Value, Value>(Method::PATCH, &path, &body, SOON).await;
        let answer = patch(json!({"set": {"port": 81}})).await.unwrap();
        assert_eq!((&answer["params"], answer["revision"].as_u64().is_some()), (&json!({"port": 81}), true));
        let standard = async |operations: Value| {
            let change = JsonChange::Patch(operations);
            match path.contains("profiles") {
                true => problem(client.change_profile("default", "redis", &change, "").await),
                false => problem(client.change_node_params("default", "web-1", &change, "").await),
            }
        };
        for operations in [
            json!([{"op": "test", "path": "", "value": "q"}]),
            json!([{"op": "test", "path": "/hidden", "value": "q"}]),
            json!([{"op": "copy", "from": "/hidden", "path": "/port"}]),
            json!([{"op": "move", "from": "/hidden", "path": "/port"}]),
        ] {
            let (code, detail) = standard(operations.clone()).await;
            assert_eq!(code, Code::Forbidden, "{operations}: {detail}");
            assert!(!detail.contains("hunter2"), "{detail}");
        }
        let guess = json!({"set": {"port": 82}, "if_equal": {"hidden": "q"}});
        forbidden(&client, Method::PATCH, &path, guess).await;
        // What it may change it may compare, and does not read.
        let (code, detail) = standard(json!([{"op": "test", "path": "/port", "value": 1}])).await;
        assert!(code == Code::Conflict && detail.contains("/port is not as expected"), "{detail}");
        let (_, detail) = problem(patch(json!({"set": {"port": 1}, "if_equal": {"port": 2}})).await);
        assert!(!detail.contains("81"), "{detail}");
    }
}

#[tokio::test]
async fn a_refused_declaration_names_nothing_that_may_not_be_read() {
    let installation = with_params().await;
    let spec = |secret| {
        let Value::Object(schema) = json!({"type": "integer"}) else { panic!("it is an object") };
        ParamSpec { schema, default: None, description: String::new(), secret }
    };
    let blind = with(&installation, "blind", &["update param"]).await;
    let reader = with(&installation, "reader", &["update param", "get node"]).await;
    let declared = async |client: &Client, key: &str, secret| {
        problem(client.declare_param("default", key, &spec(secret)).await).1
    };
    let said = declared(&blind, "hidden", false).await;
    assert!(said.contains("a node that you may not read has a value that does not fit"), "{said}");
    let said = declared(&blind, "port", true).await;
    assert!(said.contains("a node that you may not read has a value of it in plain text"), "{said}");
    assert!(declared(&reader, "hidden", false).await.contains("node web-1 has a value that does not fit"));
}
