//! Bodies above the limit: whoever sends one over HTTP/1.1 or HTTP/2 reads the refusal, and its connection goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::contract::{plain, raw};
use crate::harness::Installation;

type TestBody = BoxBody<Bytes, std::convert::Infallible>;

/// A body that counts what was taken of it.
fn body(bytes: usize, taken: &Arc<AtomicUsize>) -> TestBody {
    let taken = Arc::clone(taken);
    let parts = (0..bytes).step_by(PART).map(move |start| {
        let part = PART.min(bytes - start);
        taken.fetch_add(part, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from(vec![b' '; part])))
    });
    BodyExt::boxed(StreamBody::new(stream::iter(parts)))
}

/// Bytes of a part of a body.
const PART: usize = 64 << 10;

/// Connects with HTTP/2.
async fn connect(installation: &Installation, tasks: &mut JoinSet<()>) -> http2::SendRequest<TestBody> {
    let stream = TcpStream::connect(installation.server().plain_address.unwrap()).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { connection.await.unwrap_or_default() });
    sender
}

fn request(installation: &Installation, method: &Method, path: &str, body: TestBody) -> Request<TestBody> {
    let address = installation.server().plain_address.unwrap();
    Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"))
        .version(Version::HTTP_2)
        .header("authorization", format!("Bearer {}", installation.admin_token.expose()))
        .body(body)
        .unwrap()
}

#[tokio::test]
async fn a_body_above_the_limit_is_answered_over_http2() {
    let installation = plain().await;
    let mut tasks = JoinSet::new();
    let mut sender = connect(&installation, &mut tasks).await;
    let profile = "/v1/namespaces/default/profiles/web";
    let apply = "/v1/namespaces/default/apply";
    for (method, path, bytes) in [
        (Method::PUT, profile, (1 << 20) + 1),
        (Method::PUT, profile, 3 << 20),
        (Method::PATCH, profile, 40 << 20),
        (Method::POST, apply, 17 << 20),
    ] {
        let taken = Arc::new(AtomicUsize::new(0));
        let sent = request(&installation, &method, path, body(bytes, &taken));
        let answer = sender.send_request(sent).await.unwrap_or_else(|error| panic!("{bytes}: {error:?}"));
        assert_eq!(answer.status(), 413, "{method} {path} {bytes}");
        // A client that sends everything before it reads was able to.
        assert_eq!(taken.load(Ordering::Relaxed), bytes, "{method} {path}");
        let answer = answer.into_body().collect().await.unwrap_or_else(|error| panic!("{bytes}: {error:?}"));
        let problem: Value = serde_json::from_slice(&answer.to_bytes()).unwrap();
        assert!(problem["detail"].as_str().unwrap().contains("larger than"), "{problem}");
        // The same connection answers the next request.
        let next = request(&installation, &Method::GET, "/v1/namespaces", body(0, &Arc::default()));
        assert_eq!(sender.send_request(next).await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_answered_over_http1() {
    let installation = plain().await;
    let body = " ".repeat(3 << 20);
    let (status, _, answer) = raw(&installation, "PUT /v1/namespaces/default/profiles/web", &body).await;
    assert!(status == 413 && answer.contains("larger than"), "{status} {answer}");
}
