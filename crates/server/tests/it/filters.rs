//! Saved filters over the API: setting, use in lists, rights, and what is refused.

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{CallError, Client, Identity};
use bellwether_api::paths::encode;
use bellwether_api::problem::Code;
use bellwether_api::v1::access::NewToken;
use bellwether_api::v1::filter::{Filter, FilterSpec};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::role::{Claim, RoleSpec};
use bellwether_core::access;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, problem};

const BASE: &str = "/v1/namespaces/default";

fn spec(filter: &str) -> FilterSpec {
    FilterSpec { of: "nodes".to_owned(), filter: filter.to_owned(), description: String::new() }
}

async fn set(client: &Client, name: &str, filter: &str) -> Result<Filter, CallError> {
    client.set_filter("default", name, &spec(filter)).await
}

/// The names of the items of a list that a filter matches.
async fn listed(client: &Client, list: &str, filter: &str) -> Result<String, CallError> {
    let page: Page<Value> =
        client.get(&format!("{list}?fields=name&filter={}", encode(filter)), SOON).await?;
    let names: Vec<&str> = page.items.iter().filter_map(|item| item["name"].as_str()).collect();
    Ok(names.join(" "))
}

async fn nodes(client: &Client, filter: &str) -> Result<String, CallError> {
    listed(client, &format!("{BASE}/nodes"), filter).await
}

/// Three nodes, and a filter of those of the name `web-…`.
async fn with_nodes() -> (Installation, Client) {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for name in ["db-1", "web-1", "web-2"] {
        installation.node(name).await;
    }
    set(&admin, "web", "name =~ \"^web-\"").await.unwrap();
    (installation, admin)
}

/// A client with a token that has these claims.
async fn with(installation: &Installation, name: &str, claims: &[&str]) -> Client {
    let admin = installation.admin();
    let claims = claims.iter().map(|text| Claim::from(&access::Claim::parse(text).unwrap())).collect();
    admin.put_role(name, &RoleSpec { claims, description: String::new() }).await.unwrap();
    let token =
        NewToken { name: name.to_owned(), roles: vec![name.to_owned()], only_in: None, expires_in: None };
    let made = admin.create_token(&token).await.unwrap();
    installation.client(Identity::Token(Secret::new(made.secret)))
}

#[tokio::test]
async fn a_saved_filter_is_a_term_of_every_filter_of_its_list() {
    let (_installation, admin) = with_nodes().await;
    let first = set(&admin, "first", "@web and not name=web-2").await.unwrap();
    assert_eq!((first.revision, &*first.by, &*first.of), (1, "admin", "nodes"));
    for (filter, names) in [
        ("@web", "web-1 web-2"),
        ("not @web", "db-1"),
        ("@first or name=db-1", "db-1 web-1"),
        ("@web,@first", "web-1"),
        ("And(@web, Not(@first))", "web-2"),
    ] {
        assert_eq!(nodes(&admin, filter).await.unwrap(), names, "{filter}");
    }
    // Its new text counts at once, also where another one names it.
    set(&admin, "web", "name in (web-1, db-1)").await.unwrap();
    assert_eq!(nodes(&admin, "@first").await.unwrap(), "db-1 web-1");
    let changes = FilterSpec { of: "events".to_owned(), ..spec("kind = filter.changed") };
    admin.set_filter("default", "changes", &changes).await.unwrap();
    let path = format!("{BASE}/events?filter={}", encode("@changes and subject = filter/web"));
    let events: Page<Value> = admin.get(&path, SOON).await.unwrap();
    let texts: Vec<_> = events.items.iter().map(|event| (&event["before"], &event["after"])).collect();
    let (old, new) = (json!("name =~ \"^web-\""), json!("name in (web-1, db-1)"));
    assert_eq!(texts, [(&Value::Null, &old), (&old, &new)]);
    assert_eq!(
        listed(&admin, &format!("{BASE}/filters"), "of=nodes and filter =~ @web").await.unwrap(),
        "first"
    );
}

