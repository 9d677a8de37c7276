//! One HTTP/1.1 connection with limits on its headers, until it or the agent ends.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bellwether_rt::tasks::Tasks;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt;

/// Deadline of the headers, against clients that hold a connection open.
const HEADER_DEADLINE: Duration = Duration::from_secs(10);

/// Largest request head, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Serves `router` on `stream`.
pub(crate) async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    tasks: Tasks,
) {
    let service = router.map_request(|request: http::Request<Incoming>| request.map(Body::new));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    // Polling the connection by reference keeps its state when the stop arm wins.
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = tasks.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a client connection ended");
    }
}
