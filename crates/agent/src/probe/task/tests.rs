use bellwether_core::records::probes::{NodeProbes, Shard, ShardRole, StoreFacts};
use bellwether_core::words::time::{Span, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::data_store::Login;
use crate::ledger::Ledger;

/// For what never answers.
const SHORT: Span = Span::from_millis(700);

/// For what answers, however slow this machine is.
const LONG: Span = Span::from_secs(60);

fn probe(kind: StoreKind, timeout: Span) -> ProbeTask {
    let (found, known) = (watch::channel(BTreeMap::new()).0, watch::channel(None).0);
    let ledger = tempfile::tempdir().unwrap();
    let (ledger, _) = Ledger::open(ledger.path(), Tasks::new()).unwrap();
    let begun = BegunHandover::new("db".parse().unwrap(), ledger.handovers(), None);
    ProbeTask {
        name: "db".parse().unwrap(),
        probe: StoreProbe { kind, interval: timeout, timeout, handover: false },
        node: "db-1".parse().unwrap(),
        found,
        known,
        count: 1,
        seed: 7,
        begun,
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
            let store = probe(kind.clone(), SHORT).ask().await;
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
        assert_eq!(probe(kind, SHORT).ask().await.state, StoreState::Unknown);
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
        let store = probe(kind, LONG).ask().await;
        assert_eq!(
            (store.state, store.facts.software.as_str()),
            (StoreState::Down, software),
            "{}",
            store.reason
        );
    }
}

#[tokio::test]
async fn what_accepts_and_breaks_off_is_unknown_since_it_may_be_something_before_the_store() {
    let address = closing().await;
    for kind in every_kind(&address) {
        let store = probe(kind.clone(), LONG).ask().await;
        assert_eq!(store.state, StoreState::Unknown, "{kind:?}: {}", store.reason);
    }
}

/// A server that accepts every connection and closes it: a reset where bytes are unread, else an end.
#[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with its runtime")]
async fn closing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    address
}

/// A message of PostgreSQL.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

#[tokio::test]
async fn a_login_that_postgresql_does_not_take_is_unknown_with_what_to_do() {
    let wants = |method: u32, more: &[u8]| message(b'R', &[&method.to_be_bytes()[..], more].concat());
    let refuses =
        |code: &str, text: &str| message(b'E', format!("SFATAL\0VFATAL\0C{code}\0M{text}\0\0").as_bytes());
    let a_password = "the server wants a password of user postgres: set password_file of the probe, or have pg_hba.conf admit";
    let another = "an authentication of user postgres that the probe does not have: have pg_hba.conf admit";
    let no_entry = "no pg_hba.conf entry for host \"10.0.0.1\", user \"postgres\", no encryption";
    for (answer, reason) in [
        (wants(3, b""), a_password),
        (wants(5, b"salt"), a_password),
        (wants(10, b"SCRAM-SHA-256\0\0"), a_password),
        (wants(7, b""), another),
        (
            refuses("28P01", "password authentication failed"),
            "failed: check user and password_file of the probe",
        ),
        (
            refuses("28000", no_entry),
            "no encryption: have pg_hba.conf admit user postgres without TLS, by trust",
        ),
    ] {
        let address = serving(answer, false).await;
        let kind = StoreKind::Postgresql { address, login: Login::default() };
        let store = probe(kind, LONG).ask().await;
        assert_eq!(store.state, StoreState::Unknown, "{}", store.reason);
        assert!(store.reason.contains(reason), "{}", store.reason);
    }
}

#[test]
fn what_says_more_than_a_report_may_have_is_unknown_and_the_others_are_told() {
    let shard = Shard {
        role: ShardRole::Primary,
        history: Some("x".repeat(250)),
        offset: None,
        lag: None,
        upstream: None,
        streaming: None,
    };
    let with = |shards: usize| {
        let shards = (0..shards).map(|index| (index.to_string(), shard.clone())).collect();
        up(StoreFacts { software: "our-db".into(), shards, ..StoreFacts::default() })
    };
    let large = within_limits(with(1_025));
    assert_eq!(
        (large.state, large.reason.as_str()),
        (StoreState::Unknown, "shards: there are more than 1024")
    );
    let all = [("a", 600), ("b", 700), ("c", 1)];
    let all = all.map(|(name, shards)| (name.parse().unwrap(), within_limits(with(shards))));
    let stores = within_room(all.into_iter().collect());
    let states: Vec<StoreState> = stores.values().map(|store| store.state).collect();
    assert_eq!(states, [StoreState::Up, StoreState::Unknown, StoreState::Up]);
    let probes = NodeProbes {
        node: "db-1".parse().unwrap(),
        received_at: Timestamp::from_millis(0),
        sequence: 1,
        stores,
    };
    assert_eq!(probes.check(), Ok(()));
}
