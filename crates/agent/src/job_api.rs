//! The API that a job reaches: a loopback address with a token of its own, for as long as it runs. Requests go to the control plane as those
//! of the job, which decides what a job may do; nothing else is reached, and no credential of the node is shown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::response::IntoResponse;
use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::tasks::Tasks;
use http::{HeaderMap, Request, Response, header};
use tokio::net::TcpListener;

use crate::http::serve::serve_connection;
use crate::link::source::JobSource;
use crate::local::problem::LocalFailure;

/// Most connections at once: the clients are what one job runs.
const MAX_CONNECTIONS: usize = 64;

/// Longest time for an answer: a blocking read waits for most of a minute.
const DEADLINE: Duration = Duration::from_secs(75);

/// Largest body of a request, in bytes: as the servers take it.
const MAX_BODY: usize = 1 << 20;

/// The API of one job. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct JobApi {
    address: String,
    token: String,
    tasks: Tasks,
}

#[derive(Debug)]
struct Shared {
    /// The job, as the control plane knows it.
    job: String,
    authorization: String,
    source: JobSource,
}

impl Drop for JobApi {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl JobApi {
    /// Listens for the requests of a job, `RUN/INDEX`.
    ///
    /// # Errors
    /// When there is no port, or no random number, to be had.
    pub(crate) async fn start(job: String, source: JobSource, tasks: &Tasks) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let token = token()?;
        let authorization = format!("Bearer {token}");
        let shared = Arc::new(Shared { job, authorization, source });
        let router =
            Router::new().fallback(forward).layer(DefaultBodyLimit::max(MAX_BODY)).with_state(shared);
        let tasks = tasks.subgroup();
        let served = tasks.clone();
        tasks.spawn("job api", async move {
            let acceptor = Acceptor { name: "connection of a job", limit: MAX_CONNECTIONS };
            let serve = |(stream, _)| serve_connection(stream, router.clone(), served.clone());
            acceptor.run(&served, |context| listener.poll_accept(context), serve).await;
        });
        Ok(Self { address, token, tasks })
    }

    /// Its address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The token that its requests need.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }
}

async fn forward(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    request: Request<Body>,
) -> Response<Body> {
    let shown = headers.get(header::AUTHORIZATION).map_or(&[][..], http::HeaderValue::as_bytes);
    if !same(shown, shared.authorization.as_bytes()) {
        return refused(
            Code::Unauthenticated,
            "authentication failed: this is the API of a job, with a token of its own",
        );
    }
    let (head, body) = request.into_parts();
    let body = match axum::body::to_bytes(body, MAX_BODY).await {
        Ok(body) => body,
        Err(error) => return refused(Code::Invalid, &format!("cannot read the body: {error}")),
    };
    let request: Request<Bytes> = Request::from_parts(head, body);
    match shared.source.forward(&shared.job, request, DEADLINE).await {
        Ok(answer) => {
            let (mut head, body) = answer.into_parts();
            for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
                head.headers.remove(name);
            }
            Response::from_parts(head, Body::from(body))
        }
        Err(error) => unavailable(&error),
    }
}

fn unavailable(error: &CallError) -> Response<Body> {
    refused(Code::Store, &format!("cannot {error}"))
}

fn refused(code: Code, detail: &str) -> Response<Body> {
    LocalFailure::new(code, detail).into_response()
}

/// Compares in a time that says nothing of where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

/// 256 random bits in hex.
fn token() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
