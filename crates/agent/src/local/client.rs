//! Asking this machine's own agent, over its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Problem;
use bellwether_api::v1::local::NewStatus;
use bellwether_api::v1::service::CatalogueUpdate;
use bellwether_core::catalogue::Catalogue;
use bellwether_rt::tasks::BoxFuture;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::socket_path::socket;
use crate::catalogue::CatalogueSnapshot;

/// How long an answer may take: longer than the agent waits for its disk.
const DEADLINE: Duration = Duration::from_secs(15);

/// Largest answer read, in bytes: the catalogue of a large fleet fits.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Why the agent did not do what it was asked. Fits after "could not ".
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Nobody listens.
    #[error("ask this machine's agent at {path}: {source}; is it running, and is this its data directory?")]
    Away {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It refused.
    #[error("{0}")]
    Problem(Problem),
    /// It did not answer within the deadline, or not in words we know.
    #[error("understand this machine's agent: {0}")]
    Broken(String),
}

/// Sets a status of this machine.
///
/// # Errors
/// [`LocalError`].
pub async fn set_status(data_dir: &Path, category: &str, status: &NewStatus) -> Result<(), LocalError> {
    let path = fill(paths::AGENT_STATUSES, &[category]);
    call::<_, serde_json::Value>(data_dir, Method::PUT, &path, Some(status)).await.map(|_| ())
}

/// What this machine's agent is about.
///
/// # Errors
/// [`LocalError`].
pub async fn status(data_dir: &Path) -> Result<crate::status::AgentStatus, LocalError> {
    call::<(), _>(data_dir, Method::GET, paths::AGENT_STATUS, None).await
}

/// What this machine's agent knows of the services of the fleet.
///
/// # Errors
/// [`LocalError`].
pub async fn catalogue(data_dir: &Path) -> Result<Catalogue, LocalError> {
    let update = call::<(), CatalogueUpdate>(data_dir, Method::GET, paths::AGENT_CATALOGUE, None).await?;
    let snapshot = CatalogueSnapshot::default().with(update);
    snapshot.map(|snapshot| snapshot.catalogue).map_err(LocalError::Broken)
}

/// Asks for anything, with an answer of its own shape.
///
/// # Errors
/// [`LocalError`].
pub async fn call<B: Serialize, A: DeserializeOwned>(
    data_dir: &Path,
    method: Method,
    path: &str,
    body: Option<&B>,
) -> Result<A, LocalError> {
    let bytes = body.map(serde_json::to_vec).transpose().map_err(broken)?.unwrap_or_default();
    let asked = boxed_ask(data_dir, method, path, bytes);
    let (status, bytes) = tokio::time::timeout(DEADLINE, asked)
        .await
        .map_err(|_| LocalError::Broken(format!("no answer within {DEADLINE:?}")))??;
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(broken);
    }
    let problem: Result<Problem, _> = serde_json::from_slice(&bytes);
    Err(problem.map_or_else(|_| LocalError::Broken(format!("status {status}")), LocalError::Problem))
}

/// [`ask`], compiled once.
fn boxed_ask<'a>(
    data_dir: &'a Path,
    method: Method,
    path: &'a str,
    body: Vec<u8>,
) -> BoxFuture<'a, Result<(http::StatusCode, Bytes), LocalError>> {
    Box::pin(ask(data_dir, method, path, body))
}

async fn ask(
    data_dir: &Path,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<(http::StatusCode, Bytes), LocalError> {
    let at = socket(data_dir);
    let stream = UnixStream::connect(&at).await;
    let stream = stream.map_err(|source| LocalError::Away { path: at, source })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "agent")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(broken)?;
    let driving = async {
        if let Err(error) = connection.await {
            tracing::trace!(%error, "the local connection ended");
        }
        // The answer, or its absence, comes out of the sender.
        std::future::pending::<()>().await
    };
    let answer = async {
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
        Ok((status, body.map_err(broken)?.to_bytes()))
    };
    // Dropping the connection when there is an answer is how this ends it.
    tokio::select! {
        answer = answer => answer,
        () = driving => Err(LocalError::Broken("the connection ended".to_owned())),
    }
}

fn broken(error: impl std::fmt::Display) -> LocalError {
    LocalError::Broken(error.to_string())
}
