//! Events: pages, blocking reads, and a stream that resumes.

use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::event::Event;
use bellwether_api::v1::run::NewRun;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;

use crate::harness::{Installation, SOON, problem};
use crate::hooked::eventually;
use crate::rights::with;
use crate::schedules::workflow;

/// Opens the stream on the plain listener and reads the ids of the next `count` messages.
async fn stream(installation: &Installation, resume: &str, count: usize) -> Vec<u64> {
    filtered(installation, "", resume, count).await
}

/// The lines of a stream, by way of the plain listener.
async fn lines(
    installation: &Installation,
    token: &str,
    (query, resume): (&str, &str),
) -> Lines<BufReader<TcpStream>> {
    let address = installation.server().plain_address.unwrap();
    let request = format!(
        "GET /v1/namespaces/default/events/stream{query} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n{resume}\r\n"
    );
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    BufReader::new(connection).lines()
}

/// As [`stream`], with a query.
async fn filtered(installation: &Installation, query: &str, resume: &str, count: usize) -> Vec<u64> {
    let mut lines = lines(installation, installation.admin_token.expose(), (query, resume)).await;
    let reading = async {
        let mut ids = Vec::new();
        while ids.len() < count {
            let line = lines.next_line().await.unwrap().expect("the stream ended");
            ids.extend(line.strip_prefix("id: ").and_then(|id| id.parse::<u64>().ok()));
        }
        ids
    };
    tokio::time::timeout(SOON, reading).await.unwrap()
}

#[tokio::test]
async fn a_stream_resumes_where_it_was_cut_without_a_gap() {
    let mut installation = Installation::new().await;
    installation.config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
    installation.restart().await;
    for name in ["web-1", "web-2", "web-3"] {
        installation.node(name).await;
    }
    let first = stream(&installation, "Last-Event-ID: 0\r\n", 3).await;
    assert_eq!(first, [1, 2, 3]);
    let next = stream(&installation, "Last-Event-ID: 3\r\n", 3).await;
    assert_eq!(next, [4, 5, 6]);
}

#[tokio::test]
async fn a_stream_ends_with_the_token_of_who_reads_it_and_sends_nothing_of_after_that() {
    let mut installation = Installation::new().await;
    installation.config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
    installation.restart().await;
    let (reader, token) = installation.token_and_secret("viewer").await;
    let mut read = lines(&installation, &token, ("", "Last-Event-ID: 0\r\n")).await;
    installation.node("web-1").await;
    let name = reader.who_am_i().await.unwrap().actor;
    let until = async |read: &mut Lines<BufReader<TcpStream>>, what: &str| {
        while let Some(line) = read.next_line().await.unwrap() {
            if line.contains(what) {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(SOON, until(&mut read, "web-1")).await.unwrap());
    installation.admin().delete_token(&name).await.unwrap();
    installation.node("web-2").await;
    let told = tokio::time::timeout(SOON, until(&mut read, "web-2")).await.unwrap();
    assert!(!told, "it goes on with a token that was deleted");
}

#[tokio::test]
async fn a_blocking_read_answers_when_something_happens_and_not_before() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let last = admin.overview("default").await.unwrap().last_event;
    let clock = Clock::system();
    let start = clock.now();
    let empty = admin.events("default", Some(last), 10, Duration::from_millis(200)).await.unwrap();
    assert!(empty.items.is_empty());
    assert!(clock.now().since(start) >= Span::from_millis(200), "it did not wait");
    let (page, _) =
        tokio::join!(admin.events("default", Some(last), 10, SOON), installation.join_token(None));
    assert_eq!(page.unwrap().items.first().unwrap().seq, last + 1);
}

#[tokio::test]
async fn a_filtered_stream_sends_what_matches_and_the_number_up_to_which_it_was_read() {
    let mut installation = Installation::new().await;
    installation.config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
    installation.restart().await;
    for name in ["web-1", "web-2", "web-3"] {
        installation.node(name).await;
    }
    let admin = installation.admin();
    let all = admin.events("default", Some(0), 100, Duration::ZERO).await.unwrap().items;
    let of_web_2 = all.iter().filter(|event| event.subject == "node/web-2").map(|event| event.seq);
    let mut expected: Vec<u64> = of_web_2.collect();
    expected.push(all.last().unwrap().seq);
    let query = "?filter=subject%3Dnode/web-2";
    let resume = "Last-Event-ID: 0\r\n";
    assert_eq!(filtered(&installation, query, resume, expected.len()).await, expected);
    let options = bellwether_api::client::ListOptions {
        filter: Some("subject = node/web-3".to_owned()),
        ..Default::default()
    };
    let last = admin.listing(options).events("default", Some(0), 100, Duration::ZERO).await.unwrap();
    assert!(last.items.iter().all(|event| event.subject == "node/web-3") && !last.items.is_empty());
    assert_eq!(
        last.next.unwrap(),
        all.last().unwrap().seq.to_string(),
        "the reader knows how far it was read"
    );
}

#[tokio::test]
async fn the_chain_of_an_event_goes_from_a_call_over_the_run_to_its_rollout_for_those_who_may_read_it() {
    let installation = Installation::lenient().await;
    installation.node("web-1").await;
    let admin = installation.admin();
    workflow(&admin).await;
    let new = NewRun { workflow: "backup".to_owned(), on: "all".to_owned(), ..NewRun::default() };
    let run = admin.start_run("default", &new).await.unwrap().name;
    let rollout = eventually("the rollout of the run", async || {
        let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
        let is = |event: &Event| event.kind == "rollout.started" && event.subject.contains(&run);
        events.into_iter().find(is)
    })
    .await;
    let chain = admin.event_chain("default", rollout.seq).await.unwrap();
    let kinds: Vec<&str> = chain.items.iter().map(|event| event.kind.as_str()).collect();
    assert!(kinds.starts_with(&["run.started", "rollout.started"]), "{kinds:?}");
    assert!(chain.complete && chain.read_to >= rollout.seq);
    let started = chain.items.first().unwrap();
    assert_eq!((started.caused_by, rollout.caused_by), (None, Some(started.seq)), "a call is a root");
    assert_eq!(started.actor, "admin");
    let forward = admin.event_chain("default", started.seq).await.unwrap();
    assert_eq!(forward.items, admin.event_chain("default", rollout.seq).await.unwrap().items);

    for missing in [0, rollout.seq + 1_000_000, u64::MAX] {
        let (code, said) = problem(admin.event_chain("default", missing).await);
        assert_eq!((code, said), (Code::NotFound, format!("cannot find event {missing}")));
    }
    let nodes_only = with(&installation, "nodes-only", &["get node in default"]).await;
    let (code, _) = problem(nodes_only.event_chain("default", rollout.seq).await);
    assert_eq!(code, Code::NotFound, "what may not be read is not there");
}
