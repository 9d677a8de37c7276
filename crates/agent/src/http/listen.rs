//! The port: how many may be connected at once.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bellwether_rt::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::speak::speak;

/// Most connections at once. Prometheus holds one for each service that it watches.
const MAX_CONNECTIONS: usize = 1_024;

/// Serves `router` until the level stops.
pub(super) async fn serve(listener: TcpListener, router: Router, tasks: Tasks) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let token = tasks.token();
    loop {
        // Both arms only wait; a permit that is dropped goes back.
        let permit = tokio::select! {
            () = token.cancelled() => return,
            permit = room.clone().acquire_owned() => permit,
        };
        let Ok(permit) = permit else { return };
        // accept is cancel safe: a connection is either returned or still queued.
        let accepted = tokio::select! {
            () = token.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, level) = (router.clone(), tasks.clone());
                tasks.spawn("http connection", connection(stream, router, level, permit));
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router, tasks: Tasks, _permit: OwnedSemaphorePermit) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set nodelay");
    }
    speak(stream, router, tasks).await;
}
