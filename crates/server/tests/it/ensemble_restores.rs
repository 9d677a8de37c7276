//! Who may restore a snapshot of an ensemble into another one.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, problem};
use crate::rights::{forbidden, with};

#[tokio::test]
async fn a_snapshot_is_restored_only_by_those_who_may_read_the_data_of_its_ensemble() {
    let installation = Installation::new().await;
    let own = ["update ensemble/copy in default", "get ensemble in default"];
    let limited = with(&installation, "copies", &own).await;
    let path = "/v1/namespaces/default/ensembles/copy";
    let restore = json!({"node": "db-1", "snapshot": "store-1f-1-2a"});
    let spec = json!({"service": {"etcd": {}}, "filter": "all", "restore": restore});
    let detail = forbidden(&limited, Method::PUT, path, spec.clone()).await;
    assert!(detail.contains("update:/certificates ensemble/store"), "{detail}");
    let mut document = spec.clone();
    (document["kind"], document["name"]) = (json!("ensemble"), json!("copy"));
    let documents = json!({"documents": [document]});
    forbidden(&limited, Method::POST, "/v1/namespaces/default/apply", documents).await;
    let both = [&own[..], &["update:/certificates ensemble/store in default"]].concat();
    let allowed = with(&installation, "both", &both).await;
    let (_, detail) = problem(allowed.send::<Value, Value>(Method::PUT, path, &spec, SOON).await);
    assert!(detail.contains("restore.node") && detail.contains("there is no node db-1"), "{detail}");
    let _node = installation.node("db-1").await;
    let made: Value = allowed.send(Method::PUT, path, &spec, SOON).await.unwrap();
    assert_eq!(made["restore"]["snapshot"], "store-1f-1-2a");
    let waiting = made["status"]["waiting"].as_str().unwrap();
    assert!(waiting.contains("snapshot store-1f-1-2a on node db-1: "), "{waiting}");
    // Before it has members, it may be another one.
    let mut other = spec.clone();
    other["restore"]["snapshot"] = json!("store-1f-2-2b");
    let made: Value = allowed.send(Method::PUT, path, &other, SOON).await.unwrap();
    assert_eq!(made["restore"]["snapshot"], "store-1f-2-2b");
}
