//! Members of clusters that are listed outside: in a file, over HTTP, and what a list leads to.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::cluster::discovery::{AcceptMembers, DiscoverySpec, DiscoveryStatus};
use bellwether_api::v1::cluster::{Cluster, ClusterSpec};
use bellwether_rt::tasks::Tasks;
use bellwether_server::discovery::settings::DiscoverySettings;
use bellwether_server::sinks::addresses::AddressRules;

use crate::harness::{Installation, problem};
use crate::hooked::eventually;
use crate::rights::with;

/// An installation with nodes, and with the directory of its lists.
async fn with_lists(nodes: &[&str]) -> (Installation, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("default")).unwrap();
    let mut installation = Installation::new().await;
    let addresses = Arc::new(AddressRules::of_sinks(vec!["127.0.0.1".parse().unwrap()]));
    let own = Some(directory.path().to_owned());
    installation.config.discovery = DiscoverySettings { directory: own, addresses, ca_file: None };
    installation.restart().await;
    for node in nodes {
        installation.node(node).await;
    }
    (installation, directory)
}

fn of_file(file: &str) -> ClusterSpec {
    let discovery = DiscoverySpec {
        file: Some(file.to_owned()),
        interval: Some("1s".to_owned()),
        ..DiscoverySpec::default()
    };
    ClusterSpec { discovery: Some(discovery), ..ClusterSpec::default() }
}

