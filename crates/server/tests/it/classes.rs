//! Concurrency limits by class, over real sockets: who is served under overload, and what refused clients get.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::{Code, Problem};
use bellwether_api::v1::entity::EntitySpec;
use bellwether_server::http::{ConcurrencyLimit, ConcurrencyLimits};
use futures_util::FutureExt;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Installation, SOON};

/// Most TLS handshakes of agents from one network at the same time, as in the server.
const HANDS: usize = 48;

/// One request runs, none waits.
fn narrow() -> ConcurrencyLimits {
    let width = ConcurrencyLimit::whole(1, 0, 50);
    ConcurrencyLimits { people: width, machines: width, ..ConcurrencyLimits::default() }
}

/// An agent that begins a TLS handshake and never completes it.
async fn hello(installation: &Installation) -> TcpStream {
    let mut tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), bellwether_api::client::tls::MACHINE.to_vec()];
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut hello = Vec::new();
    ClientConnection::new(Arc::new(tls), name).unwrap().write_tls(&mut hello).unwrap();
    let mut stream = TcpStream::connect(installation.server().address).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    stream
}

/// Whether it was answered, and so holds a permit. Reads nothing.
fn is_answered(stream: &TcpStream) -> bool {
    stream.peek(&mut [0; 1]).now_or_never().is_some_and(|peeked| peeked.is_ok_and(|read| read > 0))
}

/// How many of them were answered.
fn answered(streams: &[TcpStream]) -> usize {
    streams.iter().filter(|stream| is_answered(stream)).count()
}

/// Polls until the condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, asking).await.is_ok(), "never saw {what}");
}

/// A client that occupies the room of a class with a request that it does not complete.
async fn occupant(installation: &Installation, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(installation.server().plain_address.unwrap()).await.unwrap();
    stream
        .write_all(format!("{request}\r\nhost: x\r\ncontent-length: 9\r\n\r\n{{").as_bytes())
        .await
        .unwrap();
    stream
}

/// Occupies the only room, and asks until that is refused. An occupant that comes while something else is served is refused
/// itself: then another one comes.
async fn refusal(
    installation: &Installation,
    request: &str,
    mut ask: impl AsyncFnMut() -> Option<Problem>,
) -> (TcpStream, Problem) {
    let mut holder = occupant(installation, request).await;
    let mut problem = None;
    until("a refusal", async || {
        if answered(std::slice::from_ref(&holder)) > 0 {
            holder = occupant(installation, request).await;
        }
        problem = ask().await;
        problem.is_some()
    })
    .await;
    (holder, problem.unwrap())
}

/// Number of refused requests of that class.
async fn refused(client: &Client, class: &str) -> u64 {
    let page = client.text("/metrics", SOON).await.unwrap();
    let counted = format!("bellwether_requests_refused_total{{class=\"{class}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&counted)).map_or(0, |count| count.parse().unwrap())
}

fn busy<T>(answer: Result<T, CallError>) -> Option<Problem> {
    match answer {
        Err(CallError::Problem(problem)) if problem.code == Code::Busy => Some(problem),
        Ok(_) | Err(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_of_agents_are_limited_and_people_connect_in_between() {
    let installation = Installation::new().await;
    let mut streams = Vec::new();
    for _ in 0..HANDS + 20 {
        streams.push(hello(&installation).await);
    }
    until("all turns taken", async || answered(&streams) >= HANDS).await;
    installation.admin().who_am_i().await.unwrap();
    // In whatever order they were accepted.
    let (holding, mut waiting): (Vec<TcpStream>, Vec<TcpStream>) = streams.into_iter().partition(is_answered);
    assert_eq!(holding.len(), HANDS);
    // One gives up and releases its permit to the next, which gives up too, and so on.
    drop(holding);
    for stream in &mut waiting {
        let answer = tokio::time::timeout(SOON, stream.read_u8()).await.unwrap();
        assert_eq!(answer.unwrap(), 22, "a handshake goes on");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_agent_is_admitted_when_it_retries_and_people_are_admitted_meanwhile() {
    let installation = Installation::with_lanes(narrow()).await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let (hangs, mut problem) = (installation.client(node.identity.clone()), None);
    // A read that waits for a change which nobody makes; it is refused itself while a report is answered.
    let waiting = async {
        loop {
            drop(hangs.service("default", "none", Some(1 << 50), Duration::from_secs(50)).await);
            tokio::task::yield_now().await;
        }
    };
    let refusal = until("a refusal", async || {
        problem = busy(node.client.report("default", &node.empty_report()).await);
        problem.is_some()
    });
    // Both only wait.
    tokio::select! {
        () = refusal => {}
        () = waiting => {}
    }
    let problem = problem.unwrap();
    assert_eq!((problem.status, problem.retry_after_ms), (429, Some(50)));
    assert_eq!(problem.detail, "cannot accept another request of nodes: 1 are in flight and 0 wait");
    admin.nodes("default", false).await.unwrap();
    assert!(refused(&admin, "machines").await > 0);
    assert_eq!(refused(&admin, "people").await, 0);
    until("room", async || node.client.report("default", &node.empty_report()).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_without_room_is_asked_again_until_there_is_and_a_change_is_not() {
    let installation = Installation::with_lanes(narrow()).await;
    let admin = installation.admin();
    let (operator, secret) = installation.token_and_secret("operator").await;
    let request =
        format!("PUT /v1/namespaces/default/entities/app HTTP/1.1\r\nauthorization: Bearer {secret}");
    let (occupant, _) = refusal(&installation, &request, async || {
        busy(operator.set_entity("default", "app", &EntitySpec::default()).await)
    })
    .await;
    let before = refused(&admin, "people").await;
    let reading = admin.nodes("default", false);
    tokio::pin!(reading);
    until("that it was asked again", async || {
        // Both only wait; the read continues where it was.
        tokio::select! {
            early = &mut reading => panic!("it was answered: {early:?}"),
            now = refused(&admin, "people") => now >= before + 2,
        }
    })
    .await;
    drop(occupant);
    reading.await.unwrap();
}
