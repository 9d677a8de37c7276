//! What is no etcd, or does not let us in: refused by name within a bound, with the next step, and nothing written.

use std::path::PathBuf;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{changes_of, commit, next, put, soon};
use bellwether_store::testing::certificates::Certificates;
use bellwether_store::testing::etcd::{Options, TestEtcd};
use bellwether_store::{EtcdSettings, OpenError, Range, Revision, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn at(endpoint: &str) -> EtcdSettings {
    EtcdSettings { deadline: Duration::from_secs(2), ..EtcdSettings::new(vec![endpoint.to_owned()]) }
}

/// What opening says.
async fn refusal(settings: EtcdSettings) -> String {
    let error = soon(Store::etcd(settings, &Tasks::new())).await.unwrap_err();
    assert!(!matches!(error, OpenError::Locked { .. } | OpenError::Corrupt { .. }));
    error.to_string()
}

fn assert_says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    for endpoint in ["", "localhost:2379", "ftp://localhost", "http://", "http://a b"] {
        assert_says(&refusal(at(endpoint)).await, &["endpoints", "https://host:2379"]);
    }
    assert_says(&refusal(EtcdSettings::new(vec![])).await, &["there are none"]);
    for prefix in ["", "b", "bellwether-compaction"] {
        let settings = EtcdSettings { prefix: prefix.into(), ..at("http://localhost:2379") };
        assert_says(&refusal(settings).await, &["prefix", "use another, like /bellwether"]);
    }
    let long = EtcdSettings { prefix: vec![b'x'; 257].into(), ..at("http://localhost:2379") };
    assert_says(&refusal(long).await, &["prefix", "256 bytes"]);
    let missing =
        EtcdSettings { ca_file: Some(PathBuf::from("/nowhere/ca.pem")), ..at("https://localhost:1") };
    assert_says(&refusal(missing).await, &["open /nowhere/ca.pem", "No such file"]);
}

#[tokio::test]
async fn nobody_there_and_somebody_silent_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = refusal(at(&format!("http://{address}"))).await;
    assert_says(&silent, &["no answer within", "drops what is sent"]);
    drop(listener);
    let nobody = refusal(at(&format!("http://{address}"))).await;
    assert_says(&nobody, &["refused", "start etcd there"]);
    let unnamed = refusal(at("http://no-such-host.invalid:2379")).await;
    assert_says(&unnamed, &["correct the name of the endpoint"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_no_etcd_or_speaks_only_the_old_api_is_told_so() {
    let tasks = Tasks::new();
    for body in ["<h1>It works!</h1>", r#"{"etcdserver":"2.3.8","etcdcluster":"2.3.0"}"#] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tasks.spawn("web server", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = [0; 1_024];
                drop(stream.read(&mut bytes).await);
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                drop(stream.write_all(answer.as_bytes()).await);
            }
        });
        assert_says(
            &refusal(at(&format!("http://{address}"))).await,
            &["must be the client port of an etcd 3.4"],
        );
    }
    tasks.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_do_not_fit_are_told_apart_and_those_that_do_are_let_in() {
    let tasks = Tasks::new();
    let etcd = TestEtcd::start(Options { tls: true, ..Options::default() }).await;
    let (good, files) = (etcd.settings(), etcd.certificates().unwrap());
    let other = tempfile::tempdir().unwrap();
    let strangers = Certificates::make(other.path());
    let short = EtcdSettings { deadline: Duration::from_secs(2), ..good.clone() };
    let with = |identity| EtcdSettings { identity, ..short.clone() };
    let wrong_ca = EtcdSettings { ca_file: Some(strangers.ca.clone()), ..short.clone() };
    assert_says(&refusal(wrong_ca).await, &["invalid peer certificate", "as its CA file"]);
    for identity in [None, Some(files.expired.clone()), Some(strangers.client.clone())] {
        assert_says(&refusal(with(identity)).await, &["give a client certificate that etcd's CA signed"]);
    }
    let mixed = Some(bellwether_store::EtcdIdentity {
        key_file: strangers.client.key_file.clone(),
        ..files.client.clone()
    });
    assert_says(&refusal(with(mixed)).await, &["certificates", "check that the files hold PEM"]);
    let plain = EtcdSettings { endpoints: vec![etcd.endpoint(0).replace("https", "http")], ..short.clone() };
    assert_says(&refusal(plain).await, &["https:// if that speaks TLS"]);
    let unnamed =
        EtcdSettings { endpoints: vec![etcd.endpoint(0).replace("127.0.0.1", "127.0.0.2")], ..short };
    refusal(unnamed).await;
    let store = Store::etcd(good, &tasks).await.unwrap();
    assert_eq!(store.list(Range::all(), None, 1).await.unwrap().revision, Revision(0), "nothing was written");
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=1"]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_to_an_etcd_without_and_members_of_two_etcds_are_refused() {
    let (one, two) = (TestEtcd::one().await, TestEtcd::three().await);
    let files = tempfile::tempdir().unwrap();
    let ca_file = Some(Certificates::make(files.path()).ca);
    let tls = EtcdSettings { ca_file, ..at(&one.endpoint(0).replace("http", "https")) };
    assert_says(&refusal(tls).await, &["it speaks no TLS"]);
    let both = EtcdSettings { endpoints: vec![one.endpoint(0), two.endpoint(0)], ..one.settings() };
    assert_says(&refusal(both).await, &["it belongs to another etcd", "members of one etcd only"]);
    let partly =
        EtcdSettings { endpoints: vec!["http://127.0.0.1:1".to_owned(), two.endpoint(0)], ..two.settings() };
    let store = Store::etcd(partly, &Tasks::new()).await.unwrap();
    assert_eq!(store.list(Range::all(), None, 1).await.unwrap().revision, Revision(0));
}
