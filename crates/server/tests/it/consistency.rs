//! Linearizable reads from a server whose watch is delayed, or that is cut off from its store.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::audit::AuditLog;
use bellwether_server::config::Config;
use bellwether_server::http::router;
use bellwether_server::pki::Pki;
use bellwether_server::run::{BuildContext, build, init};
use bellwether_server::secrets::keyring::Keyring;
use bellwether_server::timing::peers::HttpPeers;
use bellwether_store::testing::faulty::{FaultInjection, FaultyStore, StoreFault};
use bellwether_store::{Op, Range, Store, Txn};
use http::{Request, StatusCode};
use tower::ServiceExt;

use crate::harness::SOON;

/// A server on a store with fault injection.
struct Seen {
    _dir: tempfile::TempDir,
    _tasks: [Tasks; 3],
    router: Router,
    token: String,
    store: Store,
    line: FaultyStore,
}

impl Seen {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::load(None).unwrap();
        config.data_dir = dir.path().join("server");
        let made = init(&config).await.unwrap();
        let tasks = [Tasks::new(), Tasks::new(), Tasks::new()];
        let [store_tasks, outer, inner] = &tasks;
        let store = Store::embedded(&config.data_dir.join("store"), store_tasks).unwrap();
        let line = FaultyStore::new(1);
        let clock = Clock::system();
        let pki = Pki::open(&config.data_dir.join("pki"), &config.names, clock.now()).unwrap();
        let seen = store.through(&line);
        let context = BuildContext {
            config: &config,
            store: &seen,
            listens: config.listen,
            tasks: outer,
            inner_tasks: inner,
            clock,
            peers: Arc::new(HttpPeers::new(&pki)),
            keyring: Keyring::default(),
            audit: AuditLog::off(),
            pki,
        };
        let app = build(context).await.unwrap();
        let token = made.token.expose().to_owned();
        Self { _dir: dir, router: router(&app), _tasks: tasks, token, store, line }
    }

    /// The body of a successful response, or the error.
    async fn ask(&self, method: &str, path: &str, body: &'static str) -> (StatusCode, String) {
        let request = Request::builder()
            .method(method)
            .uri(format!("/v1/namespaces/default/{path}"))
            .header("authorization", format!("Bearer {}", self.token))
            .body(Body::from(body))
            .unwrap();
        let asked = self.router.clone().oneshot(request);
        let answer = tokio::time::timeout(SOON, asked).await.unwrap().unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// How often the server read all records again.
    async fn lists(&self) -> u64 {
        let request = Request::get("/metrics").header("authorization", format!("Bearer {}", self.token));
        let answer = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        let page = String::from_utf8(body.to_vec()).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix("bellwether_world_relists_total "));
        line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
    }

    async fn reads(&self, consistency: &str) -> (StatusCode, String) {
        self.ask("GET", &format!("freezes/winter?{consistency}"), "").await
    }
}

/// A server that knows a freeze, and what deletes it for all others.
async fn frozen() -> (Seen, Txn) {
    let seen = Seen::new().await;
    let (status, why) = seen.ask("PUT", "freezes/winter", r#"{"reason": "snow"}"#).await;
    assert!(status.is_success(), "{why}");
    assert_eq!(seen.reads("consistency=linearizable").await.0, StatusCode::OK);
    let all = seen.store.list(Range::all(), None, 1_000).await.unwrap().entries;
    let kept = all.into_iter().find(|entry| String::from_utf8_lossy(&entry.key).ends_with("winter")).unwrap();
    (seen, Txn { compares: vec![], ops: vec![Op::Delete { key: kept.key }] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_watch_is_held_back_answers_what_was_unless_it_is_asked_for_the_present() {
    let (seen, thaw) = frozen().await;
    seen.line.trouble(FaultInjection { lost_commits: 1_000_000, ..FaultInjection::default() });
    seen.store.commit(thaw).await.unwrap();
    assert_eq!(seen.reads("").await.0, StatusCode::OK, "as far as it knows");
    assert_eq!(seen.reads("consistency=local").await.0, StatusCode::OK);
    let (status, why) = seen.reads("consistency=linearizable").await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{why}");
    assert_eq!(seen.reads("").await.0, StatusCode::NOT_FOUND, "now it knows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_from_its_store_does_not_say_what_is_but_what_was() {
    let (seen, thaw) = frozen().await;
    seen.line.cut();
    seen.store.commit(thaw).await.unwrap();
    assert_eq!(seen.reads("").await.0, StatusCode::OK);
    let (status, why) = seen.reads("consistency=linearizable").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{why}");
    assert!(why.contains("cannot read the newest state"), "{why}");
    seen.line.heal();
    assert_eq!(seen.reads("consistency=linearizable").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_everything_is_listed_what_happens_is_shown_and_stays_so() {
    let (seen, thaw) = frozen().await;
    seen.line.next(StoreFault::LostCommits, 1);
    seen.store.commit(thaw).await.unwrap();
    seen.line.hold_lists(true);
    let mut present = Box::pin(seen.reads("consistency=linearizable"));
    assert!(tokio::time::timeout(SOON / 10, &mut present).await.is_err(), "it waits for a list");
    let (status, why) = seen.ask("PUT", "freezes/summer", r#"{"reason": "heat"}"#).await;
    assert!(status.is_success(), "{why}");
    let summer = || seen.ask("GET", "freezes/summer", "");
    assert_eq!(summer().await.0, StatusCode::OK, "shown before the list is there");
    assert_eq!(seen.reads("").await.0, StatusCode::OK, "which it needs to know of this one");
    seen.line.hold_lists(false);
    let (status, why) = present.await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{why}");
    assert_eq!(summer().await.0, StatusCode::OK);
    let (status, why) = seen.ask("PUT", "freezes/autumn", r#"{"reason": "storms"}"#).await;
    assert!(status.is_success(), "{why}");
    assert_eq!(seen.ask("GET", "freezes/autumn", "").await.0, StatusCode::OK, "and it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_other_programs_in_a_shared_store_cause_no_relist() {
    let (seen, thaw) = frozen().await;
    let theirs = Op::Put { key: "/theirs".into(), value: "1".into(), lease: None };
    seen.store.commit(Txn { compares: vec![], ops: vec![theirs] }).await.unwrap();
    assert_eq!(seen.reads("consistency=linearizable").await.0, StatusCode::OK);
    assert_eq!(seen.lists().await, 0, "nothing of ours is missing");
    seen.line.next(StoreFault::LostCommits, 1);
    seen.store.commit(thaw).await.unwrap();
    let (status, why) = seen.ask("PUT", "freezes/summer", r#"{"reason": "heat"}"#).await;
    assert!(status.is_success(), "{why}");
    assert_eq!(seen.reads("").await.0, StatusCode::OK, "it was not notified, and goes on");
    let theirs = Op::Put { key: "/theirs".into(), value: "2".into(), lease: None };
    seen.store.commit(Txn { compares: vec![], ops: vec![theirs] }).await.unwrap();
    assert_eq!(seen.reads("consistency=linearizable").await.0, StatusCode::NOT_FOUND);
    assert_eq!(seen.lists().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_consistency_is_refused_with_the_place() {
    let seen = Seen::new().await;
    let (status, why) = seen.reads("consistency=strong").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(why.contains("consistency") && why.contains("neither local nor linearizable"), "{why}");
}
