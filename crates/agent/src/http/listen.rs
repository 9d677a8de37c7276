//! The listening port, with a limit on connections.

use axum::Router;
use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::tasks::Tasks;
use tokio::net::{TcpListener, TcpStream};

use super::serve::serve_connection;

/// Most connections at once. Prometheus holds one for each service that it watches.
const MAX_CONNECTIONS: usize = 1_024;

/// Serves `router` until the agent stops.
pub(super) async fn serve(listener: TcpListener, router: Router, tasks: Tasks) {
    let acceptor = Acceptor { name: "http connection", limit: MAX_CONNECTIONS };
    let serve = |(stream, _)| connection(stream, router.clone(), tasks.clone());
    acceptor.run(&tasks, |context| listener.poll_accept(context), serve).await;
}

async fn connection(stream: TcpStream, router: Router, tasks: Tasks) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    serve_connection(stream, router, tasks).await;
}
