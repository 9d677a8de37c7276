//! Clusters over the API: the profile that members share, roles in filters and params, rights, and what is refused.

use bellwether_api::client::{CallError, Client};
use bellwether_api::paths::encode;
use bellwether_api::problem::Code;
use bellwether_api::v1::cluster::work::{ClusterWaitState, NewClusterRun};
use bellwether_api::v1::cluster::{Cluster, ClusterSpec};
use bellwether_api::v1::page::Page;
use bellwether_api::v1::profile::ParamsPatch;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Installation, SOON, problem};

const BASE: &str = "/v1/namespaces/default";

fn spec(filter: &str) -> ClusterSpec {
    ClusterSpec { filter: Some(filter.to_owned()), ..ClusterSpec::default() }
}

async fn set(client: &Client, name: &str, spec: &ClusterSpec) -> Result<Cluster, CallError> {
    client.set_cluster("default", name, spec).await
}

/// The names of the nodes that a filter matches.
async fn nodes(client: &Client, filter: &str) -> String {
    let path = format!("{BASE}/nodes?fields=name&filter={}", encode(filter));
    let page: Page<Value> = client.get(&path, SOON).await.unwrap();
    page.items.iter().filter_map(|item| item["name"].as_str()).collect::<Vec<_>>().join(" ")
}

/// The value of a param of a node, and the level that decides it.
async fn explained(client: &Client, node: &str, key: &str) -> (Value, Value) {
    let path = format!("{BASE}/nodes/{node}/params/explained?key={}", encode(key));
    let page: Page<Value> = client.get(&path, SOON).await.unwrap();
    let item = &page.items[0];
    let decides = item["levels"].as_array().unwrap().iter().find(|level| level["decides"] == json!(true));
    (item["value"].clone(), decides.map_or(Value::Null, |level| level["level"].clone()))
}

async fn live(client: &Client, profile: &str) -> bool {
    client.profiles("default").await.unwrap().items.iter().any(|head| head.name == profile && head.live)
}

async fn with_nodes() -> (Installation, Client) {
    let installation = Installation::new().await;
    for name in ["db-1", "db-2", "web-1"] {
        installation.node(name).await;
    }
    let admin = installation.admin();
    (installation, admin)
}

#[tokio::test]
async fn members_share_a_live_profile_that_names_itself_and_read_it_no_more_once_the_cluster_is_deleted() {
    let (_installation, admin) = with_nodes().await;
    let made = set(&admin, "db", &spec("name =~ \"^db-\"")).await.unwrap();
    assert_eq!((made.members, made.revision, &*made.profile, made.leaders), (2, 1, "db", 1));
    let profile = admin.profile("default", "db").await.unwrap();
    assert!(live(&admin, "db").await);
    assert_eq!(profile.params.get("cluster/profile"), Some(&json!("db")));
    let port = ParamsPatch { set: [("port".to_owned(), json!(5432))].into(), ..ParamsPatch::default() };
    admin.patch_profile("default", "db", &port).await.unwrap();
    assert_eq!(explained(&admin, "db-1", "port").await, (json!(5432), json!("profile")));
    assert_eq!(explained(&admin, "web-1", "port").await, (Value::Null, Value::Null));
    assert_eq!(nodes(&admin, "cluster=db").await, "db-1 db-2 db-manager");
    let refused = problem(admin.delete_profile("default", "db").await);
    assert_eq!(refused.0, Code::Refused);
    assert!(refused.1.contains("the members of cluster db share it"), "{}", refused.1);
    admin.delete_cluster("default", "db").await.unwrap();
    assert_eq!(explained(&admin, "db-1", "port").await, (Value::Null, Value::Null));
    assert_eq!(nodes(&admin, "cluster=db").await, "");
    assert!(live(&admin, "db").await, "the data stays");
    admin.delete_profile("default", "db").await.unwrap();
}

