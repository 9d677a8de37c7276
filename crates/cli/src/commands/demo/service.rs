//! The HTTP service that the demo's agents supervise: its version at `/` and its health at `/health`.
//!
//! Version `v3` is the bad one: it starts, answers at `/`, and reports at `/health` that it is broken.

use std::convert::Infallible;
use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use bellwether_rt::signal::StopSignals;
use bellwether_rt::tasks::Tasks;

use crate::args::DemoService;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};

/// The version whose health check fails.
pub(super) const BROKEN: &str = "v3";

/// Answers requests until it is stopped.
pub(crate) async fn run(args: &DemoService) -> CommandResult {
    let address = SocketAddr::new(args.address, args.port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::local(LocalFault::Listen, format!("listen on {address}: {error}")))?;
    let tasks = Tasks::new();
    let mut stops =
        StopSignals::listen().map_err(|error| Failure::ours(format!("listen for signals: {error}")))?;
    let version = args.version_served.clone();
    loop {
        // accept is cancel safe; the other arm only waits.
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stops.requested() => return Ok(Exit::Yes),
        };
        if let Ok((stream, _)) = accepted {
            tasks.spawn("connection", serve(stream, version.clone()));
        }
    }
}

async fn serve(stream: TcpStream, version: String) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.uri().path(), &version);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}

fn answer(path: &str, version: &str) -> Response<Full<Bytes>> {
    let (status, text) = match path {
        "/" => (StatusCode::OK, format!("{version}\n")),
        "/health" if version == BROKEN => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the new cache does not answer\n".to_owned())
        }
        "/health" => (StatusCode::OK, "fine\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "not here\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}
