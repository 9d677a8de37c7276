//! Bodies that do not arrive: whoever sends them takes room from nobody else, and no permit to run.

use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::freeze::FreezeSpec;
use bellwether_server::http::{ConcurrencyLimit, ConcurrencyLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Installation, SOON, problem};

/// Four requests of a class have room, two of which run, and one requester has half of that.
fn narrow() -> ConcurrencyLimits {
    let width = ConcurrencyLimit::whole(2, 2, 50).shared(1, 1);
    let joins = ConcurrencyLimit::whole(2, 2, 50);
    ConcurrencyLimits {
        urgent: width,
        people: width,
        watchers: width,
        machines: width,
        joins,
        ..ConcurrencyLimits::default()
    }
}

/// A connection with a request of whose body one byte has come.
async fn slow(installation: &Installation, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(installation.server().plain_address.unwrap()).await.unwrap();
    let request = format!("{head}\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The status of the answer to a request.
async fn status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    tokio::time::timeout(SOON, stream.read_exact(&mut head)).await.unwrap().unwrap();
    std::str::from_utf8(&head).unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

/// Sends slow requests until one is refused: then the others have all the room that they can have.
async fn fill(installation: &Installation, head: &str) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(slow(installation, head).await);
    }
    // Those without room are answered; whichever these are.
    let answers = held.iter_mut().map(|stream| Box::pin(status(stream)));
    let (answered, _, rest) = futures_util::future::select_all(answers).await;
    drop(rest);
    assert_eq!(answered, 429);
    held
}

fn head(path: &str, secret: &str) -> String {
    format!("{path} HTTP/1.1\r\nauthorization: Bearer {secret}")
}

fn freeze() -> FreezeSpec {
    FreezeSpec { reason: "a test".to_owned(), ..FreezeSpec::default() }
}

const PLAN: &str = "POST /v1/namespaces/default/entities/web/plan";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_whose_bodies_do_not_arrive_hold_up_no_report() {
    let installation = Installation::with_lanes(narrow()).await;
    let node = installation.node("web-1").await;
    let _held = fill(&installation, "POST /v1/join HTTP/1.1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    installation.admin().nodes("default", false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_one_token_hold_up_no_other() {
    let installation = Installation::with_lanes(narrow()).await;
    let (_viewer, secret) = installation.token_and_secret("viewer").await;
    let operator = installation.token("operator").await;
    let _held = fill(&installation, &head(PLAN, &secret)).await;
    operator.nodes("default", false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freeze_finds_room_when_nothing_else_does() {
    let installation = Installation::with_lanes(narrow()).await;
    let operator = installation.token("operator").await;
    let mut held = Vec::new();
    for role in ["viewer", "operator"] {
        let name = format!("slow-{role}");
        let secret = installation.named_token(&name, role).await;
        held.extend(fill(&installation, &head(PLAN, &secret)).await);
    }
    let (code, detail) = problem(operator.set_entity("default", "app", &EntitySpec::default()).await);
    assert!(code == Code::Busy && detail.contains("2 are in flight and 2 wait"), "{detail}");
    operator.set_freeze(Some("default"), "sale", &freeze()).await.unwrap();
    installation.admin().set_freeze(None, "everything", &freeze()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_deleted_while_a_body_arrives_may_do_nothing_with_it() {
    let installation = Installation::with_lanes(ConcurrencyLimits::default()).await;
    let (_operator, secret) = installation.token_and_secret("operator").await;
    let mut stream = slow(&installation, &head("PUT /v1/namespaces/default/entities/web", &secret)).await;
    installation.admin().delete_token("a-operator").await.unwrap();
    stream.write_all(b"}").await.unwrap();
    assert_eq!(status(&mut stream).await, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_may_not_is_refused_before_its_body_arrives() {
    let installation = Installation::with_lanes(ConcurrencyLimits::default()).await;
    let (_viewer, secret) = installation.token_and_secret("viewer").await;
    let mut stream = slow(&installation, &head("PUT /v1/namespaces/default/entities/web", &secret)).await;
    assert_eq!(status(&mut stream).await, 403);
    assert_eq!(status(&mut slow(&installation, PLAN_OF_NOBODY).await).await, 401);
}

const PLAN_OF_NOBODY: &str = "POST /v1/namespaces/default/entities/web/plan HTTP/1.1";
