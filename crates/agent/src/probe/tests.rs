use bellwether_core::records::probes::ShardRole;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::data_store::Login;
use crate::config::recipe::Command;

const TIMEOUT: bellwether_core::words::time::Span = bellwether_core::words::time::Span::from_millis(700);

fn probe(kind: StoreKind) -> ProbeTask {
    let (found, known) = (watch::channel(BTreeMap::new()).0, watch::channel(None).0);
    ProbeTask {
        name: "db".parse().unwrap(),
        probe: StoreProbe { kind, interval: TIMEOUT, timeout: TIMEOUT },
        node: "db-1".parse().unwrap(),
        found,
        known,
        count: 1,
        seed: 7,
    }
}

/// A server that answers every connection with these bytes, again and again if it is to flood.
#[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with its runtime")]
async fn serving(answer: Vec<u8>, floods: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(say(stream, answer.clone(), floods));
        }
    });
    address
}

async fn say(mut stream: TcpStream, answer: Vec<u8>, floods: bool) {
    let mut asked = [0; 4_096];
    while stream.read(&mut asked).await.is_ok_and(|count| count > 0) {
        while stream.write_all(&answer).await.is_ok() && floods {}
    }
}

fn every_kind(address: &str) -> Vec<StoreKind> {
    let (address, login) = (address.to_owned(), Login::default);
    vec![
        StoreKind::Etcd { authority: address.clone(), tls: None },
        StoreKind::Redis { address: address.clone(), login: login() },
        StoreKind::Sentinel { address: address.clone(), login: login() },
        StoreKind::Postgresql { address: address.clone(), login: login() },
        StoreKind::Zookeeper { address },
    ]
}

#[tokio::test]
async fn what_answers_nonsense_or_too_much_or_nothing_is_unknown_with_a_reason() {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\n\r\n{}", "x".repeat(10_485_760));
    let list = format!("*{}\r\n", u64::MAX).into_bytes();
    let text = b"$999999999999\r\n".to_vec();
    let answers = [b"hello \xff\x1b[2J\r\n".to_vec(), long.into_bytes(), list, text, Vec::new()];
    for answer in answers {
        let address = serving(answer.clone(), false).await;
        for kind in every_kind(&address) {
            let store = probe(kind.clone()).ask().await;
            let shown = String::from_utf8_lossy(answer.get(..20).unwrap_or(&answer)).into_owned();
            assert_eq!(store.state, StoreState::Unknown, "{kind:?} {shown:?}: {}", store.reason);
            assert!(!store.reason.is_empty() && !store.reason.contains('\u{1b}'), "{:?}", store.reason);
            assert_eq!(store.facts.shards.len(), 0);
        }
    }
}

#[tokio::test]
async fn what_floods_is_left_within_the_limit() {
    let address = serving(vec![b'+'; 65_536], true).await;
    for kind in every_kind(&address) {
        assert_eq!(probe(kind).ask().await.state, StoreState::Unknown);
    }
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_down() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    for kind in every_kind(&address) {
        let software = kind.software();
        let store = probe(kind).ask().await;
        assert_eq!(
            (store.state, store.facts.software.as_str()),
            (StoreState::Down, software),
            "{}",
            store.reason
        );
    }
}

async fn told(script: &str) -> DataStore {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    probe(StoreKind::Exec(Command { argv, workdir: "/".into(), env: BTreeMap::default() })).ask().await
}

#[tokio::test]
async fn the_answer_of_a_command_is_read_and_what_else_it_does_is_a_reason() {
    let good = told(
        r#"echo noise >&2; echo '{"state":"up","facts":{"software":"our-db","shards":{"0":{"role":"primary","offset":{"amount":3,"unit":"bytes"}}}}}'"#,
    )
    .await;
    assert_eq!(
        (good.state, good.facts.shards["0"].role),
        (StoreState::Up, ShardRole::Primary),
        "{}",
        good.reason
    );
    let down = told(r#"echo '{"state":"down","reason":"no quorum"}'"#).await;
    assert_eq!((down.state, down.reason.as_str()), (StoreState::Down, "no quorum"));
    for (script, reason) in [
        ("echo oops >&2; exit 3", "exit code 3: oops"),
        ("echo '{}'", "its answer is not that of a probe: missing field `state` at line 1 column 2"),
        ("sleep 600", "after 700ms"),
        ("yes | head -c 20000000", "its answer has more than 1048576 bytes"),
        ("yes", "after 700ms"),
    ] {
        let store = told(script).await;
        assert_eq!(store.state, StoreState::Unknown, "{script}");
        assert!(store.reason.contains(reason), "{script}: {}", store.reason);
    }
}