#[tokio::test]
async fn roles_are_params_that_filters_and_explain_know() {
    let (_installation, admin) = with_nodes().await;
    set(&admin, "db", &ClusterSpec { prefer: Some("-name".to_owned()), ..spec("all") }).await.unwrap();
    assert_eq!(nodes(&admin, "cluster/manager Eq false cluster/worker Eq true").await, "db-1 db-2 web-1");
    assert_eq!(explained(&admin, "db-1", "cluster/name").await, (json!("db"), json!("cluster")));
    assert_eq!(explained(&admin, "db-1", "cluster/leader").await, (json!(false), json!("cluster")));
    assert_eq!(explained(&admin, "db-1", "cluster/fence").await, (Value::Null, Value::Null));
    let path = format!("{BASE}/clusters/db/members?filter={}", encode("role=worker"));
    let members: Page<Value> = admin.get(&path, SOON).await.unwrap();
    assert_eq!(members.items.len(), 3);
}

#[tokio::test]
async fn a_node_is_a_member_of_the_oldest_cluster_and_why_names_it() {
    let (_installation, admin) = with_nodes().await;
    set(&admin, "db", &spec("name in (db-1,db-2)")).await.unwrap();
    let all = set(&admin, "all", &ClusterSpec { leaders: Some(0), ..spec("all") }).await.unwrap();
    assert_eq!((all.members, all.members_of_others), (1, 2));
    let why = admin.why("default", "cluster/all").await.unwrap();
    assert_eq!(
        why.lines.last().map(String::as_str),
        Some("matched, and members of older clusters: db-1 (db), db-2 (db)")
    );
    assert!(!why.waiting);
    let why = admin.why("default", "cluster/db").await.unwrap();
    assert!(
        why.waiting && why.lines[1].starts_with("no leader: no member may lead (of 2 members: 2 not up)"),
        "{why:?}"
    );
    admin.delete_cluster("default", "db").await.unwrap();
    assert_eq!(nodes(&admin, "cluster=all and not logical").await, "db-1 db-2 web-1");
}

#[tokio::test]
async fn what_cannot_be_a_cluster_is_refused_with_the_place() {
    let (_installation, admin) = with_nodes().await;
    for (spec, said) in [
        (spec("role=db and cordoned"), "filter: invalid filter at position 12: cordoned changes by itself"),
        (spec("cluster=db"), "filter: invalid filter at position 0: cluster changes by itself"),
        (spec("param[\"cluster/leader\"] = true"), "changes by itself"),
        (ClusterSpec { leaders: Some(65), ..spec("all") }, "leaders: 65; a cluster has at most 64 leaders"),
        (ClusterSpec { prefer: Some("presence".to_owned()), ..spec("all") }, "prefer: invalid"),
        (
            ClusterSpec { replace_after: Some("0s".to_owned()), ..spec("all") },
            "replace_after: 0s; at least 2s",
        ),
        (
            ClusterSpec { replace_after: Some("25h".to_owned()), ..spec("all") },
            "replace_after: 1d1h is too long; at most 1d is allowed",
        ),
        (ClusterSpec { profile: Some("global".to_owned()), ..spec("all") }, "every node reads it"),
        (ClusterSpec { profile: Some("defaults".to_owned()), ..spec("all") }, "defaults of declared params"),
    ] {
        let (_, detail) = problem(set(&admin, "db", &spec).await);
        assert!(detail.contains(said), "{detail}");
        assert!(problem(admin.cluster("default", "db").await).0 == Code::NotFound, "nothing was made");
    }
    set(&admin, "db", &spec("all")).await.unwrap();
    let again = problem(admin.only_at(0).set_cluster("default", "db", &spec("all")).await);
    assert_eq!(again.0, Code::Conflict);
    let other = ClusterSpec { profile: Some("db".to_owned()), ..spec("all") };
    let (_, detail) = problem(set(&admin, "other", &other).await);
    assert!(detail.contains("it is shared by the members of cluster db"), "{detail}");
    let moved = ClusterSpec { profile: Some("web".to_owned()), ..spec("all") };
    let (_, detail) = problem(set(&admin, "db", &moved).await);
    assert!(detail.contains("which cannot be changed"), "{detail}");
    let same = set(&admin, "db", &spec("all")).await.unwrap();
    assert_eq!(same.revision, 1, "the same again changes nothing");
}

