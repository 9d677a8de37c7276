//! Lists: filters, order, pages, fields and counts, and what is refused of them.

use std::collections::BTreeMap;

use bellwether_api::client::{CallError, Client};
use bellwether_api::paths::encode;
use bellwether_api::problem::Code;
use bellwether_api::v1::freeze::FreezeSpec;
use bellwether_api::v1::node::LabelChange;
use bellwether_api::v1::page::Page;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, problem};

const BASE: &str = "/v1/namespaces/default";

async fn page(client: &Client, list: &str, params: &[(&str, &str)]) -> Result<Page<Value>, CallError> {
    let params: Vec<String> =
        params.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    client.get(&format!("{BASE}/{list}?{}", params.join("&")), SOON).await
}

/// The names of the nodes that a filter matches.
async fn nodes(client: &Client, filter: &str) -> String {
    let page = page(client, "nodes", &[("filter", filter)]).await.unwrap();
    let names: Vec<&str> =
        page.items.iter().filter_map(|item| item.pointer("/node/name")?.as_str()).collect();
    names.join(" ")
}

async fn three_nodes() -> (Installation, Client) {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for (name, memory) in [("db-1", "128"), ("web-1", "64"), ("web-2", "8")] {
        installation.node(name).await;
        let set = BTreeMap::from([
            ("memory".to_owned(), memory.to_owned()),
            ("kind".to_owned(), name.split('-').next().unwrap().to_owned()),
        ]);
        admin.label_node("default", name, &LabelChange { set, remove: Vec::new() }).await.unwrap();
    }
    admin.cordon_node("default", "web-2", "a noisy disk").await.unwrap();
    (installation, admin)
}

#[tokio::test]
async fn nodes_are_filtered_by_what_is_recorded_and_by_what_is_observed() {
    let (_installation, admin) = three_nodes().await;
    for (filter, names) in [
        ("all", "db-1 web-1 web-2"),
        ("kind=web and not cordoned", "web-1"),
        ("kind=web,memory!=8", "web-1"),
        ("label.kind Eq web label.memory Lt 10", "web-2"),
        ("memory >= 64", "db-1 web-1"),
        ("name in (web-2, db-1, nobody)", "db-1 web-2"),
        ("name =~ '^web-'", "web-1 web-2"),
        ("age < 1h and not decommissioned", "db-1 web-1 web-2"),
        ("status.puppet = failed or any service = web or paused", ""),
    ] {
        assert_eq!(nodes(&admin, filter).await, names, "{filter}");
    }
}

#[tokio::test]
async fn lists_are_sorted_cut_projected_and_counted() {
    let (_installation, admin) = three_nodes().await;
    let wanted = [("sort", "-memory"), ("fields", "name,memory,cordoned"), ("limit", "2"), ("count", "true")];
    let first = page(&admin, "nodes", &wanted).await.unwrap();
    let item = |name: &str, memory: &str, cordoned: bool| json!({"name": name, "memory": memory, "cordoned": cordoned});
    // Labels are texts.
    assert_eq!(first.items, [item("web-2", "8", true), item("web-1", "64", false)]);
    assert_eq!((first.count, first.next.as_deref()), (Some(3), Some("web-1")));
    let rest = page(&admin, "nodes", &[&wanted[..2], &[("after", "web-1")]].concat()).await.unwrap();
    assert_eq!((rest.items.as_slice(), rest.next), ([item("db-1", "128", false)].as_slice(), None));
    let slim = page(&admin, "nodes", &[("slim", "true"), ("filter", "name=db-1")]).await.unwrap();
    assert_eq!(slim.items[0]["presence"], "never");
    let plain = page(&admin, "nodes", &[("limit", "1"), ("after", "db-1"), ("count", "true")]).await.unwrap();
    assert_eq!((plain.count, plain.next.as_deref()), (Some(3), Some("web-1")));
}

