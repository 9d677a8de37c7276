//! The port: how many may be connected at once.

use axum::Router;
use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};

use super::serve::speak;

/// Most connections at once. Prometheus holds one for each service that it watches.
const MAX_CONNECTIONS: usize = 1_024;

/// Serves `router` until the level stops.
pub(super) async fn serve(listener: TcpListener, router: Router, tasks: Tasks) {
    let doorway = Acceptor { name: "http connection", room: MAX_CONNECTIONS };
    let serve = |(stream, _)| connection(stream, router.clone(), tasks.clone());
    doorway.attend(&tasks, |context| listener.poll_accept(context), serve).await;
}

async fn connection(stream: TcpStream, router: Router, tasks: Tasks) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set nodelay");
    }
    speak(stream, router, tasks).await;
}