#[tokio::test]
async fn saving_is_compared_with_the_revision_and_the_same_again_changes_nothing() {
    let (_installation, admin) = with_nodes().await;
    let put = async |client: &Client, filter: &str| set(client, "web", filter).await;
    assert_eq!(put(&admin, "name =~ \"^web-\"").await.unwrap().revision, 1);
    assert_eq!(problem(put(&admin.only_at(0), "all").await).0, Code::Conflict);
    assert_eq!(problem(put(&admin.only_at(2), "all").await).0, Code::Conflict);
    assert_eq!(put(&admin.only_at(1), "all").await.unwrap().revision, 2);
    assert_eq!(problem(admin.only_at(1).delete_filter("default", "web").await).0, Code::Conflict);
    let described = FilterSpec { description: "every one".to_owned(), ..spec("all") };
    assert_eq!(admin.set_filter("default", "web", &described).await.unwrap().revision, 3);
    let read = admin.filter("default", "web").await.unwrap();
    assert_eq!((&*read.filter, &*read.description), ("all", "every one"));
    admin.only_at(3).delete_filter("default", "web").await.unwrap();
    assert_eq!(problem(admin.filter("default", "web").await).0, Code::NotFound);
    assert_eq!(problem(admin.delete_filter("default", "web").await).0, Code::NotFound);
    set(&admin.only_at(0), "web", "all").await.unwrap();
}