/// Writes a list of these targets at once, as a program that makes one should.
fn write(path: &PathBuf, targets: &[&str]) {
    let text =
        serde_json::to_string(&serde_json::json!([{"targets": targets, "labels": {"zone": "a"}}])).unwrap();
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

async fn members(admin: &Client, role: &str) -> Vec<String> {
    let page = admin.cluster_members("default", "db", Some(role)).await.unwrap();
    page.items.into_iter().map(|member| member.node).collect()
}

/// The cluster once what is known of its list is so.
async fn until(admin: &Client, what: &str, is: impl Fn(&Cluster, &DiscoveryStatus) -> bool) -> Cluster {
    eventually(what, async || {
        let cluster = admin.cluster("default", "db").await.unwrap();
        let holds = cluster.discovery.as_ref().is_some_and(|discovery| is(&cluster, discovery));
        holds.then_some(cluster)
    })
    .await
}

/// The kinds of the events about the cluster, in order.
async fn told(admin: &Client) -> Vec<String> {
    let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let about = events.into_iter().filter(|event| event.subject == "cluster/db");
    let own = about.filter(|event| event.kind.contains("member") || event.kind.contains("discovery"));
    own.map(|event| event.kind.trim_start_matches("cluster.").to_owned()).collect()
}

#[tokio::test]
async fn members_come_and_go_with_a_file_and_a_large_drop_waits_for_a_person() {
    let (installation, directory) = with_lists(&["db-1", "db-2", "db-3", "web-1"]).await;
    let admin = installation.admin();
    let path = directory.path().join("default/db.json");
    write(&path, &["db-1:9100", "db-2:9100", "db-3:9100", "old-9:9100"]);
    let spec = ClusterSpec { leaders: Some(0), ..of_file("db.json") };
    let made = admin.set_cluster("default", "db", &spec).await.unwrap();
    assert_eq!(
        (made.filter.as_str(), made.members),
        ("all", 0),
        "nobody is a member before the list was read"
    );
    let read = until(&admin, "the list", |cluster, _| cluster.members == 3).await.discovery.unwrap();
    assert_eq!((read.listed, read.unknown, read.file.as_deref()), (4, 1, Some("db.json")));
    assert_eq!(members(&admin, "worker").await, ["db-1", "db-2", "db-3"]);
    assert_eq!(members(&admin, "unknown").await, ["old-9"]);
    installation.node("old-9").await;
    until(&admin, "a node that was listed before it joined", |cluster, _| cluster.members == 4).await;

    // Three of four are missing: they stay, whatever is new comes, and why says what to do.
    write(&path, &["db-1:9100", "web-1:9100"]);
    let held = until(&admin, "the drop", |_, discovery| discovery.held.is_some()).await;
    assert_eq!(held.members, 5, "nobody left, and one came");
    let why = admin.why("default", "cluster/db").await.unwrap();
    let line = why.lines.iter().find(|line| line.contains("--accept")).unwrap();
    assert!(
        why.waiting && line.contains("3 members missing") && line.contains("db-2, db-3, old-9"),
        "{line}"
    );
    let many = AcceptMembers { count: Some(2), ..AcceptMembers::default() };
    let (code, said) = problem(admin.accept_members("default", "db", &many).await);
    assert_eq!(code, Code::Refused);
    assert!(said.contains("3 wait for that now, not 2"), "{said}");
    let left = admin.accept_members("default", "db", &AcceptMembers::default()).await.unwrap();
    assert_eq!(left.members, 2);
    assert_eq!(members(&admin, "worker").await, ["db-1", "web-1"]);
    let (code, said) = problem(admin.accept_members("default", "db", &AcceptMembers::default()).await);
    assert_eq!(code, Code::Refused);
    assert!(said.contains("none waits for that"), "{said}");
    let added = "member_added";
    let mut expected = vec![added; 5];
    expected.extend(["members_held", "members_accepted", "member_gone", "member_gone", "member_gone"]);
    assert_eq!(told(&admin).await, expected);

    // Without a list the filter counts, and nothing of the list is left.
    let spec = ClusterSpec { filter: Some("name = db-2".to_owned()), ..ClusterSpec::default() };
    let filtered = admin.set_cluster("default", "db", &spec).await.unwrap();
    assert_eq!((filtered.members, filtered.discovery), (1, None));
    assert_eq!(members(&admin, "unknown").await, [""; 0]);
}

#[tokio::test]
async fn a_list_that_cannot_be_read_keeps_the_members_and_nothing_is_written_while_it_is_the_same() {
    let (mut installation, directory) = with_lists(&["db-1", "db-2"]).await;
    let path = directory.path().join("default/db.json");
    write(&path, &["db-1", "db-2"]);
    let admin = installation.admin();
    admin
        .set_cluster("default", "db", &ClusterSpec { leaders: Some(0), ..of_file("db.json") })
        .await
        .unwrap();
    until(&admin, "the list", |cluster, _| cluster.members == 2).await;
    std::fs::write(&path, r#"[{"targets": ["db-1"#).unwrap();
    let broken = until(&admin, "the failure", |_, discovery| discovery.failure.is_some()).await;
    assert_eq!(broken.members, 2);
    let failure = broken.discovery.unwrap().failure.unwrap();
    assert!(failure.reason.contains("expected [{"), "{}", failure.reason);
    write(&path, &[]);
    let is = |reason: &'static str| {
        move |_: &Cluster, of: &DiscoveryStatus| of.failure.as_ref().is_some_and(|it| it.reason == reason)
    };
    let empty = until(&admin, "the empty list", is("it lists no members")).await;
    assert_eq!((empty.members, empty.discovery.unwrap().failure.unwrap().since_ms), (2, failure.since_ms));
    // A new leader reads it, and has nothing to write. Another change shows that it has read on.
    installation.restart().await;
    let admin = installation.admin();
    let before = told(&admin).await;
    write(&path, &["db-1", "db-2"]);
    until(&admin, "the list again", |_, discovery| discovery.failure.is_none()).await;
    assert_eq!(before, ["member_added", "member_added", "discovery_failed"]);
    assert_eq!(told(&admin).await[3..], ["discovery_recovered"]);
}

/// What an endpoint answers.
type Answer = Arc<Mutex<(StatusCode, String)>>;

async fn endpoint() -> (Answer, String, Tasks) {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/db", socket.local_addr().unwrap());
    let (answer, tasks) = (Answer::default(), Tasks::new());
    let router = axum::Router::new().fallback(answered).with_state(Arc::clone(&answer));
    tasks.spawn("endpoint", async move { axum::serve(socket, router).await.unwrap() });
    (answer, url, tasks)
}

async fn answered(State(answer): State<Answer>) -> Response {
    let (status, body) = answer.lock().unwrap().clone();
    (status, [("location", "http://127.0.0.1/other"), ("content-type", "application/json")], body)
        .into_response()
}

#[tokio::test]
async fn a_list_over_http_is_read_and_neither_redirects_nor_errors_change_the_members() {
    let (installation, _directory) = with_lists(&["db-1", "db-2"]).await;
    let admin = installation.admin();
    let (answer, url, _tasks) = endpoint().await;
    let say = |status: StatusCode, body: &str| *answer.lock().unwrap() = (status, body.to_owned());
    say(StatusCode::OK, r#"[{"targets": ["db-1:80"]}, {"targets": ["db-2:80"], "labels": {"a": "b"}}]"#);
    let discovery =
        DiscoverySpec { url: Some(url.clone()), interval: Some("1s".to_owned()), ..DiscoverySpec::default() };
    let spec = ClusterSpec {
        filter: Some("name = db-1 or name = db-2".to_owned()),
        leaders: Some(0),
        discovery: Some(discovery.clone()),
        ..ClusterSpec::default()
    };
    admin.set_cluster("default", "db", &spec).await.unwrap();
    until(&admin, "the list", |cluster, _| cluster.members == 2).await;
    for (status, body, said) in [
        (StatusCode::FOUND, "[]", "redirects are not followed"),
        (StatusCode::SERVICE_UNAVAILABLE, r#"[{"targets": ["db-1:80"]}]"#, "status 503"),
        (StatusCode::OK, "<html>", "expected [{"),
    ] {
        say(status, body);
        let is = |_: &Cluster, of: &DiscoveryStatus| {
            of.failure.as_ref().is_some_and(|it| it.reason.contains(said))
        };
        assert_eq!(until(&admin, said, is).await.members, 2);
    }
    // The filter chooses among those that are listed.
    say(StatusCode::OK, r#"[{"targets": ["db-1:80", "db-2:80"]}]"#);
    let narrow = ClusterSpec { filter: Some("name = db-2".to_owned()), ..spec };
    admin.set_cluster("default", "db", &narrow).await.unwrap();
    until(&admin, "the narrow one", |cluster, of| cluster.members == 1 && of.failure.is_none()).await;
    assert_eq!(members(&admin, "worker").await, ["db-2"]);
}

#[tokio::test]
async fn a_list_that_may_not_be_read_is_refused_and_so_is_who_may_not_accept() {
    let (mut installation, _directory) = with_lists(&["db-1"]).await;
    let admin = installation.admin();
    let with_url = |url: &str| ClusterSpec {
        discovery: Some(DiscoverySpec { url: Some(url.to_owned()), ..DiscoverySpec::default() }),
        ..ClusterSpec::default()
    };
    for (spec, code, said) in [
        (with_url("http://169.254.169.254/latest"), Code::Refused, "allow_addresses"),
        (with_url("file:///etc/passwd"), Code::Invalid, "discovery.url"),
        (of_file("../../etc/passwd"), Code::Invalid, "discovery.file"),
    ] {
        let (found, detail) = problem(admin.set_cluster("default", "db", &spec).await);
        assert_eq!(found, code, "{detail}");
        assert!(detail.contains(said), "{detail}");
    }
    let viewer = with(&installation, "viewer-only", &["get cluster in default"]).await;
    let (code, _) = problem(viewer.accept_members("default", "db", &AcceptMembers::default()).await);
    assert_eq!(code, Code::Forbidden);
    installation.config.discovery = DiscoverySettings::default();
    installation.restart().await;
    let (code, said) = problem(installation.admin().set_cluster("default", "db", &of_file("db.json")).await);
    assert_eq!(code, Code::Refused);
    assert!(said.contains("names no directory"), "{said}");
}

#[tokio::test]
async fn a_list_is_read_at_its_interval_whether_it_is_the_same_or_cannot_be_read() {
    let (installation, _directory) = with_lists(&["db-1"]).await;
    let admin = installation.admin();
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/db", socket.local_addr().unwrap());
    let (reads, tasks) = (Arc::new(AtomicU64::new(0)), Tasks::new());
    let counted = Arc::clone(&reads);
    let router = axum::Router::new().fallback(async move || match counted.fetch_add(1, Ordering::Relaxed) {
        0 => (StatusCode::OK, r#"[{"targets": ["db-1:80"]}]"#),
        _ => (StatusCode::SERVICE_UNAVAILABLE, ""),
    });
    tasks.spawn("endpoint", async move { axum::serve(socket, router).await.unwrap() });
    for (interval, expected) in [("1h", 1), ("2h", 2)] {
        let discovery = DiscoverySpec {
            url: Some(url.clone()),
            interval: Some(interval.to_owned()),
            ..DiscoverySpec::default()
        };
        let spec = ClusterSpec { leaders: Some(0), discovery: Some(discovery), ..ClusterSpec::default() };
        admin.set_cluster("default", "db", &spec).await.unwrap();
        until(&admin, interval, |cluster, of| {
            cluster.members == 1 && of.failure.is_some() == (expected == 2)
        })
        .await;
        // Nothing of what happens meanwhile has it read again.
        for node in 0..5 {
            installation.node(&format!("web-{expected}-{node}")).await;
        }
        assert_eq!(reads.load(Ordering::Relaxed), expected);
    }
}
