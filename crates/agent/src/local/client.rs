//! A client of this node's agent, over its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Problem;
use bellwether_api::v1::local::{NewStatus, Reload};
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
use crate::status::{AgentStatus, StatusError};

/// Deadline of a call: longer than the agent waits for its disk.
const DEADLINE: Duration = Duration::from_secs(15);

/// Largest answer, in bytes: the catalogue of a large fleet fits.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Why a call failed. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// No agent listens.
    #[error("reach the agent of this node at {path}: {source}")]
    Away {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The agent refused.
    #[error("{0}")]
    Problem(Problem),
    /// The agent did not answer within the deadline, or its answer is not valid.
    #[error("read the answer of the agent of this node: {0}")]
    Broken(String),
}

/// Sets a status of this node.
///
/// # Errors
/// [`LocalError`].
pub async fn set_status(data_dir: &Path, category: &str, status: &NewStatus) -> Result<(), LocalError> {
    let path = fill(paths::AGENT_STATUSES, &[category]);
    call::<_, serde_json::Value>(data_dir, Method::PUT, &path, Some(status)).await.map(|_| ())
}

/// Deletes a status that a program of this node has set.
///
/// # Errors
/// [`LocalError`].
pub async fn delete_status(data_dir: &Path, category: &str) -> Result<(), LocalError> {
    let path = fill(paths::AGENT_STATUSES, &[category]);
    call::<(), serde_json::Value>(data_dir, Method::DELETE, &path, None).await.map(|_| ())
}

/// The status of this node's agent.
///
/// # Errors
/// [`LocalError`].
pub async fn status(data_dir: &Path) -> Result<AgentStatus, LocalError> {
    call::<(), _>(data_dir, Method::GET, paths::AGENT_STATUS, None).await
}

/// The status of an agent, and how present it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurrentStatus {
    /// As the running agent answered just now.
    Live(AgentStatus),
    /// As an agent wrote it last: none runs, or the one that runs does not answer.
    Stored(AgentStatus),
}

impl CurrentStatus {
    /// The status, however present.
    #[must_use]
    pub fn into_inner(self) -> AgentStatus {
        match self {
            Self::Live(status) | Self::Stored(status) => status,
        }
    }
}

/// The status of the agent of a data directory: its own answer, or else what the last one wrote.
///
/// # Errors
/// [`StatusError`] if no agent answers and the file cannot be read.
pub async fn current(data_dir: &Path) -> Result<CurrentStatus, StatusError> {
    match status(data_dir).await {
        Ok(status) => Ok(CurrentStatus::Live(status)),
        Err(error) => {
            tracing::debug!("cannot {error}; reading the status file");
            crate::status::read(data_dir).map(CurrentStatus::Stored)
        }
    }
}

/// Has the agent read its configuration again; returns the number that the new one has once it is in force.
///
/// # Errors
/// [`LocalError`]; the reason for which the configuration before stays in force is a [`LocalError::Problem`].
pub async fn reload(data_dir: &Path) -> Result<u64, LocalError> {
    let answer = call::<(), Reload>(data_dir, Method::PUT, paths::AGENT_RELOAD, None).await?;
    Ok(answer.number)
}

/// This node's copy of the catalogue.
///
/// # Errors
/// [`LocalError`].
pub async fn catalogue(data_dir: &Path) -> Result<Catalogue, LocalError> {
    let update = call::<(), CatalogueUpdate>(data_dir, Method::GET, paths::AGENT_CATALOGUE, None).await?;
    let snapshot = CatalogueSnapshot::default().with(update);
    snapshot.map(|snapshot| snapshot.catalogue).map_err(LocalError::Broken)
}

/// Calls any path, with an answer of the caller's type.
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
    // With an answer, dropping the connection ends it.
    tokio::select! {
        answer = answer => answer,
        () = driving => Err(LocalError::Broken("the connection was closed".to_owned())),
    }
}

fn broken(error: impl std::fmt::Display) -> LocalError {
    LocalError::Broken(error.to_string())
}