#[tokio::test]
async fn other_lists_take_filters_too() {
    let (_installation, admin) = three_nodes().await;
    for (name, entity) in [("sale", Some("web")), ("night", None)] {
        let spec = FreezeSpec { entity: entity.map(ToOwned::to_owned), ..FreezeSpec::default() };
        if let Some(entity) = entity {
            let spec =
                bellwether_api::v1::entity::EntitySpec { selector: "all".into(), ..Default::default() };
            admin.set_entity("default", entity, &spec).await.unwrap();
        }
        admin.set_freeze(Some("default"), name, &spec).await.unwrap();
    }
    for (list, filter, count) in [
        ("freezes", "entity = web and not expired and age < 1h", 1),
        ("entities", "kind = version and not held", 1),
        ("entities", "external", 0),
        ("events", "subject = node/web-2 and kind =~ cordon", 1),
        ("services", "functional > 0 or tag = blue", 0),
        ("pauses", "all", 0),
        ("slots", "holder = x", 0),
        ("profiles", "name = x", 0),
    ] {
        let page = page(&admin, list, &[("filter", filter)]).await.unwrap();
        assert_eq!(page.items.len(), count, "{list} {filter}");
    }
}

#[tokio::test]
async fn a_field_with_a_slip_is_refused_and_not_read_as_a_label() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for (name, value, meant) in [("fields", "nme,role", "name"), ("sort", "-cordond", "cordoned")] {
        let (code, detail) = problem(page(&admin, "nodes", &[(name, value)]).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(&format!("did you mean {meant}?")), "{detail}");
    }
    for (name, value) in [("fields", "name,role"), ("fields", "label.nme"), ("sort", "zone")] {
        page(&admin, "nodes", &[(name, value)]).await.unwrap();
    }
}

#[tokio::test]
async fn a_list_is_sorted_by_a_field_or_a_label_that_something_in_it_has() {
    let (_installation, admin) = three_nodes().await;
    for sort in ["memory", "-label.memory", "label.zone", "-name"] {
        page(&admin, "nodes", &[("sort", sort)]).await.unwrap();
    }
    let (code, detail) = problem(page(&admin, "nodes", &[("sort", "-started")]).await);
    assert_eq!(code, Code::Invalid);
    assert!(detail.contains("nodes have no field started") && detail.contains("fields: name, "), "{detail}");
    let (_, detail) = problem(page(&admin, "runs", &[("sort", "begun")]).await);
    assert!(detail.contains("runs have no field begun"), "{detail}");
    for sort in ["started", "-started"] {
        page(&admin, "runs", &[("sort", sort)]).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_list_is_refused_with_its_place() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for (list, name, value, position, reason) in [
        ("nodes", "filter", "role in web", 8, "expected '('"),
        ("nodes", "filter", "", 0, "it is empty; write 'all' for every node"),
        ("nodes", "filter", "not cordend", 4, "did you mean cordoned?"),
        ("nodes", "filter", "age > soon", 6, "age is a duration"),
        (
            "services",
            "filter",
            "all and functonal > 0",
            8,
            "services have no field functonal; did you mean functional?",
        ),
        ("entities", "sort", "-knd[x]", 0, "did you mean kind?"),
        ("pauses", "fields", "name,label[\"a b\"]", 0, "is not a valid key of label"),
    ] {
        let Err(CallError::Problem(problem)) = page(&admin, list, &[(name, value)]).await else {
            panic!("{list} {value}: not refused");
        };
        let invalid = problem.invalid.clone().unwrap();
        assert_eq!((problem.code, invalid.place.as_str()), (Code::Invalid, name), "{value}");
        assert_eq!(invalid.position, Some(position), "{value}: {}", problem.detail);
        assert!(problem.detail.contains(reason), "{value}: {}", problem.detail);
    }
    for (list, params) in [("events", ("sort", "kind")), ("nodes", ("after", "ghost"))] {
        let params = [params, ("sort", "name")];
        assert!(page(&admin, list, &params[..]).await.is_err(), "{list}");
    }
    let spec = FreezeSpec { targets: Some("role=web and cordoned".into()), ..FreezeSpec::default() };
    let Err(CallError::Problem(problem)) = admin.set_freeze(Some("default"), "x", &spec).await else {
        panic!("a freeze by what changes by itself is not refused");
    };
    assert!(problem.detail.contains("cordoned changes by itself"), "{}", problem.detail);
    assert_eq!(problem.invalid.clone().unwrap().position, Some(13));
}