#[tokio::test]
async fn a_filter_may_name_another_one_twice() {
    let (_installation, admin) = with_nodes().await;
    set(&admin, "old", "@web or not @web").await.unwrap();
    assert_eq!(nodes(&admin, "@old and @old").await.unwrap(), "db-1 web-1 web-2");
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_with_its_place_and_changes_nothing() {
    let (_installation, admin) = with_nodes().await;
    let before = admin.filters("default").await.unwrap().items;
    for (of, filter, says) in [
        ("nodes", "name = x and age = 3", "filter: invalid filter at position 17: age is a duration"),
        (
            "nodes",
            "@wep",
            "filter: invalid filter at position 0: there is no saved filter wep; did you mean web?",
        ),
        ("nodes", "all or @new", "at position 7: saved filters name each other in a circle: @new → @new"),
        ("entities", "@web", "at position 0: saved filter web is of nodes, and this one is of entities"),
        ("node", "all", "of: \"node\" is not a list of a namespace; did you mean nodes? known: nodes"),
        ("tokens", "all", "of: \"tokens\" is not a list of a namespace"),
    ] {
        let spec = FilterSpec { of: of.to_owned(), ..spec(filter) };
        let (code, detail) = problem(admin.set_filter("default", "new", &spec).await);
        assert!(code == Code::Invalid && detail.contains(says), "{filter}: {detail}");
    }
    for (list, filter, says) in [
        (
            "/v1/namespaces/default/nodes",
            "all and @ghost",
            "at position 8: there is no saved filter ghost; bellwether filter list",
        ),
        ("/v1/namespaces/default/slots", "@web", "saved filter web is of nodes, and this one is of slots"),
        (
            "/v1/tokens",
            "@web",
            "at position 0: @web is a saved filter, and this list is of no namespace: write",
        ),
    ] {
        let (code, detail) = problem(listed(&admin, list, filter).await);
        assert!(code == Code::Invalid && detail.contains(says), "{filter}: {detail}");
    }
    // A selector is kept with its object.
    for (path, body, place) in [
        ("entities/web", json!({"selector": "all and @web"}), "selector: invalid filter at position 8"),
        ("freezes/f", json!({"targets": "@web"}), "targets: invalid filter at position 0"),
        ("pauses/p", json!({"nodes": "not @web"}), "nodes: invalid filter at position 4"),
    ] {
        let answer = admin.send::<_, Value>(Method::PUT, &format!("{BASE}/{path}"), &body, SOON).await;
        let (code, detail) = problem(answer);
        let why = "@web is a saved filter, and a selector is kept with its object: write the filter out";
        assert!(code == Code::Invalid && detail.contains(place) && detail.contains(why), "{detail}");
    }
    assert_eq!(admin.filters("default").await.unwrap().items, before);
}

#[tokio::test]
async fn a_filter_that_others_name_stays_there_and_of_use_to_them() {
    let (_installation, admin) = with_nodes().await;
    set(&admin, "first", "@web and name=web-1").await.unwrap();
    set(&admin, "deep", "not @first").await.unwrap();
    let (code, detail) = problem(admin.delete_filter("default", "web").await);
    assert_eq!((code, &*detail), (Code::Refused, "cannot delete filter web: filter first names it"));
    let (code, detail) = problem(set(&admin, "web", "zone=b or @deep").await);
    assert!(code == Code::Invalid, "{detail}");
    assert!(detail.ends_with("in a circle: @web → @deep → @first → @web"), "{detail}");
    let services = FilterSpec { of: "services".to_owned(), ..spec("all") };
    let (code, detail) = problem(admin.set_filter("default", "web", &services).await);
    assert!(code == Code::Refused, "{detail}");
    let says = "cannot change filter web: filter first names it, and would not be valid any more: \
                saved filter web is of services, and this one is of nodes";
    assert_eq!(detail, says);
    let long = format!("name in ({}x)", "x,".repeat(2_036));
    let (code, detail) = problem(set(&admin, "web", &long).await);
    assert!(code == Code::Refused && detail.contains("longer than 4096 bytes"), "{detail}");
    // What names it again or no more is free to.
    set(&admin, "first", "all").await.unwrap();
    admin.delete_filter("default", "web").await.unwrap();
    assert_eq!(problem(admin.delete_filter("default", "first").await).0, Code::Refused);
    admin.delete_filter("default", "deep").await.unwrap();
    admin.delete_filter("default", "first").await.unwrap();
}

#[tokio::test]
async fn one_that_may_not_be_read_is_not_there() {
    let (installation, admin) = with_nodes().await;
    set(&admin, "private", "@web and name=web-1").await.unwrap();
    set(&admin, "mine", "name=db-1").await.unwrap();
    let limited =
        with(&installation, "limited", &["get node", "get,update,delete filter/mi*,over,web"]).await;
    let none = with(&installation, "none", &["get node"]).await;
    assert_eq!(listed(&limited, &format!("{BASE}/filters"), "all").await.unwrap(), "mine web");
    assert_eq!(nodes(&limited, "@mine").await.unwrap(), "db-1");
    // The same answer, whether there is one or not.
    for (client, name) in [(&limited, "private"), (&limited, "nothing"), (&none, "mine"), (&none, "nothing")]
    {
        for filter in [format!("@{name}"), format!("not @{name} or name=x")] {
            let (code, detail) = problem(nodes(client, &filter).await);
            let says =
                format!("there is no saved filter {name}; bellwether filter list shows those there are");
            assert!(code == Code::Invalid && detail.ends_with(&says), "{detail}");
        }
    }
    let (_, detail) = problem(nodes(&limited, "@privat").await);
    assert!(!detail.contains("private?"), "{detail}");
    let (_, detail) = problem(set(&limited, "over", "@private").await);
    assert!(detail.contains("there is no saved filter private; bellwether"), "{detail}");
    let (code, detail) = problem(limited.delete_filter("default", "web").await);
    let says = "cannot delete filter web: a filter that you may not read names it";
    assert_eq!((code, &*detail), (Code::Refused, says));
    // One that is readable and names one that is not leads nowhere either.
    set(&admin, "over", "@private").await.unwrap();
    let (_, detail) = problem(nodes(&limited, "@over").await);
    assert!(detail.contains("@over → @private: there is no saved filter private"), "{detail}");
    assert_eq!(nodes(&admin, "@over").await.unwrap(), "web-1");
    let viewer = with(&installation, "reader", &["get *"]).await;
    assert_eq!(nodes(&viewer, "@over").await.unwrap(), "web-1");
    assert_eq!(problem(set(&viewer, "new", "all").await).0, Code::Forbidden);
    assert_eq!(problem(viewer.delete_filter("default", "mine").await).0, Code::Forbidden);
}

#[tokio::test]
async fn of_two_changes_at_once_that_exclude_each_other_one_is_made() {
    let (_installation, admin) = with_nodes().await;
    for round in 0..8 {
        let (one, other) = (format!("one-{round}"), format!("other-{round}"));
        set(&admin, &one, "all").await.unwrap();
        set(&admin, &other, "all").await.unwrap();
        let (to_other, to_one) = (format!("@{other}"), format!("@{one}"));
        let (first, second) = tokio::join!(set(&admin, &one, &to_other), set(&admin, &other, &to_one));
        assert!(first.is_ok() != second.is_ok(), "no circle: {first:?} {second:?}");
        let user = format!("user-{round}");
        set(&admin, &one, "all").await.unwrap();
        set(&admin, &other, "all").await.unwrap();
        let (used, deleted) = tokio::join!(set(&admin, &user, &to_one), admin.delete_filter("default", &one));
        assert!(used.is_ok() != deleted.is_ok(), "it is used or gone: {used:?} {deleted:?}");
    }
}
