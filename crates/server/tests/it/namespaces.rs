//! Namespaces: created by the first object in them, listed, and deleted when they are empty.

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::external::settings::ExternalSettings;
use bellwether_api::v1::external::{TargetReport, TargetReports};
use bellwether_api::v1::filter::FilterSpec;
use bellwether_api::v1::freeze::FreezeSpec;
use bellwether_api::v1::param::ParamSpec;
use bellwether_api::v1::secret::SecretSpec;
use bellwether_api::v1::workflow::Workflow;
use http::Method;
use serde_json::json;

use crate::harness::{Installation, SOON, problem, version};

async fn names(client: &Client) -> Vec<String> {
    client.namespaces().await.unwrap().items.into_iter().map(|view| view.name).collect()
}

#[tokio::test]
async fn a_namespace_without_nodes_lives_from_its_first_object_until_it_is_deleted_empty() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let external = Some(ExternalSettings::default());
    let spec = EntitySpec { external, ..EntitySpec::default() };
    let (code, detail) = problem(admin.entities("shop").await);
    assert_eq!((code, detail.as_str()), (Code::NotFound, "cannot find namespace shop"));
    assert_eq!(problem(admin.start_rollout("shop", "till", &version("v1")).await).0, Code::NotFound);
    let viewer = installation.token("viewer").await;
    assert_eq!(problem(viewer.set_entity("shop", "till", &spec).await).0, Code::Forbidden);
    assert_eq!(names(&admin).await, ["default"], "nobody who may not create one creates one");

    let operator = installation.token("operator").await;
    operator.set_entity("shop", "till", &spec).await.unwrap();
    let target =
        TargetReport { name: "t-1".to_owned(), running: Some("v1".to_owned()), ..TargetReport::default() };
    let reports = TargetReports { targets: vec![target], ..TargetReports::default() };
    operator.orchestrate("shop", "till", &reports).await.unwrap();
    let freeze = FreezeSpec { entity: Some("till".to_owned()), ..FreezeSpec::default() };
    operator.set_freeze(Some("shop"), "night", &freeze).await.unwrap();
    let filter = FilterSpec { of: "nodes".to_owned(), filter: "all".to_owned(), description: String::new() };
    operator.set_filter("shop", "all", &filter).await.unwrap();
    let param = ParamSpec { default: Some(json!(1)), ..ParamSpec::default() };
    operator.declare_param("shop", "web/workers", &param).await.unwrap();
    let secret = SecretSpec { value: Some(json!("hunter2")), ..SecretSpec::default() };
    operator.set_secret("shop", "db/root", &secret).await.unwrap();
    let workflow = json!({"stages": ["all"]});
    admin.send::<_, Workflow>(Method::PUT, "/v1/namespaces/shop/workflows/w", &workflow, SOON).await.unwrap();
    assert_eq!(names(&viewer).await, ["default", "shop"]);
    let view = admin.namespaces().await.unwrap().items.pop().unwrap();
    assert_eq!((view.entities, view.freezes, view.nodes), (1, 1, 0));

    assert_eq!(problem(operator.delete_namespace("shop").await).0, Code::Forbidden);
    let (code, detail) = problem(admin.delete_namespace("shop").await);
    let said = "cannot delete namespace shop: it contains 1 entity, 1 freeze, 1 filter, 1 declared param, \
         1 secret, 1 task, stage or workflow";
    assert_eq!((code, detail.as_str()), (Code::Refused, said));
    admin.delete_freeze(Some("shop"), "night").await.unwrap();
    admin.delete_filter("shop", "all").await.unwrap();
    admin.undeclare_param("shop", "web/workers").await.unwrap();
    admin.delete_secret("shop", "db/root").await.unwrap();
    admin.delete_workflow("shop", "w").await.unwrap();
    admin.delete_entity("shop", "till").await.unwrap();
    admin.delete_namespace("shop").await.unwrap();
    assert_eq!(names(&admin).await, ["default"]);
    assert_eq!(problem(admin.delete_namespace("shop").await).0, Code::NotFound);
    assert_eq!(problem(admin.delete_namespace("default").await).0, Code::Refused);
    installation.restart().await;
    let admin = installation.admin();
    assert_eq!(names(&admin).await, ["default"]);
    admin.set_entity("shop", "till", &spec).await.unwrap();
    assert_eq!(names(&admin).await, ["default", "shop"]);
}