#[tokio::test]
async fn members_have_the_name_of_their_profile_whatever_somebody_wrote_into_it() {
    let (_installation, admin) = with_nodes().await;
    set(&admin, "db", &spec("all")).await.unwrap();
    let other =
        ParamsPatch { set: [("cluster/profile".to_owned(), json!("web"))].into(), ..ParamsPatch::default() };
    admin.patch_profile("default", "db", &other).await.unwrap();
    assert_eq!(explained(&admin, "db-1", "cluster/profile").await, (json!("db"), json!("cluster")));
    set(&admin, "db", &ClusterSpec { leaders: Some(2), ..spec("all") }).await.unwrap();
    let params = admin.profile("default", "db").await.unwrap().params;
    assert_eq!(params.get("cluster/profile"), Some(&json!("db")), "a change of the cluster mends it");
}

#[tokio::test]
async fn a_wait_for_members_that_none_is_is_refused_and_says_how_roles_are_compared() {
    let (_installation, admin) = with_nodes().await;
    set(&admin, "db", &spec("all")).await.unwrap();
    let wait = async |on| admin.cluster_wait(("default", "db"), on, false, std::time::Duration::ZERO).await;
    let (code, detail) = problem(wait(Some("cluster/leader = true")).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("none matches \"cluster/leader = true\""), "{detail}");
    let whole = wait(Some("cluster/worker Eq true")).await.unwrap();
    assert_eq!(whole.state, ClusterWaitState::Complete);
}

#[tokio::test]
async fn a_cluster_is_deleted_only_without_a_run_of_its_manager_and_takes_the_ended_ones_with_it() {
    let (_installation, admin) = with_nodes().await;
    let made = async |path: &str, body: Value| {
        let path = format!("{BASE}/{path}");
        admin.send::<Value, Value>(Method::PUT, &path, &body, SOON).await.unwrap()
    };
    made("tasks/one", json!({"steps": [{"name": "do", "script": {"text": "true"}}]})).await;
    made("stages/one", json!({"tasks": ["one"]})).await;
    made("workflows/one", json!({"stages": ["one"]})).await;
    set(&admin, "db", &spec("all")).await.unwrap();
    let new = NewClusterRun { workflow: Some("one".to_owned()), ..NewClusterRun::default() };
    let run = admin.start_cluster_run("default", "db", &new).await.unwrap().name;
    let (code, detail) = problem(admin.decommission_node("default", "db-manager", "").await);
    let said = "cannot decommission db-manager: it is the manager of cluster db, and goes with it";
    assert_eq!((code, detail.as_str()), (Code::Refused, said));
    let (code, detail) = problem(admin.delete_cluster("default", "db").await);
    let said = format!("cannot delete cluster db: run {run} of its manager is in progress");
    assert_eq!((code, detail), (Code::Refused, said));
    let ask = async |step: &str| {
        let path = format!("{BASE}/entities/{run}/rollout/{step}");
        admin.send::<Value, Value>(Method::POST, &path, &json!({}), SOON).await
    };
    let (code, detail) = problem(ask("retry").await);
    assert!(code == Code::Refused && detail.contains("not undone or retried as a rollout"), "{detail}");
    ask("abort").await.unwrap();
    let bound = tokio::time::Instant::now() + SOON;
    while admin.delete_cluster("default", "db").await.is_err() {
        assert!(tokio::time::Instant::now() < bound, "the leader ends an aborted run");
        tokio::task::yield_now().await;
    }
    assert_eq!(problem(admin.run("default", &run).await).0, Code::NotFound);
}
